// Schemas of quotas for each time window: as they are set, and together with their use.
import { z } from "zod";
import { quotaOwners, quotaReasons, type SpentQuota } from "../base/errors.ts";
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

const unit = z.enum(quotaUnits).describe("Unit of the amount. `usd` is counted by the prices of the models.");
const amount = z.number().min(0).describe("Amount: a whole number of requests or tokens, or a number of USD.");
const per = z
  .union([z.enum(namedSpans), z.int().min(minSpanSeconds).max(maxSpanSeconds)])
  .describe("Length of the window: a named span, or seconds.");
const window = z
  .enum(windowKinds)
  .describe(
    "`calendar`: calendar spans in UTC, with weeks from Monday. `rolling`: from the first use for the length of the span, with months of 30 days. Default: `calendar`, but `rolling` for `5h` and seconds.",
  );
const models = z
  .array(z.string().min(1).max(maxModelPatternLength).regex(modelPatternPattern))
  .min(1)
  .max(maxQuotaModels)
  .describe("Model ids that the quota counts, or prefixes ending in `*`, such as `gpt-*`. Default: all models.");
const tag = tagShape.describe("Count only requests with this tag. Default: all requests.");
const hardStop = z
  .boolean()
  .describe(
    "True to cut an answer off as soon as the quota is used up, as with `max_tokens`. Only for tokens and USD. Default: an answer that has started is completed.",
  );

const amounts = { unit, amount, per };
const optional = { models: models.optional(), tag: tag.optional(), hard_stop: hardStop.optional() };

export const givenQuotas = z
  .array(z.object({ ...amounts, window: window.optional(), ...optional }))
  .max(maxQuotas)
  .describe("Quotas per window, in addition to the monthly quotas. All of them apply.");

export const shownQuotas = z
  .array(z.object({ ...amounts, window, ...optional }))
  .describe("Quotas per window, in addition to the monthly quotas.");

/** Returns the quota rules in the form that an answer has. */
export function rulesOnWire(rules: readonly QuotaRule[]): z.infer<typeof shownQuotas> {
  return rules.map(({ models: some, hardStop: isHard, ...rule }) => ({
    ...rule,
    ...(some && { models: [...some] }),
    ...(isHard && { hard_stop: true }),
  }));
}

const reason = z
  .enum(quotaReasons)
  .describe("Name of the quota. A quota for one tag is a `tag_quota`, whatever its owner is.");
const ask = z.string().describe("People who can raise the quota, such as `an owner or admin of the account`.");

export const usedQuotas = z.array(
  z.object({
    reason,
    owner: z
      .enum(quotaOwners)
      .describe(
        "Owner of the quota. For a key it can also be a key that created it, for a login the member. The quota of an organization counts all of its accounts.",
      ),
    owner_id: z.string(),
    unit,
    amount,
    used: z.number().describe("Usage in this window, without running requests."),
    left: z.number().describe("Rest of `amount`. 0 if more was used."),
    per,
    window,
    models: models.nullable().describe("null: all models."),
    tag: tag.nullable().describe("null: requests with any tags."),
    hard_stop: hardStop,
    starts_at: unixSeconds.nullable().describe("null: the window begins with the next use."),
    resets_at: unixSeconds.nullable(),
    ask,
  }),
);
/** Describes the quota because of which a request was refused. */
export const spentQuota = z
  .object({
    reason,
    owner: z.enum(quotaOwners),
    unit,
    limit: z.number(),
    used: z.number(),
    reserved: z.number().describe("Reserved for running requests."),
    needed: z.number().describe("Minimum that the request needs."),
    per,
    window,
    models: models.nullable().describe("null: all models."),
    tag: tag.nullable().describe("null: requests with any tags."),
    starts_at: unixSeconds.nullable(),
    resets_at: unixSeconds.nullable().describe("null: no window has begun, so waiting does not help."),
    ask,
  })
  .describe("Quota that refused the request. Only with `insufficient_quota`.") satisfies z.ZodType<SpentQuota>;
export type UsedQuotas = z.infer<typeof usedQuotas>;
