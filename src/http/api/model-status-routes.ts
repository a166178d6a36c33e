// The endpoint for the state of a key's models, and where they run.
import { z } from "zod";
import { environments } from "../../domain/api-key.ts";
import type { Model } from "../../domain/models/model.ts";
import { modelProcessStates } from "../../domain/models/model-process-state.ts";
import { priceToWire } from "../../domain/models/price-text.ts";
import { deploymentStates } from "../../domain/models/upstream.ts";
import { type DeploymentStatus, deploymentKinds, type ModelStatus } from "../../inference/models/model-status.ts";
import { usableModel } from "../../policy/authorize.ts";
import { isOperator } from "../../policy/manage/operator.ts";
import { attemptsShape } from "../../wire/attempts.ts";
import { priceShape } from "../../wire/price.ts";
import type { ScopedRoute } from "../exchange/route.ts";
import { type EndpointDeps, scopedEndpoints } from "./endpoint.ts";
import { wholeListOf } from "./list.ts";
import { capabilitiesShape, contextShape } from "./models/model-entries.ts";

export interface ModelStatusDeps extends EndpointDeps {
  modelStatus: Pick<ModelStatus, "list">;
}

const byPriority = <Shape extends z.ZodType>(shape: Shape) => z.object({ low: shape, normal: shape, high: shape });

const percentilesShape = z
  .object({ p50: z.number(), p95: z.number(), p99: z.number() })
  .describe("Milliseconds within which 50, 95 and 99 % of the answers came.");

const deploymentShape = z
  .object({
    upstream: z.string().describe("Name of the model server."),
    kind: z
      .enum(deploymentKinds)
      .describe(
        "The built-in engine, an upstream that an operator added, a server found on this machine, or a machine that joined as a node.",
      ),
    model: z.string().describe("Id of the model at the model server."),
    state: z
      .enum(deploymentStates)
      .describe(
        "`unreachable`: the server did not answer the last poll of its models. `failing`: it failed the last attempts of real requests. `cooling_down`: it failed recently, and is tried last. `draining`: it gets no new requests.",
      ),
    process: z
      .enum(modelProcessStates)
      .nullable()
      .describe("State of the model's process, if the process is started on demand. Otherwise null."),
    running: z
      .int()
      .describe(
        "Number of running requests. If one limit covers all models of the server, the requests of all its models.",
      ),
    waiting: z.int().describe("Number of requests that wait for a free slot, counted in the same way."),
    waiting_by_priority: byPriority(z.int()).describe("Number of waiting requests by priority."),
    expected_wait_ms: byPriority(z.int().nullable()).describe(
      "Expected waiting time of a new request in milliseconds, by priority. 0: no wait. null: unknown, because no answer has been timed yet.",
    ),
    concurrency: z
      .int()
      .nullable()
      .describe("Limit of concurrent requests, declared or measured so far. null before the first request."),
    first_token_ms: z
      .number()
      .nullable()
      .describe("Mean time to the first token of streamed answers in the last 15 minutes. null if there are none."),
    tokens_per_second: z.number().nullable().describe("Mean speed of these answers after their first token."),
    percentiles: z
      .object({ first_token_ms: percentilesShape.nullable(), total_ms: percentilesShape })
      .nullable()
      .describe(
        "Times of the answers in the last 15 minutes: to the first token, null without streams, and to the end of all answers. null if there are none.",
      ),
    attempts: attemptsShape
      .nullable()
      .describe("The attempts of real requests. null for callers that are no operators, and without recent attempts."),
  })
  .meta({ id: "DeploymentStatus" });

const statusShape = z
  .object({
    object: z.literal("model_status"),
    id: z.string(),
    capabilities: capabilitiesShape,
    context_length: contextShape,
    environments: z.array(z.enum(environments)).describe("Environments whose keys may use the model."),
    price: priceShape.nullable().describe("USD per million tokens. null: the model has no price and is free."),
    deployments: z.array(deploymentShape),
  })
  .meta({ id: "ModelStatus" });

const statusList = wholeListOf(statusShape, "ModelStatusList");

const endpoint = scopedEndpoints<ModelStatusDeps>("models:read", { tag: "Models" });

export function modelStatusRoutes(deps: ModelStatusDeps): ScopedRoute[] {
  return [list(deps)];
}

const list = endpoint("GET", "/v1/model-status", {
  operationId: "listModelStatus",
  summary: "List the current state of the models",
  description: "Returns deployments, state, queue, speed and price of the models that the credential may use.",
  response: { description: "The models with their deployments.", json: statusList },
  async answer({ deps: { modelStatus }, principal }) {
    const found = await modelStatus.list((model) => usableModel(principal, model));
    const shows = isOperator(principal);
    return { object: "list", data: found.map(({ model, deployments }) => toWire(model, deployments, shows)) };
  },
});

function toWire(
  model: Model,
  deployments: readonly DeploymentStatus[],
  showsAttempts: boolean,
): z.infer<typeof statusShape> {
  return {
    object: "model_status",
    id: model.id,
    ...(model.capabilities ? { capabilities: model.capabilities } : {}),
    ...(model.context === undefined ? {} : { context_length: model.context }),
    environments: [...model.environments],
    price: model.price ? priceToWire(model.price) : null,
    deployments: deployments.map(({ speed, lines: { low, normal, high }, attempts, ...deployment }) => ({
      ...deployment,
      attempts: showsAttempts ? attempts : null,
      waiting_by_priority: { low: low.waiting, normal: normal.waiting, high: high.waiting },
      expected_wait_ms: { low: low.expectedMs, normal: normal.expectedMs, high: high.expectedMs },
      first_token_ms: rounded(speed?.firstTokenMs),
      tokens_per_second: rounded(speed?.tokensPerSecond),
      percentiles:
        speed?.totalPercentiles === undefined
          ? null
          : { first_token_ms: speed.firstTokenPercentiles ?? null, total_ms: speed.totalPercentiles },
    })),
  };
}

function rounded(value: number | null | undefined): number | null {
  return value == null ? null : Math.round(value * 10) / 10;
}
