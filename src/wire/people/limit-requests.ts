// Schemas of requests in which people ask for more of a quota.
import { z } from "zod";
import { environments } from "../../domain/api-key.ts";
import { type ListedLimitRequest, maxReasonLength } from "../../domain/limits/limit-requests.ts";
import { maxAmount } from "../../domain/limits/quota-rules.ts";
import { unixSeconds } from "../parts.ts";
import { givenQuotas, shownQuotas } from "../quotas.ts";

const owner = z
  .enum(["member", "account"])
  .describe("Owner of the quota: the member who asks, or the account of which they are an owner or admin.");
const more = z
  .number()
  .positive()
  .max(Math.max(...Object.values(maxAmount)));
const { amount: _, ...shown } = shownQuotas.element.omit({ hard_stop: true }).shape;

export const openLimitRequest = givenQuotas.element
  .omit({ hard_stop: true, amount: true })
  .extend({
    owner: owner.nullish(),
    amount: more.nullish().describe("Amount that is wanted in addition. Missing: whoever decides chooses it."),
    reason: z.string().min(1).max(maxReasonLength).describe("Reason for the people who decide, in one line."),
  })
  .meta({ id: "CreateLimitRequest" });

export const grantLimitRequest = z
  .object({
    amount: more.describe("Amount that is added to the quota, in its unit."),
    seconds: z.int().min(60).max(31_622_400).describe("Time after which the quota is as before, in seconds."),
  })
  .meta({ id: "GrantLimitRequest" });

export const limitRequestShape = z
  .object({
    object: z.literal("limit_request"),
    id: z.string(),
    account_id: z.string(),
    environment: z.enum(environments),
    owner,
    person: z.object({ id: z.string(), email: z.string(), name: z.string() }),
    ...shown,
    amount: z.number().nullable().describe("Amount that is wanted in addition. null: whoever decides chooses it."),
    reason: z.string(),
    status: z
      .enum(["open", "granted", "ended", "refused"])
      .describe("`ended`: the time of the raise is over. A raise that was ended early is `refused`."),
    created_at: unixSeconds,
    decision: z
      .object({
        by: z.string().describe("Id of the person or key that decided."),
        at: unixSeconds,
        amount: z.number().nullable().describe("Amount that is added. null: refused."),
        until: unixSeconds.nullable(),
      })
      .nullable(),
  })
  .meta({ id: "LimitRequest" });
export type LimitRequestWire = z.infer<typeof limitRequestShape>;

export function limitRequestToWire(request: ListedLimitRequest, nowSeconds: number): LimitRequestWire {
  const { id, accountId, environment, personId, email, personName, quota, amount, reason, status, decision } = request;
  const { models, ...which } = quota;
  const hasEnded = status === "granted" && (decision?.until ?? 0) <= nowSeconds;
  return {
    ...{ object: "limit_request", id, account_id: accountId, environment, owner: request.owner },
    person: { id: personId, email, name: personName },
    ...{ ...which, ...(models && { models: [...models] }), amount, reason },
    ...{ status: hasEnded ? "ended" : status, created_at: request.createdAt, decision },
  };
}
