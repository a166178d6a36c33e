// Reads the usage within the current windows of rate limits.
import type { Database } from "../storage/sql/database.ts";

export interface RecentUsage {
  keyId: string;
  /** Unix seconds. */
  at: number;
  requests: number;
  tokens: number;
}

const minuteSeconds = 60;

interface Row {
  key_id: string;
  at: number | string;
  requests: number | string;
  tokens: number | string;
}

/**
 * Returns usage by key and second, for the last minute or for longer windows of keys. Records have whole seconds, so
 * one more second is read. Usage in the future is ignored: it was recorded before the clock was set back.
 */
export async function recentUsage(db: Database, nowSeconds: number): Promise<RecentUsage[]> {
  const minuteAgo = nowSeconds - minuteSeconds - 1;
  const rows: Row[] = await db`
    SELECT key_id, at, count(*) AS requests, sum(prompt_tokens + completion_tokens) AS tokens
    FROM usage_records WHERE at >= ${minuteAgo} AND at <= ${nowSeconds}
    GROUP BY key_id, at`;
  const longer: { account_id: string; span: number | string }[] = await db`
    SELECT account_id, max(rate_limit_window) AS span FROM api_keys
    WHERE rate_limit_window > ${minuteSeconds} GROUP BY account_id`;
  if (longer.length > 0) {
    const since = nowSeconds - 1 - Math.max(...longer.map(({ span }) => Number(span)));
    const older: Row[] = await db`
      SELECT u.key_id, u.at, count(*) AS requests, sum(u.prompt_tokens + u.completion_tokens) AS tokens
      FROM usage_records u
      JOIN (
        SELECT account_id, max(rate_limit_window) AS span FROM api_keys
        WHERE rate_limit_window > ${minuteSeconds} GROUP BY account_id
      ) w ON w.account_id = u.account_id
      WHERE u.at >= ${since} AND u.at < ${minuteAgo} AND u.at >= ${nowSeconds} - 1 - w.span
      GROUP BY u.key_id, u.at`;
    rows.push(...older);
  }
  return rows.map((row) => ({
    keyId: row.key_id,
    at: Number(row.at),
    requests: Number(row.requests),
    tokens: Number(row.tokens),
  }));
}
