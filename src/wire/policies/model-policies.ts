// Schemas of the policies that apply to a model's requests.
import { z } from "zod";
import { maxModelIdLength } from "../../domain/models/model-entry.ts";
import { cachedRequests, defaultCachePolicy } from "../../domain/models/policies/cache.ts";
import { overflowSpans } from "../../domain/models/policies/overflow.ts";
import {
  maxCacheSeconds,
  maxModelGuardrails,
  maxOverflowTargets,
  maxPromptTokens,
  maxSpend,
  maxSplitParts,
  maxWaitSeconds,
  policyDocs,
} from "../../domain/models/policies/policy-text.ts";
import { hoursPattern, maxHours } from "../../domain/models/price-text.ts";
import { guardrailNamePattern } from "../../features/guardrails/model.ts";
import { priceRequest } from "../price.ts";

const usd = z.number().min(0).max(maxSpend);
const modelId = z
  .string()
  .max(maxModelIdLength)
  .regex(/^[!-~]+$/);
const share = (model: string) =>
  z.strictObject({
    model: modelId.describe(model),
    percent: z.number().gt(0).max(100).describe(policyDocs.percent),
  });

const target = z.strictObject({
  upstream: z.string().min(1).max(63).describe(policyDocs.upstream),
  cost: priceRequest.nullish().describe(policyDocs.cost),
  cost_of: modelId.nullish().describe(policyDocs.cost_of),
});

const overflow = z.strictObject({
  to: z.array(target).min(1).max(maxOverflowTargets).describe(policyDocs.to),
  after_seconds: z.number().min(0).max(maxWaitSeconds).nullish().describe(policyDocs.after_seconds),
  prompt_tokens_above: z.int().min(1).max(maxPromptTokens).nullish().describe(policyDocs.prompt_tokens_above),
  hours: z.array(z.string().regex(hoursPattern)).min(1).max(maxHours).nullish().describe(policyDocs.hours),
  most_usd_per_request: usd.nullish().describe(policyDocs.most_usd_per_request),
  spend: z
    .strictObject({ usd: usd.describe(policyDocs.usd), per: z.enum(overflowSpans).describe(policyDocs.per) })
    .nullish()
    .describe(policyDocs.spend),
});

const cache = z.strictObject({
  requests: z
    .enum(cachedRequests)
    .nullish()
    .describe(`${policyDocs.requests} Default: \`${defaultCachePolicy.requests}\`.`),
  ttl_seconds: z
    .int()
    .min(1)
    .max(maxCacheSeconds)
    .nullish()
    .describe(`${policyDocs.ttl_seconds} Default: ${defaultCachePolicy.ttlSeconds}.`),
  price_factor: z
    .number()
    .min(0)
    .max(1)
    .nullish()
    .describe(`${policyDocs.price_factor} Default: ${defaultCachePolicy.priceFactor}.`),
  semantic: z
    .strictObject({
      model: modelId.describe(policyDocs.embedding),
      threshold: z.number().gt(0).max(1).describe(policyDocs.threshold),
    })
    .nullish()
    .describe(policyDocs.semantic),
});

/** If a policy is null, it is off. If a change does not contain a policy, the policy stays as it was. */
export const policiesShape = z.strictObject({
  continuation: z.boolean().nullish().describe(policyDocs.continuation),
  overflow: overflow.nullish().describe(policyDocs.overflow),
  cache: cache.nullish().describe(policyDocs.cache),
  guardrails: z
    .array(z.string().regex(guardrailNamePattern))
    .max(maxModelGuardrails)
    .nullish()
    .describe(policyDocs.guardrails),
  shadow: share(policyDocs.shadow_model).nullish().describe(policyDocs.shadow),
  split: z.array(share(policyDocs.split_model)).max(maxSplitParts).nullish().describe(policyDocs.split),
});
export type PoliciesRequest = z.infer<typeof policiesShape>;
