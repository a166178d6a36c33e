// The operators' endpoints for models: declare one, change its price and the like, take that back.
import type { ManagedModels } from "../../../inference/models/manage-models.ts";
import { createModelRequest, managedModelShape, updateModelRequest } from "../../../wire/models.ts";
import { deletedShape } from "../../../wire/parts.ts";
import { guardrailShape } from "../../../wire/policies/guardrails.ts";
import type { ScopedRoute } from "../../exchange/route.ts";
import type { EndpointDeps } from "../endpoint.ts";
import { wholeListOf } from "../list.ts";
import { adminEndpoints } from "./admin-endpoint.ts";

export interface AdminModelDeps extends EndpointDeps {
  managedModels: Pick<ManagedModels, "list" | "get" | "add" | "change" | "remove" | "guardrails">;
}

const idParameter = [{ name: "model", in: "path", description: "Model ID." }] as const;
const pathText = "An id with slashes works as it is and percent-encoded.";
const modelList = wholeListOf(managedModelShape, "ManagedModelList");
const guardrailList = wholeListOf(guardrailShape, "GuardrailList");
const deletedModel = deletedShape("managed_model", "DeletedManagedModel");

const endpoint = adminEndpoints<AdminModelDeps>();

export function adminModelRoutes(deps: AdminModelDeps): ScopedRoute[] {
  return [list(deps), create(deps), retrieve(deps), update(deps), remove(deps), guardrails(deps)];
}

const guardrails = endpoint("GET", "/v1/admin/guardrails", {
  operationId: "listGuardrails",
  summary: "List the guardrails of headrace.yaml, which `policies` of models name",
  response: { description: "The guardrails, in the order of the file.", json: guardrailList },
  answer: ({ deps: { managedModels } }) => ({ object: "list", data: managedModels.guardrails() }),
});

const list = endpoint("GET", "/v1/admin/models", {
  operationId: "listManagedModels",
  summary: "List all models, with who declares each, its price and where it runs",
  description:
    "Those of headrace.yaml, those declared here, also where they run nowhere at the moment, and those that upstreams list and nobody declared. By id.",
  response: { description: "The models.", json: modelList },
  answer: async ({ deps: { managedModels } }) => ({ object: "list", data: await managedModels.list() }),
});

const create = endpoint("POST", "/v1/admin/models", {
  operationId: "createManagedModel",
  summary:
    "Declare a model: its price, places to run, models that stand in, under the id of a found model or a new one",
  description:
    "It holds at once, without a restart, at all replicas within a second or two; a price, for requests that begin from then on. What headrace.yaml declares comes before what is declared here.",
  requestBody: createModelRequest,
  example: {
    id: "fast",
    price: { input: 0.15, output: 0.6 },
    deployments: [{ upstream: "vllm", model: "meta-llama/Llama-3.1-8B-Instruct", weight: 2 }],
    fallbacks: ["gpt-4o-mini"],
    aliases: ["claude-haiku-*"],
  },
  response: { description: "The model.", json: managedModelShape },
  answer: ({ deps, principal, body, origin }) => deps.managedModels.add(principal, body, origin),
});

const retrieve = endpoint("GET", "/v1/admin/models/*", {
  operationId: "retrieveManagedModel",
  summary: "Retrieve one model as operators see it",
  description: pathText,
  parameters: idParameter,
  response: { description: "The model.", json: managedModelShape },
  answer: ({ deps, id }) => deps.managedModels.get(id),
});

const update = endpoint("PATCH", "/v1/admin/models/*", {
  operationId: "updateManagedModel",
  summary: "Change a model: its price, places to run, models that stand in",
  description: `Of a model that an upstream lists and nobody declared, this is its first declaration. What headrace.yaml declares is read-only here. ${pathText}`,
  parameters: idParameter,
  requestBody: updateModelRequest,
  example: { price: { input: 0.15, output: 0.6 } },
  response: { description: "The model.", json: managedModelShape },
  answer: ({ deps, principal, id, body, origin }) => deps.managedModels.change(principal, id, body, origin),
});

const remove = endpoint("DELETE", "/v1/admin/models/*", {
  operationId: "deleteManagedModel",
  summary: "Take back what was declared of a model here",
  description: `One that an upstream lists is offered on, as it lists it and without a price; another is gone. Its usage stays. ${pathText}`,
  parameters: idParameter,
  response: { description: "It is deleted.", json: deletedModel },
  async answer({ deps, principal, id, origin }) {
    await deps.managedModels.remove(principal, id, origin);
    return { object: "managed_model", id, deleted: true };
  },
});
