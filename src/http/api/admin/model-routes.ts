// The operators' endpoints for models: declare one, change its price and the like, take that back.
import { z } from "zod";
import type { Principal } from "../../../domain/principal.ts";
import type { ManagedModels } from "../../../inference/models/manage-models.ts";
import { createModelRequest, managedModelShape, updateModelRequest } from "../../../wire/models.ts";
import { readStrictBody } from "../../decode/strict-body.ts";
import type { Exchange, ScopedRoute } from "../../exchange/route.ts";
import { bodyErrors, originOf } from "../changes.ts";
import { type AdminBaseDeps, type AdminDoc, adminRouter } from "./admin-route.ts";

export interface AdminModelDeps extends AdminBaseDeps {
  managedModels: Pick<ManagedModels, "list" | "get" | "add" | "change" | "remove">;
}

const idParameter = [{ name: "model", in: "path", description: "Model ID." }] as const;
const pathText = "An id with slashes works as it is and percent-encoded.";
const modelList = z
  .object({ object: z.literal("list"), data: z.array(managedModelShape) })
  .meta({ id: "ManagedModelList" });
const deletedModel = z
  .object({ object: z.literal("managed_model"), id: z.string(), deleted: z.literal(true) })
  .meta({ id: "DeletedManagedModel" });

export function adminModelRoutes(deps: AdminModelDeps): ScopedRoute[] {
  const route = adminRouter(deps);
  return [
    route("GET", "/v1/admin/models", listDoc, list),
    route("POST", "/v1/admin/models", createDoc, create),
    route("GET", "/v1/admin/models/*", retrieveDoc, retrieve),
    route("PATCH", "/v1/admin/models/*", updateDoc, update),
    route("DELETE", "/v1/admin/models/*", deleteDoc, remove),
  ];
}

const listDoc: AdminDoc = {
  operationId: "listManagedModels",
  summary: "List all models, with who declares each, its price and where it runs",
  description:
    "Those of headrace.yaml, those declared here, also where they run nowhere at the moment, and those that upstreams list and nobody declared. By id.",
  response: { description: "The models.", json: modelList },
};

async function list(_exchange: Exchange, _principal: Principal, { managedModels }: AdminModelDeps): Promise<Response> {
  return Response.json({ object: "list", data: await managedModels.list() } satisfies z.infer<typeof modelList>);
}

const createDoc: AdminDoc = {
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
  },
  response: { description: "The model.", json: managedModelShape },
  errors: [...bodyErrors, "service_unavailable"],
};

async function create(exchange: Exchange, principal: Principal, deps: AdminModelDeps): Promise<Response> {
  const request = await readStrictBody(createModelRequest, exchange.req, deps.requestLimits());
  return Response.json(await deps.managedModels.add(principal, request, originOf(exchange, deps)));
}

const retrieveDoc: AdminDoc = {
  operationId: "retrieveManagedModel",
  summary: "Retrieve one model as operators see it",
  description: pathText,
  parameters: idParameter,
  response: { description: "The model.", json: managedModelShape },
  errors: ["not_found"],
};

async function retrieve(exchange: Exchange, _principal: Principal, deps: AdminModelDeps): Promise<Response> {
  return Response.json(await deps.managedModels.get(idOf(exchange)));
}

const updateDoc: AdminDoc = {
  operationId: "updateManagedModel",
  summary: "Change a model: its price, places to run, models that stand in",
  description: `Of a model that an upstream lists and nobody declared, this is its first declaration. What headrace.yaml declares is read-only here. ${pathText}`,
  parameters: idParameter,
  requestBody: updateModelRequest,
  example: { price: { input: 0.15, output: 0.6 } },
  response: { description: "The model.", json: managedModelShape },
  errors: [...bodyErrors, "not_found", "service_unavailable"],
};

async function update(exchange: Exchange, principal: Principal, deps: AdminModelDeps): Promise<Response> {
  const request = await readStrictBody(updateModelRequest, exchange.req, deps.requestLimits());
  return Response.json(await deps.managedModels.change(principal, idOf(exchange), request, originOf(exchange, deps)));
}

const deleteDoc: AdminDoc = {
  operationId: "deleteManagedModel",
  summary: "Take back what was declared of a model here",
  description: `One that an upstream lists is offered on, as it lists it and without a price; another is gone. Its usage stays. ${pathText}`,
  parameters: idParameter,
  response: { description: "It is deleted.", json: deletedModel },
  errors: ["not_found", "service_unavailable"],
};

async function remove(exchange: Exchange, principal: Principal, deps: AdminModelDeps): Promise<Response> {
  const id = idOf(exchange);
  await deps.managedModels.remove(principal, id, originOf(exchange, deps));
  return Response.json({ object: "managed_model", id, deleted: true } satisfies z.infer<typeof deletedModel>);
}

function idOf({ params }: Exchange): string {
  return params["*"] ?? "";
}
