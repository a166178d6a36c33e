// The operators' endpoints for models: declare a model, change its price and other settings, and delete the
// declaration.
import type { ManagedModels } from "../../../inference/models/manage-models.ts";
import { createModelRequest, managedModelShape, updateModelRequest } from "../../../wire/models.ts";
import { deletedShape } from "../../../wire/parts.ts";
import type { ScopedRoute } from "../../exchange/route.ts";
import type { EndpointDeps } from "../endpoint.ts";
import { wholeListOf } from "../list.ts";
import { adminEndpoints } from "./admin-endpoint.ts";

export interface AdminModelDeps extends EndpointDeps {
  managedModels: Pick<ManagedModels, "list" | "get" | "add" | "change" | "remove">;
}

const idParameter = [{ name: "model", in: "path", description: "Model ID." }] as const;
const pathText = "An id with slashes works both unchanged and percent-encoded.";
const modelList = wholeListOf(managedModelShape, "ManagedModelList");
const deletedModel = deletedShape("managed_model", "DeletedManagedModel");

const endpoint = adminEndpoints<AdminModelDeps>();

export function adminModelRoutes(deps: AdminModelDeps): ScopedRoute[] {
  return [list(deps), create(deps), retrieve(deps), update(deps), remove(deps)];
}

const list = endpoint("GET", "/v1/admin/models", {
  operationId: "listManagedModels",
  summary: "List all models, with source, price and deployments",
  description:
    "Lists the models of headrace.yaml, the models declared by this API, even without deployments, and undeclared models that upstreams list. Sorted by id.",
  response: { description: "The models.", json: modelList },
  answer: async ({ deps: { managedModels } }) => ({ object: "list", data: await managedModels.list() }),
});

const create = endpoint("POST", "/v1/admin/models", {
  operationId: "createManagedModel",
  summary: "Declare a model: price, deployments and fallbacks, under the id of a discovered model or a new one",
  description:
    "The declaration applies immediately without a restart, and at all replicas within two seconds. A price applies to requests that begin afterwards. Declarations in headrace.yaml take precedence.",
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
  summary: "Retrieve one model, as operators see it",
  description: pathText,
  parameters: idParameter,
  response: { description: "The model.", json: managedModelShape },
  answer: ({ deps, id }) => deps.managedModels.get(id),
});

const update = endpoint("PATCH", "/v1/admin/models/*", {
  operationId: "updateManagedModel",
  summary: "Change a model: price, deployments and fallbacks",
  description: `For an undeclared model that an upstream lists, this is its first declaration. Declarations in headrace.yaml are read-only here. ${pathText}`,
  parameters: idParameter,
  requestBody: updateModelRequest,
  example: { price: { input: 0.15, output: 0.6 } },
  response: { description: "The model.", json: managedModelShape },
  answer: ({ deps, principal, id, body, origin }) => deps.managedModels.change(principal, id, body, origin),
});

const remove = endpoint("DELETE", "/v1/admin/models/*", {
  operationId: "deleteManagedModel",
  summary: "Delete the declaration of a model by this API",
  description: `A model that an upstream lists is still offered, as listed and without a price. Any other model is removed. Usage records stay. ${pathText}`,
  parameters: idParameter,
  response: { description: "The declaration is deleted.", json: deletedModel },
  async answer({ deps, principal, id, origin }) {
    await deps.managedModels.remove(principal, id, origin);
    return { object: "managed_model", id, deleted: true };
  },
});
