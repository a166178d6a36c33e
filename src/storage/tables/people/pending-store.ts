// Pending sign-in flows in the database. Any process that shares the database may finish a flow, once.
import type { PendingEntry, PendingStore } from "../../../domain/people/pending.ts";
import type { Database } from "../../sql/database.ts";
import { added, available } from "../../sql/outage.ts";

/** Maximum number of rows in a transaction, because other writers wait for it. */
const pruneAtOnce = 1_000;

export class SqlPendingStore implements PendingStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async put({ kind, digest, value, expiresAt }: PendingEntry): Promise<void> {
    await added(
      this.#db,
      (tx) => tx`
        INSERT INTO pending_entries ${tx({ kind, digest, value, expires_at: expiresAt })}
        ON CONFLICT (kind, digest) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at`,
    );
  }

  async take(kind: string, digest: string, nowSeconds: number): Promise<string | undefined> {
    const [row]: { value: string; expires_at: number | string }[] = await added(
      this.#db,
      (tx) => tx`
        DELETE FROM pending_entries WHERE kind = ${kind} AND digest = ${digest} RETURNING value, expires_at`,
    );
    return row && Number(row.expires_at) > nowSeconds ? row.value : undefined;
  }

  async has(kind: string, digest: string, nowSeconds: number): Promise<boolean> {
    const rows: unknown[] = await available(this.#db`
      SELECT kind FROM pending_entries WHERE kind = ${kind} AND digest = ${digest} AND expires_at > ${nowSeconds}`);
    return rows.length > 0;
  }

  async trim(kind: string, most: number): Promise<void> {
    await added(
      this.#db,
      (tx) => tx`
        DELETE FROM pending_entries WHERE kind = ${kind} AND digest IN (
          SELECT digest FROM (
            SELECT digest, expires_at, row_number() OVER (
              PARTITION BY CASE WHEN substr(digest, 9, 1) = '.' THEN substr(digest, 1, 8) ELSE '' END
              ORDER BY expires_at DESC, digest) AS nth
            FROM pending_entries WHERE kind = ${kind}) AS ranked
          ORDER BY nth, expires_at DESC, digest LIMIT ${pruneAtOnce} OFFSET ${most})`,
    );
  }

  async prune(nowSeconds: number): Promise<void> {
    await added(
      this.#db,
      (tx) => tx`
        DELETE FROM pending_entries WHERE (kind, digest) IN (
          SELECT kind, digest FROM pending_entries WHERE expires_at <= ${nowSeconds} LIMIT ${pruneAtOnce})`,
    );
  }
}
