// What was used within the windows of rate limits that have not passed yet.
import type { Database } from "./database.ts";

export interface RecentUsage {
  keyId: string;
  /** Unix seconds. */
  at: number;
  requests: number;
  tokens: number;
}

const minuteSeconds = 60;

/**
 * By key and second: a minute back, further for accounts that have keys with longer windows. A second more than the
 * window, as a record tells only the second in which its request began. What lies in the future was booked before the clock was set back: it delays nobody.
 */
export async function recentUsage(db: Database, nowSeconds: number): Promise<RecentUsage[]> {
  const rows: { key_id: string; at: number | string; requests: number | string; tokens: number | string }[] = await db`
    SELECT u.key_id, u.at, count(*) AS requests, sum(u.prompt_tokens + u.completion_tokens) AS tokens
    FROM (
      SELECT a.id, coalesce(max(CASE WHEN k.rate_limit_window > ${minuteSeconds} THEN k.rate_limit_window END), ${minuteSeconds}) AS span
      FROM accounts a LEFT JOIN api_keys k ON k.account_id = a.id
      GROUP BY a.id
    ) w
    JOIN usage_records u ON u.account_id = w.id AND u.at >= ${nowSeconds} - w.span - 1 AND u.at <= ${nowSeconds}
    GROUP BY u.key_id, u.at`;
  return rows.map((row) => ({
    keyId: row.key_id,
    at: Number(row.at),
    requests: Number(row.requests),
    tokens: Number(row.tokens),
  }));
}
