// Quotas per window while they are edited: the fields' values, their errors, and the request.
import type { ApiFailure } from "../../api/client.ts";
import type { ApiKey } from "../../api/types.ts";
import { numberOf, type TypedNumber } from "../editing/typed-number.ts";

/** A quota rule in the API's form. */
export type QuotaRule = ApiKey["quotas"][number];
type NamedSpan = Extract<QuotaRule["per"], string>;

/** Maximum number of quotas in one list. */
export const maxQuotas = 16;
export const maxQuotaModels = 32;
export const maxModelPatternLength = 256;
export const maxTagLength = 128;
const [minSpanSeconds, maxSpanSeconds] = [60, 31_622_400];
const modelPattern = /^[^\s*]+\*?$/;

export interface QuotaDraft {
  /** The React key of the rule. */
  key: number;
  unit: QuotaRule["unit"];
  amount: TypedNumber;
  per: NamedSpan | "other";
  /** The length of a custom span: the number of units, and the seconds of a unit. */
  span: TypedNumber;
  spanSeconds: number;
  window: QuotaRule["window"];
  /** The models whose requests count; empty means all models. */
  models: string[];
  /** The tag of the requests that count; empty means that all requests count, whatever their tags. */
  tag: string;
  /** If true, an answer ends at the token that exhausts the quota; has no effect on quotas of requests. */
  hardStop: boolean;
  /** Members of the rule that the form does not show; they are kept. */
  rest: Omit<QuotaRule, "unit" | "amount" | "per" | "window" | "models" | "tag" | "hard_stop">;
}

export const spanUnits: readonly [seconds: number, name: string][] = [
  [86_400, "days"],
  [3_600, "hours"],
  [60, "minutes"],
  [1, "seconds"],
];

export function quotaDraftsOf(rules: readonly QuotaRule[]): QuotaDraft[] {
  return rules.map(
    ({ unit, amount, per, window, models = [], tag = "", hard_stop: hardStop = false, ...rest }, key) => {
      const seconds = typeof per === "number" ? per : 3_600;
      const spanSeconds = spanUnits.find(([size]) => seconds % size === 0)?.[0] ?? 1;
      return {
        ...{ key, unit, amount, window, models: [...models], tag, hardStop, rest },
        ...{ per: typeof per === "number" ? "other" : per, span: seconds / spanSeconds, spanSeconds },
      };
    },
  );
}

/** Returns the list with one more empty quota. */
export function withNewQuota(drafts: readonly QuotaDraft[]): QuotaDraft[] {
  const key = Math.max(-1, ...drafts.map((one) => one.key)) + 1;
  const usual = { unit: "requests", amount: "", per: "day", window: "calendar" } as const;
  return [...drafts, { key, ...usual, span: 12, spanSeconds: 3_600, models: [], tag: "", hardStop: false, rest: {} }];
}

/** Reports whether the calendar has windows of this length. */
export function hasCalendar(per: QuotaDraft["per"]): boolean {
  return per !== "5h" && per !== "other";
}

/**
 * Returns the quota with another span; if the chosen window is not possible there, it gets the span's default window.
 */
export function withSpan(draft: QuotaDraft, per: QuotaDraft["per"]): QuotaDraft {
  if (!hasCalendar(per)) return { ...draft, per, window: "rolling" };
  return { ...draft, per, window: hasCalendar(draft.per) ? draft.window : "calendar" };
}

/** Returns the rule for the API; NaN stands for numbers that are not typed yet. */
export function ruleOf(draft: QuotaDraft): QuotaRule {
  const { unit, amount, per, span, spanSeconds, window, models, tag, hardStop, rest } = draft;
  return {
    ...rest,
    ...{ unit, amount: numberOf(amount) ?? Number.NaN, window },
    per: per === "other" ? (numberOf(span) ?? Number.NaN) * spanSeconds : per,
    ...(models.length > 0 ? { models } : {}),
    ...(tag.trim() === "" ? {} : { tag: tag.trim() }),
    ...(hardStop && unit !== "requests" ? { hard_stop: true } : {}),
  };
}

export function rulesOf(drafts: readonly QuotaDraft[]): QuotaRule[] {
  return drafts.map(ruleOf);
}

interface Kind extends Pick<QuotaRule, "unit" | "per" | "window"> {
  models?: readonly string[] | null;
  tag?: string | null;
}

/** Returns the key of a rule within its list. The server refuses two rules with the same key. */
export function kindOf({ unit, per, window, models, tag }: Kind): string {
  return JSON.stringify([unit, per, window, [...new Set(models ?? [])].sort(), tag ?? null]);
}

/** Returns the first error in the server's form: the position, the field and the fault. */
export function quotasError(drafts: readonly QuotaDraft[]): string | undefined {
  const seen = new Set<string>();
  for (const [at, draft] of drafts.entries()) {
    const rule = ruleOf(draft);
    const strange = draft.models.find((text) => !modelPattern.test(text));
    const kind = kindOf(rule);
    if (!Number.isFinite(rule.amount)) return `quotas[${at}].amount: enter an amount.`;
    if (rule.unit !== "usd" && !Number.isInteger(rule.amount)) {
      return `quotas[${at}].amount: must be a whole number of ${rule.unit}.`;
    }
    if (typeof rule.per === "number" && !(rule.per >= minSpanSeconds && rule.per <= maxSpanSeconds)) {
      return `quotas[${at}].per: must be from one minute to 366 days.`;
    }
    if (strange !== undefined) {
      return `quotas[${at}].models: ${strange} is not a model id or a prefix such as gpt-*.`;
    }
    if (seen.has(kind))
      return `quotas[${at}].per: the list already has a quota of this kind. Change that quota instead.`;
    seen.add(kind);
  }
  return undefined;
}

/** Returns the complete message of a server's error about quotas, or undefined for other errors. */
export function quotasProblemOf(error: ApiFailure | null): string | undefined {
  return error && /^quotas\b/.test(error.message) ? error.message : undefined;
}

export interface QuotaProblem {
  /** The position of the faulty quota; undefined if the error is about the whole list. */
  at: number | undefined;
  field: string | undefined;
  text: string;
}

export function readQuotaProblem(message: string): QuotaProblem {
  const [, at, field, text = message] = /^quotas(?:\[(\d+)\](?:\.([a-z_]+))?[^\s:]*)?: (.+)$/s.exec(message) ?? [];
  return {
    at: at === undefined ? undefined : Number(at),
    field,
    text: text.charAt(0).toUpperCase() + text.slice(1),
  };
}
