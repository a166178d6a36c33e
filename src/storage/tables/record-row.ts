// Converts a row of `usage_records` of either database to a record. Hand-written, because thousands are read at once.
import type { Environment } from "../../domain/api-key.ts";
import type { BookedOperation } from "../../domain/models/operation.ts";
import type { UsageOutcome, UsageRecord } from "../../domain/usage/usage.ts";
import type { UsageParts } from "../../domain/usage/usage-parts.ts";
import { readDetails } from "./details-text.ts";
import { readTags } from "./tags-text.ts";
import { readTrail } from "./trail-text.ts";

/** A row of `usage_records`. PostgreSQL returns large integers as text. */
export interface RecordRow {
  request_id: string;
  at: number | string;
  account_id: string;
  key_id: string;
  app_id: string | null;
  environment: Environment;
  operation: BookedOperation;
  duration_ms: number | string;
  model: string;
  stream: number;
  outcome: UsageOutcome;
  error_code: string | null;
  prompt_tokens: number | string;
  completion_tokens: number | string;
  estimated: number;
  nano_usd: number | string | null;
  capped: number;
  upstream: string | null;
  first_token_ms: number | string | null;
  queue_ms: number | string;
  trail: string | null;
  cached_tokens: number | string;
  cache_write_tokens: number | string;
  reasoning_tokens: number | string;
  details: string | null;
  tags: string | null;
}

function partsOf(row: RecordRow): UsageParts | undefined {
  const [cachedTokens, cacheWriteTokens] = [Number(row.cached_tokens), Number(row.cache_write_tokens)];
  const reasoningTokens = Number(row.reasoning_tokens);
  if (cachedTokens + cacheWriteTokens + reasoningTokens === 0 && row.details === null) return undefined;
  const details = row.details === null ? undefined : readDetails(row.details);
  return { cachedTokens, cacheWriteTokens, reasoningTokens, details };
}

export function recordOf(row: RecordRow): UsageRecord {
  const trail = row.trail === null ? undefined : readTrail(row.trail);
  return {
    requestId: row.request_id,
    at: Number(row.at),
    accountId: row.account_id,
    keyId: row.key_id,
    appId: row.app_id,
    environment: row.environment,
    operation: row.operation,
    durationMs: Number(row.duration_ms),
    model: row.model,
    stream: Number(row.stream) === 1,
    tags: readTags(row.tags),
    outcome: row.outcome,
    errorCode: row.error_code,
    promptTokens: Number(row.prompt_tokens),
    completionTokens: Number(row.completion_tokens),
    parts: partsOf(row),
    estimated: Number(row.estimated) === 1,
    nanoUsd: row.nano_usd === null ? null : Number(row.nano_usd),
    capped: Number(row.capped) === 1,
    upstream: row.upstream,
    firstTokenMs: row.first_token_ms === null ? null : Number(row.first_token_ms),
    queueMs: Number(row.queue_ms),
    trail,
  };
}
