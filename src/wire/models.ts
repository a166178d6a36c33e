// Schemas of models in the API's requests and answers, as operators read, declare, change and compare them.

import { z } from "zod";
import { defaultEnvironments, environments } from "../domain/api-key.ts";
import { byCapability } from "../domain/models/capabilities.ts";
import { builtInEngineName } from "../domain/models/engine.ts";
import {
  aliasText,
  maxAliases,
  maxContext,
  maxFallbacks,
  maxModelIdLength,
  maxWeight,
  modelSources,
} from "../domain/models/model-entry.ts";
import { modelProcessStates } from "../domain/models/model-process-state.ts";
import { overflowSpans } from "../domain/models/policies/overflow.ts";
import { deploymentStates } from "../domain/models/upstream.ts";
import { comparisonKinds } from "../domain/usage/comparison.ts";
import { attemptsShape } from "./attempts.ts";
import { shutdownDate, unixSeconds } from "./parts.ts";
import { policiesShape } from "./policies/model-policies.ts";
import { priceRequest, priceShape } from "./price.ts";

const maxDeployments = 100;

const id = z.string().min(1).max(maxModelIdLength);

const abilities = byCapability((meaning) => z.boolean().exactOptional().describe(meaning));
const capabilities = z.strictObject(abilities);
const deployment = z.strictObject({
  upstream: z
    .string()
    .min(1)
    .max(63)
    .describe(`Name of an upstream or node, or \`${builtInEngineName}\` for the built-in engine.`),
  model: id.nullish().describe("Id of the model at the upstream. Default: the public id."),
  weight: z
    .int()
    .min(1)
    .max(maxWeight)
    .nullish()
    .describe("Share of the requests, relative to the other deployments. Default 1."),
});

const settings = {
  owned_by: z.string().min(1).max(256).nullish().describe("Owner label in the model list. null: the upstream's value."),
  capabilities: capabilities
    .nullish()
    .describe(
      "Capabilities of the model. Omitted capabilities are unknown, and the model server decides. null: the upstream's values.",
    ),
  context_length: z
    .int()
    .min(1)
    .max(maxContext)
    .nullish()
    .describe("Context length in tokens, prompt and answer together. null: the upstream's value, else unlimited."),
  environments: z
    .array(z.enum(environments))
    .min(1)
    .max(environments.length)
    .nullish()
    .describe(
      `Environments whose keys may use the model. Without its own deployments, a model is limited to the environments of its upstreams. null: the environments of the upstreams, or \`${defaultEnvironments.join("`, `")}\` for a model with deployments of its own.`,
    ),
  price: priceRequest
    .nullish()
    .describe(
      "Price of usage, for requests that begin after the change. null: the price of `price_of`, else usage is free.",
    ),
  price_of: id
    .nullish()
    .describe(
      "A model in the price list, as `headrace prices` names it (`vendor/model`). Its price applies if `price` is null.",
    ),
  deployments: z
    .array(deployment)
    .max(maxDeployments)
    .nullish()
    .describe(
      "Deployments of the model. Requests are distributed by weight. null or empty: all upstreams and nodes that list this id, and the built-in engine if it has the model.",
    ),
  fallbacks: z
    .array(id)
    .max(maxFallbacks)
    .nullish()
    .describe(
      "Fallback models, tried in this order if all deployments of this model fail or are busy. The answer names the model that answered, and is charged at its price.",
    ),
  aliases: z
    .array(id)
    .max(maxAliases)
    .nullish()
    .describe(
      `Other names that clients can send, or prefixes ending in \`*\`: ${aliasText}. A model with that id has precedence, then the exact alias, then the longest prefix. No two models can have the same alias.`,
    ),
  policies: policiesShape
    .nullish()
    .describe(
      "Policies for requests to the model. Omitted policies keep their values. null removes one policy, or all of them.",
    ),
};

export const createModelRequest = z
  .object({
    id: id.describe(
      "Id that clients send, in printable ASCII characters without spaces: the id of a discovered model, or a new one.",
    ),
    ...settings,
  })
  .meta({ id: "CreateManagedModelRequest" });
export type CreateModelRequest = z.infer<typeof createModelRequest>;

export const updateModelRequest = z.object(settings).meta({
  id: "UpdateManagedModelRequest",
  description: "Omitted members keep their values. null removes a value.",
});
export type UpdateModelRequest = z.infer<typeof updateModelRequest>;

const shownDeployment = z.object({
  upstream: z.string(),
  model: z.string(),
  weight: z.int(),
  state: z
    .enum([...deploymentStates, "missing"])
    .describe("`missing`: no upstream has this name any more. The other states are those of `GET /v1/model-status`."),
  process: z
    .enum(modelProcessStates)
    .nullable()
    .describe("State of the model's process, if the process is started on demand. Otherwise null."),
  listed: z
    .boolean()
    .nullable()
    .describe(
      "True if the upstream listed the model when it was last reached. null: it was never reached. Some upstreams list fewer models than they serve.",
    ),
  attempts: attemptsShape
    .nullable()
    .describe("State of the deployment as the attempts of real requests show it. null without recent attempts."),
});

export const managedModelShape = z
  .object({
    object: z.literal("managed_model"),
    id: z.string(),
    source: z
      .enum(modelSources)
      .describe(
        "Source of the declaration. `file`: headrace.yaml, where alone it can be changed. `database`: this API. `upstream`: undeclared, offered as an upstream lists it.",
      ),
    overrides_database: z
      .boolean()
      .describe(
        "True if the model is also declared by this API. That declaration has no effect while the file has the id.",
      ),
    status: z
      .enum(["ok", "partly", "down", "nowhere"])
      .describe(
        "The share of deployments that are `ok`: all, some or none. `nowhere`: the model has no deployments, because no upstream lists it or the named upstreams are gone.",
      ),
    owned_by: z.string().nullable(),
    capabilities: z.object(abilities).nullable().describe("null if unknown."),
    context_length: z
      .int()
      .nullable()
      .describe("Context length in tokens, prompt and answer together. null if unknown."),
    shutdown_date: shutdownDate
      .nullable()
      .describe("Date (UTC) on which the last deployment ends, as the upstreams announced it. null if they did not."),
    environments: z.array(z.enum(environments)).describe("Environments whose keys may use the model."),
    price: priceShape
      .nullable()
      .describe("null: the model has no price. It is free, and quotas in USD do not count it."),
    deployments: z.array(shownDeployment),
    fallbacks: z.array(z.string()),
    aliases: z.array(z.string()),
    overflow_spend: z
      .object({
        per: z.enum(overflowSpans),
        spent: z.number().describe("Cost in USD, including reservations for running requests."),
        limit: z.number().describe("USD."),
        ends_at: unixSeconds.describe("End of the span. The next span begins at 0."),
      })
      .nullable()
      .describe(
        "Cost of the overflow in the current span, over all replicas. null if `policies.overflow` has no `spend`.",
      ),
    settings: z
      .object(settings)
      .required()
      .nullable()
      .describe("Declaration in the file or by this API. The members above combine it with what upstreams report."),
    created_at: unixSeconds.nullable().describe("Time of the declaration by this API. null if there is none."),
  })
  .meta({ id: "ManagedModel" });
export type ManagedModelWire = z.infer<typeof managedModelShape>;

const comparedTimes = (what: string) =>
  z
    .object({ p50: z.int().nullable(), p95: z.int().nullable() })
    .describe(`${what} in milliseconds: median and 95th percentile. null: nothing was measured.`);

const comparedSide = z
  .object({
    model: z.string(),
    requests: z.int(),
    errors: z.int().describe("Number of failed requests. Figures about answers exclude them."),
    prompt_tokens: z.int(),
    completion_tokens: z.int(),
    cost: z.number().nullable().describe("Cost in USD. null if a request had no price."),
    first_token_ms: comparedTimes("Time to the first token of streams"),
    duration_ms: comparedTimes("Time to the end"),
    tokens_per_second: z
      .number()
      .nullable()
      .describe("Completion tokens per second of request time, without queueing."),
    answer_tokens: z.number().nullable().describe("Mean number of completion tokens per answer."),
  })
  .meta({ id: "ComparedModel" });

export const comparisonShape = z
  .object({
    object: z.literal("comparison"),
    kind: z
      .enum(comparisonKinds)
      .describe(
        "`shadow`: figures of the requests that both models answered. `split`: figures of the requests that each model received.",
      ),
    percent: z.number().describe("Share of the other model, as currently configured."),
    start: unixSeconds,
    end: unixSeconds,
    own: comparedSide,
    other: comparedSide,
    partial: z
      .boolean()
      .describe("True if only the newest requests were read, because there are too many. Choose a shorter time."),
  })
  .meta({ id: "Comparison" });
export type ComparisonWire = z.infer<typeof comparisonShape>;

export const comparisonList = z
  .object({ object: z.literal("list"), data: z.array(comparisonShape) })
  .meta({ id: "ComparisonList" });
