// The result of a check: what was found, and what to do about it.

/** `skipped` means that the check was not possible; `found` gives the reason. */
export const levels = ["ok", "skipped", "warning", "failure"] as const;
export type Level = (typeof levels)[number];

export interface Finding {
  /** The checked thing, in a word or two. */
  name: string;
  level: Level;
  /** The finding: a sentence without a full stop. Never contains a secret. */
  found: string;
  /** The command to run or the setting to change, as a full sentence. */
  remedy?: string;
  /** The request that was sent, if the name does not say it. */
  sent?: string;
}

/** The result of a check. Undefined if there is nothing to report. */
export type Findings = Finding | undefined | readonly (Finding | undefined)[];

/** One check. It must stop when `signal` is aborted. An exception is reported as a failure of the check. */
export interface Check {
  /** The checked thing, in words. Shown if the check does not end in time. */
  name: string;
  run(signal: AbortSignal): Findings | Promise<Findings>;
  /** The deadline of this check in milliseconds. If missing, the default applies. */
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

/** Returns the number of findings of each level. */
export function countLevels(reports: readonly GroupReport[]): Readonly<Record<Level, number>> {
  const counts = { ok: 0, skipped: 0, warning: 0, failure: 0 };
  for (const { findings } of reports) for (const { level } of findings) counts[level]++;
  return counts;
}
