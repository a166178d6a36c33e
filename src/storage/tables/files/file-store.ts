// The records of files in the database.
import type { FilePage, FileStore, StoredFile } from "../../../domain/files/stored-file.ts";
import type { ResponseOwner } from "../../../domain/models/stored-response.ts";
import { type Database, writing } from "../../sql/database.ts";
import { available, written } from "../../sql/outage.ts";
import { integer, table, text } from "../../sql/table.ts";
import { AccountBytes, countedBytes, type FileSum, minCountedBytes } from "./account-bytes.ts";

/** Columns for the creator of an object, the same in all tables of objects that belong to a credential. */
export const makerColumns = {
  accountId: text,
  environment: text,
  keyId: text,
  appId: text,
  personId: text,
  madeBy: text,
};

export const storedFiles = table<StoredFile>({
  id: text,
  ...makerColumns,
  purpose: text,
  filename: text,
  bytes: integer,
  createdAt: integer,
  expiresAt: integer,
});

/** Rows that a list reads in one go, in some milliseconds, because SQLite blocks the thread that serves requests. */
const rowsAtOnce = 2_000;

export class SqlFileStore implements FileStore {
  readonly #db: Database;
  readonly #bytes = new AccountBytes();

  constructor(db: Database) {
    this.#db = db;
  }

  begin(file: StoredFile, maxBytes: number): Promise<boolean> {
    const row = { ...storedFiles.row(file), state: "pending" };
    return available(
      writing(this.#db, async (tx) => {
        const read = () => sumOf(tx, file.accountId);
        if (!(await this.#bytes.take(file.accountId, countedBytes(file.bytes), maxBytes, read))) return false;
        await tx`INSERT INTO stored_files ${tx(row)}`;
        return true;
      }),
    );
  }

  finish(file: StoredFile, maxBytes: number): Promise<boolean> {
    const { id, accountId } = file;
    const columns = { ...storedFiles.part(file, "purpose", "filename", "bytes", "expiresAt"), state: "ready" };
    return available(
      writing(this.#db, async (tx) => {
        const [row]: { bytes: number | string }[] = await tx`
          SELECT bytes FROM stored_files WHERE id = ${id} AND state = 'pending'`;
        if (!row) return false;
        const more = countedBytes(file.bytes) - countedBytes(Number(row.bytes));
        const isWithin = await this.#bytes.take(accountId, more, maxBytes, () => sumOf(tx, accountId));
        const changed: unknown[] = await tx`
          UPDATE stored_files SET ${tx(isWithin ? columns : { state: "gone" })}
          WHERE id = ${id} AND state = 'pending' RETURNING id`;
        return isWithin && changed.length > 0;
      }),
    );
  }

  find(owner: ResponseOwner, id: string, nowSeconds: number): Promise<StoredFile | undefined> {
    return available(
      storedFiles.first(
        this.#db`SELECT * FROM stored_files AS c WHERE id = ${id} AND ${this.#visible(owner, nowSeconds)}`,
      ),
    );
  }

  named(id: string): Promise<StoredFile | undefined> {
    return available(storedFiles.first(this.#db`SELECT * FROM stored_files WHERE id = ${id}`));
  }

  async list(
    owner: ResponseOwner,
    { after, limit, order, purpose }: FilePage,
    nowSeconds: number,
  ): Promise<StoredFile[] | undefined> {
    const db = this.#db;
    const last = typeof after === "string" ? await this.#positionOf(owner, after) : after;
    if (after !== undefined && !last) return undefined;
    const [sign, direction] = order === "asc" ? [db`>`, db`ASC`] : [db`<`, db`DESC`];
    const isOf = purpose === undefined ? db`` : db`AND c.purpose = ${purpose}`;
    const found: StoredFile[] = [];
    for (let from: Pick<StoredFile, "id" | "createdAt"> | undefined = last; ; ) {
      const within = db`account_id = ${owner.accountId} AND environment = ${owner.environment}
        ${from ? db`AND (created_at, id) ${sign} (${from.createdAt}, ${from.id})` : db``}
        ORDER BY created_at ${direction}, id ${direction}`;
      const files = await available(
        storedFiles.all(db`
          SELECT c.* FROM (SELECT * FROM stored_files WHERE ${within} LIMIT ${rowsAtOnce}) AS c
          WHERE ${this.#visible(owner, nowSeconds)} AND c.purpose <> 'batch_requests' ${isOf}
          ORDER BY c.created_at ${direction}, c.id ${direction} LIMIT ${limit - found.length}`),
      );
      found.push(...files);
      if (found.length === limit) return found;
      const [end]: { id: string; created_at: number | string }[] = await available(
        db`SELECT id, created_at FROM stored_files WHERE ${within} LIMIT 1 OFFSET ${rowsAtOnce - 1}`,
      );
      if (!end) return found;
      from = { id: end.id, createdAt: Number(end.created_at) };
      await new Promise(setImmediate);
    }
  }

  /** Returns the position of a file, also of a deleted one: clients delete files while they page through the list. */
  async #positionOf(owner: ResponseOwner, id: string): Promise<Pick<StoredFile, "id" | "createdAt"> | undefined> {
    const db = this.#db;
    const [found]: { id: string; created_at: number | string }[] = await available(
      db`SELECT c.id, c.created_at FROM stored_files AS c WHERE c.id = ${id} AND ${madeFor(db, owner)}`,
    );
    return found && { id: found.id, createdAt: Number(found.created_at) };
  }

  /** Reports whether any account has a file. */
  async hasAny(): Promise<boolean> {
    const rows: unknown[] = await available(this.#db`SELECT 1 FROM stored_files LIMIT 1`);
    return rows.length > 0;
  }

  async hide(owner: ResponseOwner, id: string, nowSeconds: number): Promise<boolean> {
    if (!(await this.find(owner, id, nowSeconds))) return false;
    const rows: unknown[] = await written(
      this.#db,
      (tx) => tx`
        UPDATE stored_files AS c SET state = 'gone' WHERE id = ${id} AND ${this.#visible(owner, nowSeconds)} RETURNING id`,
    );
    return rows.length > 0;
  }

  async giveUp(id: string): Promise<void> {
    await written(this.#db, (tx) => tx`UPDATE stored_files SET state = 'gone' WHERE id = ${id}`);
  }

  async gone(nowSeconds: number, limit: number): Promise<string[]> {
    const db = this.#db;
    // Two queries, because SQLite would read all rows for one query with OR.
    const hidden: { id: string }[] = await available(
      db`SELECT id FROM stored_files WHERE state = 'gone' ORDER BY id LIMIT ${limit}`,
    );
    const expired: { id: string }[] = await available(db`
      SELECT id FROM stored_files WHERE expires_at <= ${nowSeconds} AND state <> 'gone'
      ORDER BY expires_at LIMIT ${limit - hidden.length}`);
    return [...hidden, ...expired].map(({ id }) => id);
  }

  async forget(ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return;
    await written(this.#db, (tx) => tx`DELETE FROM stored_files WHERE id IN ${tx([...ids])}`);
  }

  #visible(owner: ResponseOwner, nowSeconds: number) {
    return this.#db`${madeFor(this.#db, owner)} AND c.state = 'ready' AND c.expires_at > ${nowSeconds}`;
  }
}

/** Selects the rows that this owner may see, by an index of accounts and environments. `c` is the table. */
export function madeFor(db: Database, { accountId, environment, appId, personId, madeBy }: ResponseOwner) {
  const ofApp = appId === null ? db`` : db`AND c.app_id = ${appId}`;
  const ofPerson = personId === null ? db`` : db`AND c.person_id = ${personId}`;
  const ofMaker = madeBy === null ? db`` : db`AND c.made_by = ${madeBy}`;
  return db`c.account_id = ${accountId} AND c.environment = ${environment} ${ofApp} ${ofPerson} ${ofMaker}`;
}

/** Returns the bytes of all files of an account, including unfinished ones. The sum reads only an index. */
export async function sumOf(tx: Database, accountId: string): Promise<FileSum> {
  const [row]: { bytes: number | string | null; files: number | string }[] = await tx`
    SELECT SUM(CASE WHEN bytes < ${minCountedBytes} THEN ${minCountedBytes} ELSE bytes END) AS bytes, COUNT(*) AS files
    FROM stored_files WHERE account_id = ${accountId} AND state <> 'gone'`;
  return { bytes: Number(row?.bytes ?? 0), files: Number(row?.files ?? 0) };
}
