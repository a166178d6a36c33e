// Finds what was revoked or suspended in one state of a database but not in an older one. Restoring the older state makes
// it valid again.
import { Database as Sqlite } from "bun:sqlite";

export interface RevokedCredential {
  id: string;
  /** `key`, `membership`, `grant`, `account`, `person` or `app`. */
  kind: string;
  name: string;
  state: "revoked" | "suspended";
}

interface Blockable {
  table: string;
  kind: string;
  name: string;
  /** The condition of a row that is blocked. */
  isBlocked: string;
  /** The column that older schemas do not have. */
  column: string;
}

const suspendable: readonly Blockable[] = [
  { table: "accounts", kind: "'account'", name: "name", isBlocked: "status <> 'active'", column: "status" },
  { table: "people", kind: "'person'", name: "email", isBlocked: "suspended_at IS NOT NULL", column: "suspended_at" },
  {
    ...{ table: "api_keys", kind: "kind", name: "name" },
    ...{ isBlocked: "suspended_by IS NOT NULL AND revoked = 0", column: "suspended_by" },
  },
  { table: "apps", kind: "'app'", name: "name", isBlocked: "suspended_by IS NOT NULL", column: "suspended_by" },
];

/**
 * Compares a backup with the database `current`. Undefined if `current` cannot be read, because it is damaged or of an
 * old version.
 */
export function revokedSince(current: string, restored: string, nowSeconds: number): RevokedCredential[] | undefined {
  try {
    using now = new Sqlite(current, { readonly: true });
    using then = new Sqlite(restored, { readonly: true });
    const valid = `SELECT id FROM api_keys WHERE revoked = 0 AND (expires_at IS NULL OR expires_at > ${nowSeconds})`;
    const revoked = `SELECT id, kind, name, 'revoked' AS state FROM api_keys WHERE revoked = 1 ORDER BY revoked_at DESC`;
    return [
      ...blocked(now, revoked, idsOf(then, valid)),
      ...suspendable.flatMap(({ table, kind, name, isBlocked, column }) => {
        const suspended = `SELECT id, ${kind} AS kind, ${name} AS name, 'suspended' AS state FROM ${table} WHERE ${isBlocked}`;
        const columns = then.prepare<{ name: string }, []>(`PRAGMA table_info(${table})`).all();
        const isKnown = columns.some((one) => one.name === column);
        return blocked(
          now,
          suspended,
          idsOf(then, `SELECT id FROM ${table}${isKnown ? ` WHERE NOT (${isBlocked})` : ""}`),
        );
      }),
    ];
  } catch (error) {
    if ((error as { code?: string }).code?.startsWith("SQLITE_")) return undefined;
    throw error;
  }
}

function idsOf(db: Sqlite, sql: string): ReadonlySet<string> {
  return new Set(
    db
      .prepare<{ id: string }, []>(sql)
      .all()
      .map(({ id }) => id),
  );
}

function blocked(db: Sqlite, sql: string, valid: ReadonlySet<string>): RevokedCredential[] {
  return db
    .prepare<RevokedCredential, []>(sql)
    .all()
    .filter(({ id }) => valid.has(id));
}
