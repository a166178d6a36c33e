// Rules for quotas of requests, tokens and USD per window. Tiers, accounts and keys can have such rules.
import { calendarMonthOf } from "../../base/calendar-month.ts";
import { coversPattern } from "../models/model-patterns.ts";

export const quotaUnits = ["requests", "tokens", "usd"] as const;
export type QuotaUnit = (typeof quotaUnits)[number];

/** The named spans in seconds, as used for rolling windows. */
const namedSeconds = { hour: 3_600, "5h": 18_000, day: 86_400, week: 604_800, month: 2_592_000 } as const;
export type NamedSpan = keyof typeof namedSeconds;
export const namedSpans = Object.keys(namedSeconds) as NamedSpan[];
export const windowKinds = ["calendar", "rolling"] as const;
export type WindowKind = (typeof windowKinds)[number];

/** Minimum span in seconds. Rate limits are for shorter spans. */
export const minSpanSeconds = 60;
export const maxSpanSeconds = 31_622_400;
/** Maximum number of quotas. Each is checked with every request. */
export const maxQuotas = 16;
export const maxQuotaModels = 32;
/** Maximum characters of all models in one list of quotas. The list is read with each key that its quotas limit. */
export const maxModelsLength = 16 * 1024;
export const maxAmount = { requests: 1e12, tokens: 1e15, usd: 9_000_000 } as const satisfies Record<QuotaUnit, number>;

export interface QuotaRule {
  readonly unit: QuotaUnit;
  /** The maximum: whole requests, whole tokens, or USD. */
  readonly amount: number;
  readonly per: NamedSpan | number;
  readonly window: WindowKind;
  /** Model ids, or prefixes ending in `*`. Undefined means all models. */
  readonly models?: readonly string[];
  /** The rule counts only requests with this tag. Undefined means all requests. */
  readonly tag?: string;
  /**
   * If true, a running answer ends at the token that uses up the quota. Otherwise the answer is completed. Only for
   * tokens and USD.
   */
  readonly hardStop?: true;
}

/** A rule as people write it. If `window` is missing, the default depends on the span. */
export type GivenQuotaRule = Omit<QuotaRule, "window" | "models" | "tag" | "hardStop"> & {
  readonly window?: WindowKind | undefined;
  readonly models?: readonly string[] | undefined;
  readonly tag?: string | undefined;
  readonly hard_stop?: boolean | undefined;
};

/** A period in Unix seconds. `start` is included, `end` is not. */
export interface Period {
  start: number;
  end: number;
}

/**
 * The window of a quota. A `calendar` window follows the calendar in UTC. A `rolling` window begins with the first use.
 */
export interface QuotaWindow {
  readonly per: NamedSpan | number;
  readonly kind: WindowKind;
  /** The length in seconds. For a calendar month, this is approximate. */
  readonly seconds: number;
}

export function windowOf({ per, window: kind }: Pick<QuotaRule, "per" | "window">): QuotaWindow {
  return { per, kind, seconds: typeof per === "number" ? per : namedSeconds[per] };
}

/** Reports whether the calendar has periods of this span. */
export function hasCalendar(per: NamedSpan | number): boolean {
  return typeof per !== "number" && per !== "5h";
}

const daySeconds = 86_400;
/** Unix seconds of the first Monday after 1970 began. */
const firstMonday = 4 * daySeconds;

/** Returns the calendar window (UTC) that contains a moment. Weeks begin on Monday. */
export function calendarPeriod({ per, seconds }: QuotaWindow, unixSeconds: number): Period {
  if (per === "month") return calendarMonthOf(unixSeconds);
  const first = per === "week" ? firstMonday : 0;
  const start = first + Math.floor((unixSeconds - first) / seconds) * seconds;
  return { start, end: start + seconds };
}

/** Fills in the default window. Sorts the models and removes duplicates. */
export function quotaRuleOf(given: GivenQuotaRule): QuotaRule {
  const { unit, amount, per, window, models, tag, hard_stop: hardStop } = given;
  const kind = window ?? (hasCalendar(per) ? "calendar" : "rolling");
  const which = { ...(models && { models: [...new Set(models)].sort() }), ...(tag !== undefined && { tag }) };
  return { unit, amount, per, window: kind, ...which, ...(hardStop && { hardStop }) };
}

/**
 * Returns the first fault of the rules. `at` is the index of the faulty rule, and `must` continues a sentence that
 * begins with the field.
 */
export function quotaFault(rules: readonly GivenQuotaRule[]): { at: number; field: string; must: string } | undefined {
  const seen = new Set<string>();
  let length = 0;
  for (const [at, given] of rules.entries()) {
    length += given.models?.join("").length ?? 0;
    if (length > maxModelsLength) {
      return { at, field: "models", must: `must have at most ${maxModelsLength} characters together in all quotas` };
    }
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
    const key = quotaKey(quotaRuleOf(given));
    if (seen.has(key)) {
      return { at, field: "per", must: "must not be that of another quota of the same unit, window, models and tag" };
    }
    seen.add(key);
  }
  return undefined;
}

/**
 * Returns a text that identifies the quota that a rule describes. Rules that differ only in `amount` and `hardStop`
 * have the same text.
 */
export function quotaKey({ unit, per, window, models, tag }: Omit<QuotaRule, "amount" | "hardStop">): string {
  return JSON.stringify([unit, per, window, models, tag]);
}

/** Reports whether usage that the first rule allows never exceeds the second rule. */
export function isWithinRule(inner: QuotaRule, outer: QuotaRule): boolean {
  const isSame = inner.unit === outer.unit && inner.per === outer.per && inner.window === outer.window;
  if (!isSame || inner.amount > outer.amount || (outer.hardStop && !inner.hardStop)) return false;
  if (inner.tag !== undefined && inner.tag !== outer.tag) return false;
  if (inner.models === undefined) return true;
  return outer.models?.every((model) => inner.models?.some((pattern) => coversPattern(pattern, model))) ?? false;
}

/** Returns the span as text to follow "per": `hour`, `5 hours`, `90 seconds`. */
export function spanText(per: NamedSpan | number): string {
  if (per === "5h") return "5 hours";
  return typeof per === "number" ? `${per} seconds` : per;
}
