// The shapes of quotas per window on the wire: as they are given, and what was used of them.
import { z } from "zod";
import type { SpentQuota } from "../base/errors.ts";
import {
  maxQuotaModels,
  maxQuotas,
  maxSpanSeconds,
  minSpanSeconds,
  namedSpans,
  type QuotaRule,
  quotaUnits,
  windowKinds,
} from "../domain/limits/quota-rules.ts";
import { maxModelPatternLength, modelPatternPattern } from "../domain/models/model-patterns.ts";
import { unixSeconds } from "./parts.ts";
import { tag as tagShape } from "./tags.ts";

const unit = z.enum(quotaUnits).describe("`usd` by the prices of the models.");
const amount = z.number().min(0).describe("Whole requests or tokens, or USD.");
const per = z
  .union([z.enum(namedSpans), z.int().min(minSpanSeconds).max(maxSpanSeconds)])
  .describe("A span with a name, or seconds.");
const window = z
  .enum(windowKinds)
  .describe(
    "`calendar`: in UTC, a week from Monday on; `rolling`: from the first use on, for as long as the span, a month 30 days. By default that of the calendar; of `5h` and seconds, which it does not have, `rolling`.",
  );
const models = z
  .array(z.string().min(1).max(maxModelPatternLength).regex(modelPatternPattern))
  .min(1)
  .max(maxQuotaModels)
  .describe("Ids of models, and beginnings of ids with an asterisk such as `gpt-*`. Left out: all models.");
const tag = tagShape.describe("Only requests that have this tag. Left out: whatever tags they have.");
const hardStop = z
  .boolean()
  .describe(
    "Whether an answer ends at the token where the quota is spent, as if it had reached `max_tokens`. Only of tokens and USD. Left out: it goes on to its own end.",
  );

const amounts = { unit, amount, per };
const optional = { models: models.optional(), tag: tag.optional(), hard_stop: hardStop.optional() };

export const givenQuotas = z
  .array(z.object({ ...amounts, window: window.optional(), ...optional }))
  .max(maxQuotas)
  .describe("Quotas per window, beside those of a calendar month; all of them hold.");

export const shownQuotas = z
  .array(z.object({ ...amounts, window, ...optional }))
  .describe("Quotas per window, beside those of a calendar month.");

/** Rules as they are shown. */
export function rulesOnWire(rules: readonly QuotaRule[]): z.infer<typeof shownQuotas> {
  return rules.map(({ models: some, hardStop: isHard, ...rule }) => ({
    ...rule,
    ...(some && { models: [...some] }),
    ...(isHard && { hard_stop: true }),
  }));
}

export const usedQuotas = z.array(
  z.object({
    owner: z
      .enum(["account", "key", "member", "app"])
      .describe("Whose it is: of a key also that of a key that made it, of a login the member's."),
    owner_id: z.string(),
    unit,
    amount,
    used: z.number().describe("In this window; requests still running are left out."),
    left: z.number().describe("What is left of `amount`; 0 where more was used."),
    per,
    window,
    models: models.nullable().describe("null: all models."),
    tag: tag.nullable().describe("null: whatever tags a request has."),
    hard_stop: hardStop,
    starts_at: unixSeconds.nullable().describe("null: it begins with the next use."),
    resets_at: unixSeconds.nullable(),
  }),
);
/** The quota that refused a request. */
export const spentQuota = z
  .object({
    owner: z.enum(["account", "key", "member", "app"]),
    unit,
    limit: z.number(),
    used: z.number(),
    reserved: z.number().describe("Set aside for requests that are still running."),
    needed: z.number().describe("The least that the request needs."),
    per,
    window,
    models: models.nullable().describe("null: all models."),
    tag: tag.nullable().describe("null: whatever tags a request has."),
    starts_at: unixSeconds.nullable(),
    resets_at: unixSeconds.nullable().describe("null: none is in use, and waiting does not help."),
  })
  .describe("The quota that refused the request, only with `insufficient_quota`.") satisfies z.ZodType<SpentQuota>;
export type UsedQuotas = z.infer<typeof usedQuotas>;
