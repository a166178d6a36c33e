// The operators' endpoints for the models that were pulled to this server.
import { z } from "zod";
import type { PulledModel } from "../../../domain/models/pulled-model.ts";
import type { PulledModels } from "../../../inference/models/manage-pulled-models.ts";
import { unixSeconds } from "../../../wire/parts.ts";
import type { ScopedRoute } from "../../exchange/route.ts";
import type { EndpointDeps } from "../endpoint.ts";
import { wholeListOf } from "../list.ts";
import { capabilitiesShape } from "../models/model-entries.ts";
import { adminEndpoints } from "./admin-endpoint.ts";

export interface AdminPulledModelDeps extends EndpointDeps {
  pulledModels: Pick<PulledModels, "list" | "remove">;
}

const pulledModelShape = z
  .object({
    object: z.literal("pulled_model"),
    id: z.string(),
    bytes: z.int().describe("The size of its files on the disk."),
    state: z
      .enum(["ready", "incomplete"])
      .describe("`incomplete`: a pull was interrupted, or a file is gone; it is not served, and can be pulled again."),
    source: z.string().nullable().describe("Where it came from; null where only parts of it are here."),
    pulled_at: unixSeconds.nullable(),
    capabilities: capabilitiesShape,
    context_length: z.int().nullable().describe("Tokens; null where the file does not say."),
  })
  .meta({ id: "PulledModel" });
const pulledModelList = wholeListOf(pulledModelShape, "PulledModelList");
const deletedPulledModel = z
  .object({ object: z.literal("pulled_model"), id: z.string(), bytes: z.int(), deleted: z.literal(true) })
  .meta({ id: "DeletedPulledModel" });

const endpoint = adminEndpoints<AdminPulledModelDeps>();

export function adminPulledModelRoutes(deps: AdminPulledModelDeps): ScopedRoute[] {
  return [list(deps), remove(deps)];
}

const list = endpoint("GET", "/v1/admin/pulled-models", {
  operationId: "listPulledModels",
  summary: "List the models that were pulled to this server, with their size",
  description: "Those in the data directory of the server that answers; each replica has its own.",
  response: { description: "The models.", json: pulledModelList },
  answer: async ({ deps }) => ({ object: "list", data: (await deps.pulledModels.list()).map(toWire) }),
});

const remove = endpoint("DELETE", "/v1/admin/pulled-models/:id", {
  operationId: "deletePulledModel",
  summary: "Delete the files of a model that was pulled to this server",
  description: "It is offered no more, and what works with it ends as usual. `headrace pull` fetches it again.",
  parameters: [{ name: "id", in: "path", description: "Id of the model, such as `qwen3-0.6b-q8_0`." }],
  response: { description: "It is deleted.", json: deletedPulledModel },
  async answer({ deps, principal, id, origin }) {
    const { bytes } = await deps.pulledModels.remove(principal, id, origin);
    return { object: "pulled_model", id, bytes, deleted: true };
  },
});

function toWire(model: PulledModel): z.infer<typeof pulledModelShape> {
  return {
    object: "pulled_model",
    id: model.id,
    bytes: model.bytes,
    state: model.state,
    source: model.source,
    pulled_at: model.pulledAt,
    ...(model.capabilities ? { capabilities: model.capabilities } : {}),
    context_length: model.context,
  };
}
