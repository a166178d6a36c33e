// A ledger with a past: rows of requests that never were, and their roll-ups, written by the database itself, SQLite or PostgreSQL.
import { type Database, dialectOf } from "../src/storage/sql/database.ts";

export interface UsageRows {
  accountId: string;
  /** `live` unless it says otherwise. */
  environment?: string;
  /** Other accounts, each of which has one of so many of the requests. */
  sparse?: readonly { accountId: string; oneOf: number }[];
  requests: number;
  /** Unix seconds; requests are spread evenly between the two. */
  start: number;
  end: number;
  keys: number;
  models: number;
}

const batch = 250_000;
const spans = { hour: 3_600, day: 86_400 } as const;

/**
 * Ids as long as real ones. Keys and models are used unevenly (the square of an even random number), hours of the day
 * evenly, and requests arrive in the order of time, as they do.
 */
export async function addUsageRows(
  db: Database,
  { accountId, environment = "live", sparse = [], requests, start, end, keys, models }: UsageRows,
  onProgress: (written: number) => void = () => {},
): Promise<void> {
  const isSqlite = dialectOf(db) === "sqlite";
  /** A random number from 0 and below a power of two. */
  const below = (count: number) =>
    isSqlite ? `(random() & ${count - 1})` : `CAST(floor(random() * ${count}) AS INTEGER)`;
  const whole = (number: string) => `CAST(${isSqlite ? number : `floor(${number})`} AS INTEGER)`;
  const padded = (number: string) =>
    isSqlite ? `printf('%012d', ${number})` : `lpad(CAST(${number} AS TEXT), 12, '0')`;
  const uneven = (count: number) => whole(`${count} * (${below(65_536)} / 65536.0) * (${below(65_536)} / 65536.0)`);
  const others = sparse.map((one, i) => `WHEN i % ${one.oneOf} = ${i + 1} THEN '${one.accountId}'`);
  const account = others.length === 0 ? `'${accountId}'` : `CASE ${others.join(" ")} ELSE '${accountId}' END`;
  for (let from = 0; from < requests; from += batch) {
    const until = Math.min(requests, from + batch);
    await db.unsafe(`
      INSERT INTO usage_records (request_id, at, account_id, key_id, environment, operation, model, outcome,
        prompt_tokens, completion_tokens, estimated, duration_ms, app_id, nano_usd, stream, first_token_ms, upstream)
      WITH RECURSIVE n (i) AS (SELECT ${from} UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ${until})
      SELECT 'req_01990000-0000-7000-8000-' || ${padded("i")}, ${start} + ${whole(`i * ${(end - start) / requests}`)},
        ${account}, 'key_01990000-0000-7000-8000-' || ${padded(uneven(keys))},
        '${environment}', 'chat', 'vendor/model-' || ${uneven(models)} || '-instruct',
        CASE WHEN ${below(64)} = 0 THEN 'failed' ELSE 'completed' END,
        ${below(4_096)}, ${below(1_024)}, 0, 2048 + ${below(8_192)}, NULL, ${below(1_048_576)}, i & 1,
        CASE WHEN (i & 1) = 1 THEN ${below(2_048)} END, 'vendor'
      FROM n`);
    onProgress(until);
  }
  for (const [span, seconds] of Object.entries(spans)) {
    await db.unsafe(`
      INSERT INTO usage_rollups (account_id, environment, span, start, key_id, app_id, model, requests, prompt_tokens,
        completion_tokens, nano_usd, errors, timed, first_token_ms, generated_tokens, generation_ms, first_at, last_at)
      SELECT account_id, environment, '${span}', at - at % ${seconds}, key_id, coalesce(app_id, ''), model, count(*),
        sum(prompt_tokens), sum(completion_tokens), sum(coalesce(nano_usd, 0)), sum(CASE WHEN outcome = 'failed' THEN 1 ELSE 0 END),
        count(first_token_ms), coalesce(sum(first_token_ms), 0),
        coalesce(sum(CASE WHEN duration_ms > first_token_ms THEN CASE WHEN completion_tokens > 1 THEN completion_tokens - 1 ELSE 0 END END), 0),
        coalesce(sum(duration_ms - first_token_ms), 0), min(at), max(at)
      FROM usage_records GROUP BY 1, 2, 4, 5, 6, 7`);
  }
}
