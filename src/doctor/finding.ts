// The finding of a check on one thing, and what to do about it.

/** `skipped`: not looked at, for the reason that `found` gives; it is neither good nor bad. */
export const levels = ["ok", "skipped", "warning", "failure"] as const;
export type Level = (typeof levels)[number];

export interface Finding {
  /** The thing that was looked at, in a word or two. */
  name: string;
  level: Level;
  /** A sentence without a full stop. Never a secret. */
  found: string;
  /** The command to run or the setting to change; a full sentence. */
  remedy?: string;
  /** The request that was sent, where that is not plain from the name. */
  sent?: string;
}

/** What a look found; undefined stands for what there is nothing to say of. */
export type Findings = Finding | undefined | readonly (Finding | undefined)[];

/** One look; it gives up when `signal` is aborted. What it throws is told as a failure of itself. */
export interface Check {
  /** The name in words, shown when the check does not end in time. */
  name: string;
  run(signal: AbortSignal): Findings | Promise<Findings>;
  /** Milliseconds; left out: as for all. */
  deadlineMs?: number;
}

export interface Group {
  title: string;
  checks: readonly Check[];
}

export interface GroupReport {
  title: string;
  findings: readonly Finding[];
}

export function ok(name: string, found: string): Finding {
  return { name, level: "ok", found };
}

export function skipped(name: string, found: string): Finding {
  return { name, level: "skipped", found };
}

export function warning(name: string, found: string, remedy: string): Finding {
  return { name, level: "warning", found, remedy };
}

export function failure(name: string, found: string, remedy: string): Finding {
  return { name, level: "failure", found, remedy };
}

/** Number of findings of each level. */
export function countLevels(reports: readonly GroupReport[]): Readonly<Record<Level, number>> {
  const counts = { ok: 0, skipped: 0, warning: 0, failure: 0 };
  for (const { findings } of reports) for (const { level } of findings) counts[level]++;
  return counts;
}
