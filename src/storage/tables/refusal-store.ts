// Counts of refused requests in the database.

import type { RefusalReason } from "../../base/errors.ts";
import type { RefusalCount, RefusalQuery, RefusalStore } from "../../domain/limits/refusal.ts";
import { adding, type Database } from "../sql/database.ts";
import { available } from "../sql/outage.ts";

interface Row {
  account_id: string;
  environment: string;
  start: number | string;
  /** '': not told apart; of an app, also: none. */
  key_id: string;
  app_id: string;
  model: string;
  reason: string;
  requests: number | string;
  last_at: number | string;
}

/** How far one query reads: SQLite works in the thread that serves all requests. */
const windowSeconds = 86_400;

export class SqlRefusalStore implements RefusalStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async add(counts: readonly RefusalCount[]): Promise<void> {
    // In one order, so that of two processes neither waits for rows of the other that waits for its own.
    const rows = counts.map(toRow).sort((a, b) => (placeOf(a) < placeOf(b) ? -1 : 1));
    const write = adding(this.#db, async (tx) => {
      await tx`
        INSERT INTO refusals ${tx(rows)}
        ON CONFLICT (account_id, environment, start, key_id, app_id, model, reason) DO UPDATE SET
          requests = refusals.requests + excluded.requests,
          last_at = CASE WHEN excluded.last_at > refusals.last_at THEN excluded.last_at ELSE refusals.last_at END`;
    });
    await available(write);
  }

  async list({ accountId, environment, appId, start, end }: RefusalQuery, limit: number): Promise<RefusalCount[]> {
    const db = this.#db;
    const counts: RefusalCount[] = [];
    for (let until = end; until > start && counts.length < limit; until -= windowSeconds) {
      if (until < end) await new Promise(setImmediate);
      // The order of the primary key, backwards: no more is read than is given, but for an app.
      const rows: Row[] = await available(db`
        SELECT * FROM refusals
        WHERE account_id = ${accountId} AND environment = ${environment}
          AND start >= ${Math.max(start, until - windowSeconds)} AND start < ${until}
          ${appId === undefined ? db`` : db`AND app_id = ${appId}`}
        ORDER BY start DESC, key_id DESC, app_id DESC, model DESC, reason DESC LIMIT ${limit - counts.length}`);
      counts.push(...rows.map(fromRow));
    }
    return counts;
  }
}

function placeOf(row: Row): string {
  const { account_id, environment, start, key_id, app_id, model, reason } = row;
  return [account_id, environment, start, key_id, app_id, model, reason].join("\n");
}

function toRow(count: RefusalCount): Row {
  return {
    account_id: count.accountId,
    environment: count.environment,
    start: count.start,
    key_id: count.keyId ?? "",
    app_id: count.appId ?? "",
    model: count.model ?? "",
    reason: count.reason,
    requests: count.requests,
    last_at: count.lastAt,
  };
}

function fromRow(row: Row): RefusalCount {
  return {
    accountId: row.account_id,
    environment: row.environment as RefusalCount["environment"],
    start: Number(row.start),
    keyId: row.key_id || null,
    appId: row.app_id || null,
    model: row.model || null,
    reason: row.reason as RefusalReason,
    requests: Number(row.requests),
    lastAt: Number(row.last_at),
  };
}
