// The operators' endpoints for the models that were pulled to this server.
import { z } from "zod";
import type { HeldMemory, ModelMemory } from "../../../domain/models/memory-need.ts";
import type { Pull } from "../../../domain/models/pulled-model.ts";
import type { FittedOffer, ListedPulledModel, PulledModels } from "../../../inference/models/manage-pulled-models.ts";
import {
  modelMemoryShape,
  type PulledModelWire,
  pulledModelShape,
  pullOfferShape,
  pullRequest,
  pullShape,
} from "../../../wire/pulled-models.ts";
import type { ScopedRoute } from "../../exchange/route.ts";
import type { EndpointDeps } from "../endpoint.ts";
import { adminEndpoints } from "./admin-endpoint.ts";

export interface AdminPulledModelDeps extends EndpointDeps {
  pulledModels: Pick<PulledModels, "held" | "list" | "memory" | "offer" | "pull" | "pulls" | "remove">;
}

const pulledModelList = z
  .object({
    object: z.literal("list"),
    data: z.array(pulledModelShape),
    pulls: z.array(pullShape),
    memory: modelMemoryShape,
  })
  .meta({ id: "PulledModelList" });
const deletion = z.object({
  force: z
    .stringbool({ truthy: ["true"], falsy: ["false"], case: "sensitive" })
    .optional()
    .meta({ description: "true or false; true deletes the model even while it serves requests, which end as usual" }),
});
const deletedPulledModel = z
  .object({ object: z.literal("pulled_model"), id: z.string(), bytes: z.int(), deleted: z.literal(true) })
  .meta({ id: "DeletedPulledModel" });

const endpoint = adminEndpoints<AdminPulledModelDeps>();

export function adminPulledModelRoutes(deps: AdminPulledModelDeps): ScopedRoute[] {
  return [list(deps), pull(deps), remove(deps)];
}

const list = endpoint("GET", "/v1/admin/pulled-models", {
  operationId: "listPulledModels",
  summary: "List the models that were pulled to this server, with their size and required memory",
  description:
    "Lists the data directory of the server that answers. Each replica has its own. On a development server, the first key is sufficient from the same machine.",
  ownMachine: true,
  response: { description: "The models.", json: pulledModelList },
  answer: async ({ deps: { pulledModels } }) => ({
    object: "list",
    data: (await pulledModels.list()).map(toWire),
    pulls: pulledModels.pulls().map(pullToWire),
    memory: memoryToWire(pulledModels.memory(), pulledModels.held()),
  }),
});

const pull = endpoint("POST", "/v1/admin/pulled-models", {
  operationId: "pullModel",
  summary: "Pull a model from the Hugging Face hub to this server",
  description:
    "The response comes as soon as the download has begun, and the list shows its progress. With `dry_run` the response only says what would be downloaded and whether it fits. If the disk has too little space, the request is refused. Deleting the model stops the download.",
  requestBody: pullRequest,
  response: { description: "The files to download.", json: pullOfferShape },
  errors: ["service_unavailable"],
  async answer({ deps: { pulledModels }, principal, body, origin }) {
    const { source, name, dry_run: isTry } = body;
    const offer = isTry
      ? await pulledModels.offer(source, name ?? undefined)
      : await pulledModels.pull(principal, source, name ?? undefined, origin);
    return { object: "pull_offer", ...offerToWire(offer), started: isTry !== true };
  },
});

const remove = endpoint("DELETE", "/v1/admin/pulled-models/:id", {
  operationId: "deletePulledModel",
  summary: "Delete the files of a model that was pulled to this server",
  description:
    "The model is no longer offered. While it serves requests the answer is 503, unless `force` is true. `headrace pull` downloads it again.",
  parameters: [{ name: "id", in: "path", description: "Id of the model, such as `qwen3-0.6b-q8_0`." }],
  response: { description: "The model is deleted.", json: deletedPulledModel },
  query: deletion,
  async answer({ deps, principal, id, query: { force = false }, origin }) {
    const { bytes } = await deps.pulledModels.remove(principal, id, force, origin);
    return { object: "pulled_model", id, bytes, deleted: true };
  },
});

function toWire(model: ListedPulledModel): PulledModelWire {
  const { facts, memory, use } = model;
  return {
    object: "pulled_model",
    id: model.id,
    bytes: model.bytes,
    state: model.state,
    source: model.source,
    pulled_at: model.pulledAt,
    ...(model.capabilities ? { capabilities: model.capabilities } : {}),
    context_length: model.context,
    architecture: facts?.architecture ?? null,
    quantization: facts?.quantization ?? null,
    parameters: facts?.parameters ?? null,
    memory: memory && {
      bytes: memory.bytes,
      least_bytes: memory.minBytes,
      weights: memory.weights,
      cache: memory.cache,
      compute: memory.compute,
      context_length: memory.context,
      parallel: memory.parallel,
    },
    fit: model.fit,
    use: use.state,
    in_use: use.inUse,
  };
}

function memoryToWire({ total, free, evictable, pinned }: ModelMemory, held: readonly HeldMemory[]) {
  return {
    ...{ total_bytes: total, free_bytes: free, evictable_bytes: evictable, pinned_bytes: pinned },
    held: held.map(({ inUse, ...one }) => ({ ...one, in_use: inUse })),
  };
}

function pullToWire({ id, source, bytes, totalBytes, failure }: Pull): z.infer<typeof pullShape> {
  return { object: "pull", id, source, bytes, total_bytes: totalBytes, failure };
}

function offerToWire({ id, file, quantization, bytes, missingBytes, roomBytes, minMemoryBytes, fit }: FittedOffer) {
  return {
    ...{ id, file, quantization, bytes, missing_bytes: missingBytes, room_bytes: roomBytes },
    ...{ least_memory_bytes: minMemoryBytes, fit },
  };
}
