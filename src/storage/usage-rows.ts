// Usage in the database: records and their roll-ups, written in one transaction, and an owner's totals.
import type { UsageRecord, UsageTotals } from "../domain/usage.ts";
import type { Database } from "./database.ts";

const spans = { hour: 3_600, day: 86_400 };

/** Whose totals: an account's, or those of a key and of everything that counts against it. */
export interface UsageOwner {
  type: "key" | "account";
  id: string;
  environment: string;
  /** Unix seconds: from `since`, before `until`; both the start of a day (UTC). */
  since: number;
  until: number;
}

/**
 * Adds what is not there yet, records and roll-ups together or none; resolves to the number of records that were new.
 * A request id counts once, its first record stands. At most some hundred at a time: a statement's variables are limited.
 */
export async function insertUsage(db: Database, records: readonly UsageRecord[]): Promise<number> {
  // All queries share one connection, and what another task of this turn of the event loop writes meanwhile would be part
  // of this transaction, and lost with it. In a turn of its own nothing comes between: SQLite answers without waiting.
  await new Promise((resolve) => setImmediate(resolve));
  let count = 0;
  await db.begin(async (tx) => {
    const inserted: { request_id: string }[] = await tx`
      INSERT INTO usage_records ${tx(records.map(toRow))} ON CONFLICT (request_id) DO NOTHING RETURNING request_id`;
    const fresh = new Set(inserted.map((row) => row.request_id));
    count = fresh.size;
    if (count === 0) return;
    const rollups = rollUp(records.filter((record) => fresh.delete(record.requestId)));
    await tx`
      INSERT INTO usage_rollups ${tx(rollups)}
      ON CONFLICT (account_id, environment, span, start, key_id, app_id, model) DO UPDATE SET
        requests = usage_rollups.requests + excluded.requests,
        prompt_tokens = usage_rollups.prompt_tokens + excluded.prompt_tokens,
        completion_tokens = usage_rollups.completion_tokens + excluded.completion_tokens,
        nano_usd = usage_rollups.nano_usd + excluded.nano_usd,
        errors = usage_rollups.errors + excluded.errors`;
  });
  return count;
}

/** The sums of what is in the database, and which of the records that are not there yet belong to the same owner. */
export async function readOwnerTotals(
  db: Database,
  owner: UsageOwner,
): Promise<{ totals: UsageTotals; owns: (record: UsageRecord) => boolean }> {
  const { type, id, environment, since, until } = owner;
  const inTime = (record: UsageRecord) => record.environment === environment && record.at >= since && record.at < until;
  if (type === "account") {
    const [row] = await db`
      SELECT coalesce(sum(prompt_tokens + completion_tokens), 0) AS tokens, coalesce(sum(nano_usd), 0) AS nano_usd
      FROM usage_rollups
      WHERE account_id = ${id} AND environment = ${environment} AND span = 'day' AND start >= ${since} AND start < ${until}`;
    return { totals: totalsOf(row), owns: (record) => record.accountId === id && inTime(record) };
  }
  const keyIds = await readFamily(db, id);
  const [row] = await db`
    SELECT coalesce(sum(prompt_tokens + completion_tokens), 0) AS tokens, coalesce(sum(nano_usd), 0) AS nano_usd
    FROM usage_rollups
    WHERE key_id IN ${db([...keyIds])} AND environment = ${environment} AND span = 'day' AND start >= ${since} AND start < ${until}`;
  return { totals: totalsOf(row), owns: (record) => keyIds.has(record.keyId) && inTime(record) };
}

/** A key, those with which it shares its limit after rotations, and the keys that these made: they count against it. */
async function readFamily(db: Database, id: string): Promise<Set<string>> {
  const rows: { id: string }[] = await db`
    WITH RECURSIVE family (id) AS (
      SELECT id FROM api_keys
      WHERE id = ${id} OR limit_id = ${id} OR limit_id = (SELECT limit_id FROM api_keys WHERE id = ${id})
      UNION
      SELECT api_keys.id FROM api_keys JOIN family ON api_keys.parent_id = family.id
    )
    SELECT id FROM family`;
  return new Set([id, ...rows.map((row) => row.id)]);
}

function totalsOf(row: { tokens: number | string; nano_usd: number | string }): UsageTotals {
  return { tokens: Number(row.tokens), nanoUsd: Number(row.nano_usd) };
}

function rollUp(records: readonly UsageRecord[]) {
  const rows = new Map<string, ReturnType<typeof emptyRollup>>();
  for (const record of records) {
    for (const [span, seconds] of Object.entries(spans)) {
      const start = record.at - (record.at % seconds);
      const { accountId, environment, keyId, appId, model } = record;
      const key = JSON.stringify([accountId, environment, span, start, keyId, appId, model]);
      let row = rows.get(key);
      if (!row) {
        row = emptyRollup(record, span, start);
        rows.set(key, row);
      }
      row.requests += 1;
      row.prompt_tokens += record.promptTokens;
      row.completion_tokens += record.completionTokens;
      row.nano_usd += record.nanoUsd ?? 0;
      row.errors += record.outcome === "failed" ? 1 : 0;
    }
  }
  return [...rows.values()];
}

function emptyRollup(record: UsageRecord, span: string, start: number) {
  return {
    account_id: record.accountId,
    environment: record.environment,
    span,
    start,
    key_id: record.keyId,
    // Part of the primary key, so never null.
    app_id: record.appId ?? "",
    model: record.model,
    requests: 0,
    prompt_tokens: 0,
    completion_tokens: 0,
    nano_usd: 0,
    errors: 0,
  };
}

function toRow(record: UsageRecord) {
  return {
    request_id: record.requestId,
    at: record.at,
    account_id: record.accountId,
    key_id: record.keyId,
    app_id: record.appId,
    environment: record.environment,
    operation: record.operation,
    model: record.model,
    stream: record.stream ? 1 : 0,
    outcome: record.outcome,
    error_code: record.errorCode,
    prompt_tokens: record.promptTokens,
    completion_tokens: record.completionTokens,
    estimated: record.estimated ? 1 : 0,
    nano_usd: record.nanoUsd,
    capped: record.capped ? 1 : 0,
    upstream: record.upstream,
    duration_ms: record.durationMs,
    first_token_ms: record.firstTokenMs,
    queue_ms: record.queueMs,
  };
}
