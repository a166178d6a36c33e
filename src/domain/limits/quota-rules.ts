// Quotas of requests, tokens and USD per window of time, as tiers, accounts and keys are given them, and the windows themselves.
import { calendarMonthOf } from "../../base/calendar-month.ts";
import { coversPattern } from "../models/model-patterns.ts";

export const quotaUnits = ["requests", "tokens", "usd"] as const;
export type QuotaUnit = (typeof quotaUnits)[number];

/** Windows that have a name, and how long a rolling one is. */
const namedSeconds = { hour: 3_600, "5h": 18_000, day: 86_400, week: 604_800, month: 2_592_000 } as const;
export type NamedSpan = keyof typeof namedSeconds;
export const namedSpans = Object.keys(namedSeconds) as NamedSpan[];
export const windowKinds = ["calendar", "rolling"] as const;
export type WindowKind = (typeof windowKinds)[number];

/** A span in seconds: of less a rate limit is what is meant. */
export const minSpanSeconds = 60;
export const maxSpanSeconds = 31_622_400;
/** Each is one more to be decided about with every request. */
export const maxQuotas = 16;
export const maxQuotaModels = 32;
export const maxAmount = { requests: 1e12, tokens: 1e15, usd: 9_000_000 } as const satisfies Record<QuotaUnit, number>;

export interface QuotaRule {
  readonly unit: QuotaUnit;
  /** Whole requests or tokens, or USD. */
  readonly amount: number;
  readonly per: NamedSpan | number;
  readonly window: WindowKind;
  /** Ids of models, and beginnings of ids with an asterisk; undefined: all models. */
  readonly models?: readonly string[];
  /** Only requests that have this tag; undefined: whatever tags they have. */
  readonly tag?: string;
  /** An answer ends at the token where it is spent; undefined: it goes on to its own end. Only of tokens and USD. */
  readonly hardStop?: true;
}

/** A rule in the form in which it may be written: `window` follows from the span where nothing is said. */
export type GivenQuotaRule = Omit<QuotaRule, "window" | "models" | "tag" | "hardStop"> & {
  readonly window?: WindowKind | undefined;
  readonly models?: readonly string[] | undefined;
  readonly tag?: string | undefined;
  readonly hard_stop?: boolean | undefined;
};

/** Unix seconds: from `start`, before `end`. */
export interface Period {
  start: number;
  end: number;
}

/** The window of a quota: in UTC by the calendar, or from its first use on. */
export interface QuotaWindow {
  readonly per: NamedSpan | number;
  readonly kind: WindowKind;
  /** How long it is; of a calendar month only about. */
  readonly seconds: number;
}

export function windowOf({ per, window: kind }: Pick<QuotaRule, "per" | "window">): QuotaWindow {
  return { per, kind, seconds: typeof per === "number" ? per : namedSeconds[per] };
}

/** Whether the calendar has such windows. */
export function hasCalendar(per: NamedSpan | number): boolean {
  return typeof per !== "number" && per !== "5h";
}

const daySeconds = 86_400;
/** The first Monday of Unix time. */
const firstMonday = 4 * daySeconds;

/** The window of the calendar, in UTC, that a moment is in. A week begins on Monday. */
export function calendarPeriod({ per, seconds }: QuotaWindow, unixSeconds: number): Period {
  if (per === "month") return calendarMonthOf(unixSeconds);
  const first = per === "week" ? firstMonday : 0;
  const start = first + Math.floor((unixSeconds - first) / seconds) * seconds;
  return { start, end: start + seconds };
}

/** With the usual window where none is said, and each model once, in order. */
export function quotaRuleOf(given: GivenQuotaRule): QuotaRule {
  const { unit, amount, per, window, models, tag, hard_stop: hardStop } = given;
  const kind = window ?? (hasCalendar(per) ? "calendar" : "rolling");
  const which = { ...(models && { models: [...new Set(models)].sort() }), ...(tag !== undefined && { tag }) };
  return { unit, amount, per, window: kind, ...which, ...(hardStop && { hardStop }) };
}

/** What is wrong with rules that have the right shape: the place, and the rest of a sentence about it. */
export function quotaFault(rules: readonly GivenQuotaRule[]): { at: number; field: string; must: string } | undefined {
  const seen = new Set<string>();
  for (const [at, given] of rules.entries()) {
    if (given.window === "calendar" && !hasCalendar(given.per)) {
      return { at, field: "window", must: `must be rolling, as no calendar has windows of ${spanText(given.per)}` };
    }
    if (given.unit !== "usd" && !Number.isInteger(given.amount)) {
      return { at, field: "amount", must: `must be a whole number of ${given.unit}` };
    }
    if (given.amount > maxAmount[given.unit]) {
      return { at, field: "amount", must: `must be at most ${maxAmount[given.unit]} ${given.unit}` };
    }
    if (given.hard_stop && given.unit === "requests") {
      return {
        at,
        field: "hard_stop",
        must: "must be left out of a quota of requests, of which an answer uses no more as it goes",
      };
    }
    const rule = quotaRuleOf(given);
    const place = JSON.stringify([rule.unit, rule.per, rule.window, rule.models, rule.tag]);
    if (seen.has(place)) {
      return { at, field: "per", must: "must not be that of another quota of the same unit, window, models and tag" };
    }
    seen.add(place);
  }
  return undefined;
}

/** Whether what is within the first is within the second as well. */
export function isWithinRule(inner: QuotaRule, outer: QuotaRule): boolean {
  const isSame = inner.unit === outer.unit && inner.per === outer.per && inner.window === outer.window;
  if (!isSame || inner.amount > outer.amount || (outer.hardStop && !inner.hardStop)) return false;
  if (inner.tag !== undefined && inner.tag !== outer.tag) return false;
  if (inner.models === undefined) return true;
  return outer.models?.every((model) => inner.models?.some((pattern) => coversPattern(pattern, model))) ?? false;
}

/** `hour`, `5 hours`, `90 seconds`: behind "per". */
export function spanText(per: NamedSpan | number): string {
  if (per === "5h") return "5 hours";
  return typeof per === "number" ? `${per} seconds` : per;
}
