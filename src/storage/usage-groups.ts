// What many records of a batch have in common, and their sums by hour and day.
import type { UsageRecord } from "../domain/usage.ts";

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
      group = { common: record, hour, records: [], promptTokens: 0, completionTokens: 0, nanoUsd: 0 };
      ofKey.push(group);
      groups.push(group);
    }
    group.records.push(record);
    group.promptTokens += record.promptTokens;
    group.completionTokens += record.completionTokens;
    group.nanoUsd += record.nanoUsd ?? 0;
  }
  return groups;
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

/** A row of the roll-ups: account, environment, span, start, key, app, model; requests, prompt and completion tokens, nano-USD, errors. */
export type RollupRow = [string, string, "hour" | "day", number, string, string, string, ...Sums];
type Sums = [number, number, number, number, number];

/** Each row of the roll-ups once. */
export function rollUp(groups: readonly UsageGroup[]): RollupRow[] {
  const rows = new Map<string, RollupRow>();
  for (const group of groups) {
    const { accountId, environment, keyId, appId, model, outcome } = group.common;
    const requests = group.records.length;
    const errors = outcome === "failed" ? requests : 0;
    for (const span of ["hour", "day"] as const) {
      const start = span === "hour" ? group.hour : group.hour - (group.hour % daySeconds);
      const key = JSON.stringify([accountId, environment, span, start, keyId, appId, model]);
      // No app is '' in the primary key, where nothing may be null.
      const row = rows.get(key) ?? [accountId, environment, span, start, keyId, appId ?? "", model, 0, 0, 0, 0, 0];
      row[7] += requests;
      row[8] += group.promptTokens;
      row[9] += group.completionTokens;
      row[10] += group.nanoUsd;
      row[11] += errors;
      rows.set(key, row);
    }
  }
  return [...rows.values()];
}
