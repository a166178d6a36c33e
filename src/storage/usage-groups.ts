// What many records of a batch have in common, and their sums by hour and day.
import { generationOf, type UsageRecord } from "../domain/usage.ts";

const hourSeconds = 3_600;
const daySeconds = 86_400;

/** Records of one hour that differ in nothing but their id, their second, their numbers and their times. */
export interface UsageGroup {
  /** Any of them, for what they have in common. */
  common: UsageRecord;
  /** Unix seconds. */
  hour: number;
  records: UsageRecord[];
  promptTokens: number;
  completionTokens: number;
  nanoUsd: number;
  timed: number;
  firstTokenMs: number;
  generatedTokens: number;
  generationMs: number;
  /** Unix seconds of the first and the last of them. */
  firstAt: number;
  lastAt: number;
}

/** In the order in which they came, within each group. */
export function groupUsage(records: readonly UsageRecord[]): UsageGroup[] {
  const groups: UsageGroup[] = [];
  const byKey = new Map<string, UsageGroup[]>();
  for (const record of records) {
    const hour = record.at - (record.at % hourSeconds);
    let ofKey = byKey.get(record.keyId);
    if (ofKey === undefined) {
      ofKey = [];
      byKey.set(record.keyId, ofKey);
    }
    let group: UsageGroup | undefined;
    for (const one of ofKey) {
      if (one.hour !== hour || !isAlike(one.common, record)) continue;
      group = one;
      break;
    }
    if (group === undefined) {
      group = emptyGroup(record, hour);
      ofKey.push(group);
      groups.push(group);
    }
    group.records.push(record);
    group.promptTokens += record.promptTokens;
    group.completionTokens += record.completionTokens;
    group.nanoUsd += record.nanoUsd ?? 0;
    if (record.at < group.firstAt) group.firstAt = record.at;
    if (record.at > group.lastAt) group.lastAt = record.at;
    const generation = generationOf(record);
    if (generation === null) continue;
    group.timed++;
    group.firstTokenMs += record.firstTokenMs ?? 0;
    group.generatedTokens += generation.tokens;
    group.generationMs += generation.ms;
  }
  return groups;
}

function emptyGroup(common: UsageRecord, hour: number): UsageGroup {
  const { at } = common;
  const noTokens = { promptTokens: 0, completionTokens: 0, nanoUsd: 0 };
  const noTimes = { timed: 0, firstTokenMs: 0, generatedTokens: 0, generationMs: 0 };
  return { common, hour, records: [], ...noTokens, ...noTimes, firstAt: at, lastAt: at };
}

/** Of two records of one key. */
function isAlike(one: UsageRecord, other: UsageRecord): boolean {
  return (
    one.model === other.model &&
    one.outcome === other.outcome &&
    one.stream === other.stream &&
    one.upstream === other.upstream &&
    one.estimated === other.estimated &&
    one.errorCode === other.errorCode &&
    one.appId === other.appId &&
    one.operation === other.operation &&
    one.capped === other.capped &&
    one.environment === other.environment &&
    one.accountId === other.accountId
  );
}

/** A row of the roll-ups, in the order of `rollupColumns`. */
export type RollupRow = [string, string, "hour" | "day", number, string, string, string, ...Sums, ...Times];
type Sums = [number, number, number, number, number, number, number, number, number];
type Times = [firstAt: number, lastAt: number];

/** Those that tell a row from the others, those that add up, and the first and the last second in which something is. */
export const rollupColumns = {
  key: ["account_id", "environment", "span", "start", "key_id", "app_id", "model"],
  sums: [
    "requests",
    "prompt_tokens",
    "completion_tokens",
    "nano_usd",
    "errors",
    "timed",
    "first_token_ms",
    "generated_tokens",
    "generation_ms",
  ],
  times: ["first_at", "last_at"],
} as const;

/** Each row of the roll-ups once. */
export function rollUp(groups: readonly UsageGroup[]): RollupRow[] {
  const rows = new Map<string, RollupRow>();
  for (const group of groups) {
    const { accountId, environment, keyId, appId, model, outcome } = group.common;
    const { firstAt, lastAt } = group;
    const requests = group.records.length;
    const errors = outcome === "failed" ? requests : 0;
    for (const span of ["hour", "day"] as const) {
      const start = span === "hour" ? group.hour : group.hour - (group.hour % daySeconds);
      const key = JSON.stringify([accountId, environment, span, start, keyId, appId, model]);
      // No app is '' in the primary key, where nothing may be null.
      let row = rows.get(key);
      if (row === undefined) {
        row = [
          accountId,
          environment,
          span,
          start,
          keyId,
          appId ?? "",
          model,
          0,
          0,
          0,
          0,
          0,
          0,
          0,
          0,
          0,
          firstAt,
          lastAt,
        ];
        rows.set(key, row);
      }
      row[7] += requests;
      row[8] += group.promptTokens;
      row[9] += group.completionTokens;
      row[10] += group.nanoUsd;
      row[11] += errors;
      row[12] += group.timed;
      row[13] += group.firstTokenMs;
      row[14] += group.generatedTokens;
      row[15] += group.generationMs;
      row[16] = Math.min(row[16], firstAt);
      row[17] = Math.max(row[17], lastAt);
    }
  }
  return [...rows.values()];
}
