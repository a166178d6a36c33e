// A ledger with a past: rows of requests that never were, and their roll-ups, written by the database itself.
import type { Database } from "../src/storage/database.ts";

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
  const uneven = (count: number) =>
    `CAST(${count} * ((random() & 65535) / 65536.0) * ((random() & 65535) / 65536.0) AS INTEGER)`;
  const others = sparse.map((one, i) => `WHEN i % ${one.oneOf} = ${i + 1} THEN '${one.accountId}'`);
  const account = others.length === 0 ? `'${accountId}'` : `CASE ${others.join(" ")} ELSE '${accountId}' END`;
  for (let from = 0; from < requests; from += batch) {
    const until = Math.min(requests, from + batch);
    await db.unsafe(`
      INSERT INTO usage_records (request_id, at, account_id, key_id, environment, operation, model, outcome,
        prompt_tokens, completion_tokens, estimated, duration_ms, app_id, nano_usd, stream, first_token_ms, upstream)
      WITH RECURSIVE n (i) AS (SELECT ${from} UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ${until})
      SELECT printf('req_01990000-0000-7000-8000-%012d', i), ${start} + CAST(i * ${(end - start) / requests} AS INTEGER),
        ${account}, printf('key_01990000-0000-7000-8000-%012d', ${uneven(keys)}),
        '${environment}', 'chat', printf('vendor/model-%d-instruct', ${uneven(models)}),
        CASE WHEN random() & 63 = 0 THEN 'failed' ELSE 'completed' END,
        random() & 4095, random() & 1023, 0, 2048 + (random() & 8191), NULL, random() & 1048575, i & 1,
        CASE WHEN i & 1 THEN random() & 2047 END, 'vendor'
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
        coalesce(sum(CASE WHEN duration_ms > first_token_ms THEN max(completion_tokens - 1, 0) END), 0),
        coalesce(sum(duration_ms - first_token_ms), 0), min(at), max(at)
      FROM usage_records GROUP BY 1, 2, 4, 5, 6, 7`);
  }
}
