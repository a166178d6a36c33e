// The key `policies` of a model in headrace.yaml.
import * as z from "zod";
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
import { guardrailNamePattern, guardrailNameText } from "../../features/guardrails/model.ts";
import { entry, field, list, mapping, oneOf, orLeftOut, printablePattern, said, trueOrFalse, whole } from "../field.ts";
import { price } from "../price-schema.ts";

const modelId = (doc: string) =>
  field(z.string().max(maxModelIdLength).regex(printablePattern), {
    doc,
    must: "a model id of 1 to 256 printable ASCII characters without spaces",
    fix: "Give the id under which clients see it.",
  });

const usd = (doc: string, example: number) =>
  field(z.number().min(0).max(maxSpend), {
    doc,
    must: `a number of USD from 0 to ${maxSpend}`,
    fix: `Give a number such as ${example}.`,
  });

const percent = field(z.number().gt(0).max(100), {
  doc: policyDocs.percent,
  must: "a number above 0, up to 100",
  fix: "Give a number of percent such as 10.",
});

const target = field(
  z.strictObject({
    upstream: field(z.string().min(1), {
      doc: policyDocs.upstream,
      must: "the name of an upstream",
      fix: "Name an upstream that has a deployment of the model.",
    }),
    cost: field(z.strictObject(price.shape), mapping(policyDocs.cost)).optional(),
    cost_of: field(z.string().min(1).max(maxModelIdLength), {
      doc: policyDocs.cost_of,
      must: "vendor/model as headrace prices lists it",
      fix: "Give a name such as openai/gpt-5, or leave it out.",
    }).optional(),
  }),
  entry("An upstream.", "upstream"),
);

const overflow = field(
  z.strictObject({
    to: field(
      z.array(target).min(1).max(maxOverflowTargets),
      list(
        policyDocs.to,
        `1 to ${maxOverflowTargets} upstreams`,
        "Begin each entry with a hyphen, such as - upstream: cloud.",
      ),
    ),
    after_seconds: field(z.number().min(0).max(maxWaitSeconds), {
      doc: policyDocs.after_seconds,
      must: `a number of seconds from 0 to ${maxWaitSeconds}`,
      fix: "Give a number such as 5, or leave it out.",
    }).optional(),
    prompt_tokens_above: said(
      policyDocs.prompt_tokens_above,
      orLeftOut(whole([1, maxPromptTokens], 30_000, "tokens")),
    ).optional(),
    hours: field(
      z
        .array(
          field(z.string().regex(hoursPattern), {
            doc: "A part of a day (UTC).",
            must: "two times of a day",
            fix: 'Give them as "18:00-08:00".',
          }),
        )
        .min(1)
        .max(maxHours),
      list(policyDocs.hours, `1 to ${maxHours} parts of a day`),
    ).optional(),
    most_usd_per_request: usd(policyDocs.most_usd_per_request, 0.5).optional(),
    spend: field(z.strictObject({ usd: usd(policyDocs.usd, 50), per: said(policyDocs.per, oneOf(overflowSpans)) }), {
      ...entry(policyDocs.spend, "usd and per"),
      fix: "Write { usd: 50, per: day }, or leave it out.",
    }).optional(),
  }),
  entry(policyDocs.overflow, "to"),
);

const semantic = field(
  z.strictObject({
    model: modelId(policyDocs.embedding),
    threshold: field(z.number().gt(0).max(1), {
      doc: policyDocs.threshold,
      must: "a number above 0, up to 1",
      fix: "Give a number such as 0.95.",
    }),
  }),
  entry(policyDocs.semantic, "model and threshold"),
);

const cache = field(
  z.strictObject({
    requests: said(policyDocs.requests, oneOf(cachedRequests)).default(defaultCachePolicy.requests),
    ttl_seconds: said(policyDocs.ttl_seconds, whole([1, maxCacheSeconds], 3_600, "seconds")).default(
      defaultCachePolicy.ttlSeconds,
    ),
    price_factor: field(z.number().min(0).max(1), {
      doc: policyDocs.price_factor,
      must: "a number from 0 to 1",
      fix: "Give 0 for nothing, 0.5 for half of the price, or leave it out.",
    }).default(defaultCachePolicy.priceFactor),
    semantic: semantic.optional(),
  }),
  mapping(policyDocs.cache),
);

const part = (doc: string, model: string) =>
  field(z.strictObject({ model: modelId(model), percent }), {
    ...entry(doc, "model and percent"),
    fix: "Write { model: other, percent: 10 }.",
  });

export const policies = field(
  z.strictObject({
    continuation: said(policyDocs.continuation, trueOrFalse()).default(false),
    overflow: overflow.optional(),
    cache: cache.optional(),
    guardrails: field(
      z
        .array(
          field(z.string().regex(guardrailNamePattern), {
            doc: "Name of a guardrail.",
            must: guardrailNameText,
            fix: "Name an entry of guardrails.",
          }),
        )
        .max(maxModelGuardrails),
      list(policyDocs.guardrails, `names, ${maxModelGuardrails} at most`),
    ).default([]),
    shadow: part(policyDocs.shadow, policyDocs.shadow_model).optional(),
    split: field(
      z.array(part("A part.", policyDocs.split_model)).max(maxSplitParts),
      list(policyDocs.split, `parts, ${maxSplitParts} at most`),
    ).default([]),
  }),
  mapping(policyDocs.policies),
);
