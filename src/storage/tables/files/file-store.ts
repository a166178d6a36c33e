// The records of files in the database.
import type { FilePage, FileStore, StoredFile } from "../../../domain/files/stored-file.ts";
import type { ResponseOwner } from "../../../domain/models/stored-response.ts";
import { type Database, writing } from "../../sql/database.ts";
import { available, written } from "../../sql/outage.ts";
import { integer, table, text } from "../../sql/table.ts";

/** The creator's columns, the same in all tables of objects that belong to a credential. */
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

/**
 * Each file counts as at least this many bytes: a block on the disk and a row are used even by an empty file, and the
 * number of an account's files must have a bound.
 */
export const minCountedBytes = 16_384;

export class SqlFileStore implements FileStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  begin(file: StoredFile, maxBytes: number): Promise<boolean> {
    const row = { ...storedFiles.row(file), state: "pending" };
    return available(
      writing(this.#db, async (tx) => {
        if ((await bytesOf(tx, file.accountId)) + Math.max(file.bytes, minCountedBytes) > maxBytes) return false;
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
        const [row] = await tx`
          UPDATE stored_files SET ${tx(columns)}
          WHERE id = ${id} AND state = 'pending' RETURNING id`;
        if (!row) return false;
        if ((await bytesOf(tx, accountId)) <= maxBytes) return true;
        await tx`UPDATE stored_files SET state = 'gone' WHERE id = ${id}`;
        return false;
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
    const last = after === undefined ? undefined : await this.find(owner, after, nowSeconds);
    if (after !== undefined && !last) return undefined;
    const [beyond, direction] = order === "asc" ? [db`>`, db`ASC`] : [db`<`, db`DESC`];
    return await available(
      storedFiles.all(db`
        SELECT * FROM stored_files AS c
        WHERE ${this.#visible(owner, nowSeconds)} AND purpose <> 'batch_requests'
          ${purpose === undefined ? db`` : db`AND purpose = ${purpose}`}
          ${last ? db`AND (created_at, id) ${beyond} (${last.createdAt}, ${last.id})` : db``}
        ORDER BY created_at ${direction}, id ${direction} LIMIT ${limit}`),
    );
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
    const rows: { id: string }[] = await available(this.#db`
      SELECT id FROM stored_files WHERE expires_at <= ${nowSeconds} OR state = 'gone' ORDER BY expires_at LIMIT ${limit}`);
    return rows.map(({ id }) => id);
  }

  async forget(ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return;
    await written(this.#db, (tx) => tx`DELETE FROM stored_files WHERE id IN ${tx([...ids])}`);
  }

  #visible(owner: ResponseOwner, nowSeconds: number) {
    return this.#db`${madeFor(this.#db, owner)} AND c.state = 'ready' AND c.expires_at > ${nowSeconds}`;
  }
}

/** Selects what this owner may see, by an index of accounts and environments. `c` is the table. */
export function madeFor(db: Database, { accountId, environment, appId, personId, madeBy }: ResponseOwner) {
  const ofApp = appId === null ? db`` : db`AND c.app_id = ${appId}`;
  const ofPerson = personId === null ? db`` : db`AND c.person_id = ${personId}`;
  const ofMaker = madeBy === null ? db`` : db`AND c.made_by = ${madeBy}`;
  return db`c.account_id = ${accountId} AND c.environment = ${environment} ${ofApp} ${ofPerson} ${ofMaker}`;
}

/** Returns the bytes of all files of an account, including unfinished ones. The sum reads only an index. */
export async function bytesOf(tx: Database, accountId: string): Promise<number> {
  const [row]: { bytes: number | string | null }[] = await tx`
    SELECT SUM(CASE WHEN bytes < ${minCountedBytes} THEN ${minCountedBytes} ELSE bytes END) AS bytes
    FROM stored_files WHERE account_id = ${accountId} AND state <> 'gone'`;
  return Number(row?.bytes ?? 0);
}
