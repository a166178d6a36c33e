// Counts of refused requests in the database.

import type { RefusalCount, RefusalQuery, RefusalStore } from "../../domain/limits/refusal.ts";
import type { Database } from "../sql/database.ts";
import { added, available } from "../sql/outage.ts";
import { type Column, integer, table, text } from "../sql/table.ts";
import { credentialsOf } from "./credential-rows.ts";

/**
 * Stores null as '', because a primary key cannot contain null. Null means no app, or too many values to count
 * separately.
 */
const orEmpty: Column<string | null> = { write: (member) => member ?? "", read: (value) => value || null };

const refusals = table<RefusalCount>({
  accountId: text,
  environment: text,
  start: integer,
  keyId: orEmpty,
  appId: orEmpty,
  model: orEmpty,
  reason: text,
  requests: integer,
  lastAt: integer,
});

/** The time range of one query in seconds, because SQLite blocks the thread that serves requests. */
const windowSeconds = 86_400;

export class SqlRefusalStore implements RefusalStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async add(counts: readonly RefusalCount[]): Promise<void> {
    // Sorted, so that two processes do not wait for each other's rows.
    const rows = counts.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1)).map(refusals.row);
    await added(
      this.#db,
      (tx) => tx`
        INSERT INTO refusals ${tx(rows)}
        ON CONFLICT (account_id, environment, start, key_id, app_id, model, reason) DO UPDATE SET
          requests = refusals.requests + excluded.requests,
          last_at = CASE WHEN excluded.last_at > refusals.last_at THEN excluded.last_at ELSE refusals.last_at END`,
    );
  }

  async list(
    { accountId, environment, appId, personId, keyId, model, start, end }: RefusalQuery,
    limit: number,
  ): Promise<RefusalCount[]> {
    const db = this.#db;
    const counts: RefusalCount[] = [];
    for (let until = end; until > start && counts.length < limit; until -= windowSeconds) {
      if (until < end) await new Promise(setImmediate);
      // Reads the primary key, or the index by time, backwards. Without a filter, every row that is read is returned.
      const found = refusals.all(db`
        SELECT * FROM refusals
        WHERE ${accountId === null ? db`environment || '' = ${environment}` : db`account_id = ${accountId} AND environment = ${environment}`}
          AND start >= ${Math.max(start, until - windowSeconds)} AND start < ${until}
          ${appId === undefined ? db`` : db`AND app_id = ${appId}`}
          ${keyId === undefined ? db`` : db`AND key_id = ${keyId}`}
          ${model === undefined ? db`` : db`AND model = ${model}`}
          ${personId === undefined ? db`` : db`AND key_id IN ${credentialsOf(db, { accountId, environment, personId })}`}
        ORDER BY start DESC, ${accountId === null ? db`account_id DESC,` : db``} key_id DESC, app_id DESC, model DESC, reason DESC LIMIT ${limit - counts.length}`);
      counts.push(...(await available(found)));
    }
    return counts;
  }
}

function keyOf(count: RefusalCount): string {
  const { accountId, environment, start, keyId, appId, model, reason } = count;
  return [accountId, environment, start, keyId, appId, model, reason].join("\n");
}
