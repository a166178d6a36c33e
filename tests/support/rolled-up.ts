// The roll-ups of usage in a file of SQLite, and what its records say that they should be; each row as text, in order.
import type { Database } from "bun:sqlite";

export function rollupsIn(db: Database): string[] {
  return asText(db.query("SELECT * FROM usage_rollups").all());
}

export function sumsOfRecords(db: Database): string[] {
  return asText(
    db
      .query(`
        SELECT account_id, environment, span, at - at % seconds AS start, key_id, coalesce(app_id, '') AS app_id, model,
          count(*) AS requests, sum(prompt_tokens) AS prompt_tokens, sum(completion_tokens) AS completion_tokens,
          coalesce(sum(nano_usd), 0) AS nano_usd, sum(outcome = 'failed') AS errors,
          count(first_token_ms) AS timed, coalesce(sum(first_token_ms), 0) AS first_token_ms,
          coalesce(sum(CASE WHEN duration_ms > first_token_ms THEN max(completion_tokens - 1, 0) END), 0) AS generated_tokens,
          coalesce(sum(max(duration_ms - first_token_ms, 0)), 0) AS generation_ms, min(at) AS first_at, max(at) AS last_at,
          sum(cached_tokens) AS cached_tokens, sum(cache_write_tokens) AS cache_write_tokens,
          sum(reasoning_tokens) AS reasoning_tokens, sum(nano_usd IS NULL) AS unpriced
        FROM usage_records, (SELECT 'hour' AS span, 3600 AS seconds UNION ALL SELECT 'day', 86400) AS spans
        GROUP BY 1, 2, 3, 4, 5, 6, 7`)
      .all(),
  );
}

/** Batches whose sums the roll-ups lack, and what takes away from them. */
export function unrolledIn(db: Database): number {
  return (db.query("SELECT count(*) AS n FROM usage_unrolled").get() as { n: number }).n;
}

function asText(rows: readonly unknown[]): string[] {
  return rows.map((row) => JSON.stringify(row)).sort();
}
