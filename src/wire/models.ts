// The shapes of models on the wire, as operators read, declare, change and compare them.

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
import { comparisonKinds } from "../domain/usage/comparison.ts";
import { unixSeconds } from "./parts.ts";
import { policiesShape } from "./policies/model-policies.ts";
import { priceRequest, priceShape } from "./price.ts";

/** How a deployment does, wherever it is shown. */
export const deploymentStates = ["ok", "unreachable", "cooling_down", "draining"] as const;
export type DeploymentState = (typeof deploymentStates)[number];

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
  model: id.nullish().describe("The upstream's own id of the model. Default: the id of this one."),
  weight: z
    .int()
    .min(1)
    .max(maxWeight)
    .nullish()
    .describe("Share of the requests, relative to the other deployments. Default 1."),
});

const settings = {
  owned_by: z
    .string()
    .min(1)
    .max(256)
    .nullish()
    .describe("Owner label in the model list. null: as the upstream tells."),
  capabilities: capabilities
    .nullish()
    .describe("What it can do; what is left out is unknown, and its server decides. null: as the upstream tells."),
  context_length: z
    .int()
    .min(1)
    .max(maxContext)
    .nullish()
    .describe("Tokens of prompt and answer together. null: as the upstream tells, else unbounded."),
  environments: z
    .array(z.enum(environments))
    .min(1)
    .max(environments.length)
    .nullish()
    .describe(
      `Environments whose keys may use it; a model without deployments of its own is never offered to more than its upstreams allow. null: as those allow, and \`${defaultEnvironments.join("`, `")}\` for a model with deployments of its own.`,
    ),
  price: priceRequest
    .nullish()
    .describe(
      "What usage costs, of requests that begin after the change. null: as `price_of` says, else nothing is charged.",
    ),
  price_of: id
    .nullish()
    .describe(
      "A model of the price list, as `headrace prices` names it (`vendor/model`): its price, where `price` is null.",
    ),
  deployments: z
    .array(deployment)
    .max(maxDeployments)
    .nullish()
    .describe(
      "Where it runs; requests are spread by weight. null or none: wherever a model of this id is found, at upstreams, nodes and the built-in engine.",
    ),
  fallbacks: z
    .array(id)
    .max(maxFallbacks)
    .nullish()
    .describe(
      "Models that answer in its place, the first that can, where none of its deployments answers or has room. The answer says which model it is, and is priced as that one.",
    ),
  aliases: z
    .array(id)
    .max(maxAliases)
    .nullish()
    .describe(
      `Other names by which clients may ask for it, or, with a \`*\` at the end, all names that begin so: ${aliasText}. A model of that id comes first, then the name itself, then the longest beginning. No two models have the same alias.`,
    ),
  policies: policiesShape
    .nullish()
    .describe(
      "What is done with its requests beyond that they are answered. Each that is left out of a change stays, and null takes one away, or all of them.",
    ),
};

export const createModelRequest = z
  .object({
    id: id.describe(
      "The id clients send: printable ASCII characters without spaces. That of a found model, or a new one.",
    ),
    ...settings,
  })
  .meta({ id: "CreateManagedModelRequest" });
export type CreateModelRequest = z.infer<typeof createModelRequest>;

export const updateModelRequest = z.object(settings).meta({
  id: "UpdateManagedModelRequest",
  description: "What is left out stays as it is; null takes away what was set.",
});
export type UpdateModelRequest = z.infer<typeof updateModelRequest>;

const shownDeployment = z.object({
  upstream: z.string(),
  model: z.string(),
  weight: z.int(),
  state: z
    .enum([...deploymentStates, "missing"])
    .describe("`missing`: there is no upstream of this name any more; the others as in `GET /v1/model-status`."),
  process: z
    .enum(modelProcessStates)
    .nullable()
    .describe("The state of the process that serves it, where that is started for requests; else null."),
  listed: z
    .boolean()
    .nullable()
    .describe(
      "Whether the upstream listed the model when it was last reached; null: it never was. Some list less than they serve.",
    ),
});

export const managedModelShape = z
  .object({
    object: z.literal("managed_model"),
    id: z.string(),
    source: z
      .enum(modelSources)
      .describe(
        "Who declares it. `file`: headrace.yaml, where alone it is changed; `database`: this API; `upstream`: nobody, it is offered as an upstream lists it.",
      ),
    overrides_database: z
      .boolean()
      .describe("Whether it was declared here as well, which does not count while the file has the id."),
    status: z
      .enum(["ok", "partly", "down", "nowhere"])
      .describe(
        "How many of its deployments are `ok`: all, some or none of them; `nowhere`: it has none, as no upstream lists it, or those that it names are gone.",
      ),
    owned_by: z.string().nullable(),
    capabilities: z.object(abilities).nullable().describe("null where nobody says."),
    context_length: z.int().nullable().describe("Tokens of prompt and answer together; null where nobody says."),
    environments: z.array(z.enum(environments)).describe("Environments whose keys may use it."),
    price: priceShape.nullable().describe("null: it has none, costs nothing, and no quota of USD counts it."),
    deployments: z.array(shownDeployment),
    fallbacks: z.array(z.string()),
    aliases: z.array(z.string()),
    overflow_spend: z
      .object({
        per: z.enum(overflowSpans),
        spent: z.number().describe("USD, with what is set aside for requests that are under way."),
        limit: z.number().describe("USD."),
        ends_at: unixSeconds.describe("When the span is over, and the next begins at 0."),
      })
      .nullable()
      .describe(
        "What its overflow has cost at all replicas in the span that is now; null where `policies.overflow` has no `spend`.",
      ),
    settings: z
      .object(settings)
      .required()
      .nullable()
      .describe(
        "What the file or this API says of it; the members above are what comes of that and of what upstreams tell.",
      ),
    created_at: unixSeconds.nullable().describe("When it was declared here; null where it was not."),
  })
  .meta({ id: "ManagedModel" });
export type ManagedModelWire = z.infer<typeof managedModelShape>;

const comparedTimes = (what: string) =>
  z
    .object({ p50: z.int().nullable(), p95: z.int().nullable() })
    .describe(`${what}, in milliseconds: of half of the answers, and of 95 of 100, no more; null: nothing was timed.`);

const comparedSide = z
  .object({
    model: z.string(),
    requests: z.int(),
    errors: z.int().describe("Those that failed: they are in no figure of answers."),
    prompt_tokens: z.int(),
    completion_tokens: z.int(),
    cost: z.number().nullable().describe("USD; null where a request had no price."),
    first_token_ms: comparedTimes("Time to the first token of streams"),
    duration_ms: comparedTimes("Time to the end"),
    tokens_per_second: z
      .number()
      .nullable()
      .describe("Completion tokens by the time of their requests, without waits."),
    answer_tokens: z.number().nullable().describe("Mean completion tokens of an answer."),
  })
  .meta({ id: "ComparedModel" });

export const comparisonShape = z
  .object({
    object: z.literal("comparison"),
    kind: z
      .enum(comparisonKinds)
      .describe("`shadow`: of the requests that both answered. `split`: of those that each was given."),
    percent: z.number().describe("The share of the other model, as it is configured now."),
    start: unixSeconds,
    end: unixSeconds,
    own: comparedSide,
    other: comparedSide,
    partial: z.boolean().describe("Whether only the newest were looked at, as there are very many: ask for less time."),
  })
  .meta({ id: "Comparison" });
export type ComparisonWire = z.infer<typeof comparisonShape>;

export const comparisonList = z
  .object({ object: z.literal("list"), data: z.array(comparisonShape) })
  .meta({ id: "ComparisonList" });
