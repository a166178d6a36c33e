// Finds credentials that were revoked in one state of a database but not in an older one. Restoring the older state
// makes them valid again.
import { Database as Sqlite } from "bun:sqlite";

export interface RevokedCredential {
  id: string;
  /** `key`, `membership` or `grant`. */
  kind: string;
  name: string;
}

/**
 * Compares a backup with the database `current`. Undefined if `current` cannot be read, because it is damaged or of an
 * old version.
 */
export function revokedSince(current: string, restored: string, nowSeconds: number): RevokedCredential[] | undefined {
  try {
    const valid = new Set(
      read<{ id: string }>(
        restored,
        `SELECT id FROM api_keys WHERE revoked = 0 AND (expires_at IS NULL OR expires_at > ${nowSeconds})`,
      ).map(({ id }) => id),
    );
    const revoked = read<RevokedCredential>(
      current,
      "SELECT id, kind, name FROM api_keys WHERE revoked = 1 ORDER BY revoked_at DESC",
    );
    return revoked.filter(({ id }) => valid.has(id));
  } catch (error) {
    if ((error as { code?: string }).code?.startsWith("SQLITE_")) return undefined;
    throw error;
  }
}

function read<Row>(file: string, sql: string): Row[] {
  const db = new Sqlite(file, { readonly: true });
  try {
    return db.prepare<Row, []>(sql).all();
  } finally {
    db.close();
  }
}
