// The operators' endpoints for upstreams: add, change, drain, delete, test.
import { z } from "zod";
import type { Principal } from "../../../domain/principal.ts";
import type { Upstreams } from "../../../inference/models/manage-upstreams.ts";
import type { UpstreamTests } from "../../../inference/models/upstream-test.ts";
import {
  createUpstreamRequest,
  updateUpstreamRequest,
  upstreamShape,
  upstreamTestRequest,
  upstreamTestShape,
} from "../../../wire/upstreams.ts";
import { readStrictBody } from "../../decode/strict-body.ts";
import type { Exchange, ScopedRoute } from "../../exchange/route.ts";
import { bodyErrors, originOf } from "../changes.ts";
import { type AdminBaseDeps, type AdminDoc, adminRouter } from "./admin-route.ts";

export interface AdminUpstreamDeps extends AdminBaseDeps {
  upstreams: Pick<Upstreams, "list" | "get" | "add" | "change" | "remove">;
  upstreamTests: Pick<UpstreamTests, "run">;
}

const nameParameter = [{ name: "name", in: "path", description: "Name of the upstream, such as `vllm`." }] as const;
const upstreamList = z.object({ object: z.literal("list"), data: z.array(upstreamShape) }).meta({ id: "UpstreamList" });
const deletedUpstream = z
  .object({ object: z.literal("upstream"), name: z.string(), deleted: z.literal(true) })
  .meta({ id: "DeletedUpstream" });

export function adminUpstreamRoutes(deps: AdminUpstreamDeps): ScopedRoute[] {
  const route = adminRouter(deps);
  return [
    route("GET", "/v1/admin/upstreams", listDoc, list),
    route("POST", "/v1/admin/upstreams", createDoc, create),
    route("GET", "/v1/admin/upstreams/:name", retrieveDoc, retrieve),
    route("PATCH", "/v1/admin/upstreams/:name", updateDoc, update),
    route("DELETE", "/v1/admin/upstreams/:name", deleteDoc, remove),
    route("POST", "/v1/admin/upstream-tests", testDoc, test),
  ];
}

const listDoc: AdminDoc = {
  operationId: "listUpstreams",
  summary: "List the model servers, with where each comes from and how it does",
  description: "The built-in engine, then those of headrace.yaml, those added here, and those found on this machine.",
  response: { description: "The upstreams.", json: upstreamList },
};

function list(_exchange: Exchange, _principal: Principal, { upstreams }: AdminUpstreamDeps): Response {
  return Response.json({ object: "list", data: upstreams.list() } satisfies z.infer<typeof upstreamList>);
}

const createDoc: AdminDoc = {
  operationId: "createUpstream",
  summary: "Add a model server",
  description:
    "It is asked for its models before the answer, for 5 s at most: the answer says how many there are, or what went wrong. Added it is in either case.",
  requestBody: createUpstreamRequest,
  example: { name: "vllm", url: "http://10.0.0.5:8000/v1", max_concurrency: 32 },
  response: { description: "The upstream.", json: upstreamShape },
  errors: [...bodyErrors, "service_unavailable"],
};

async function create(exchange: Exchange, principal: Principal, deps: AdminUpstreamDeps): Promise<Response> {
  const request = await readStrictBody(createUpstreamRequest, exchange.req, deps.requestLimits());
  return Response.json(await deps.upstreams.add(principal, request, originOf(exchange, deps)));
}

const retrieveDoc: AdminDoc = {
  operationId: "retrieveUpstream",
  summary: "Retrieve one model server",
  parameters: nameParameter,
  response: { description: "The upstream.", json: upstreamShape },
  errors: ["not_found"],
};

function retrieve(exchange: Exchange, _principal: Principal, { upstreams }: AdminUpstreamDeps): Response {
  return Response.json(upstreams.get(exchange.params["name"] ?? ""));
}

const updateDoc: AdminDoc = {
  operationId: "updateUpstream",
  summary: "Change a model server that was added here, or drain any",
  description:
    "While it is draining, it finishes what it has and gets nothing new: requests go elsewhere, or get 503 where there is no other. `running` says how many are left. What headrace.yaml defines, what was found and the built-in engine can be drained, and are otherwise read-only.",
  parameters: nameParameter,
  requestBody: updateUpstreamRequest,
  example: { draining: true },
  response: { description: "The upstream.", json: upstreamShape },
  errors: [...bodyErrors, "not_found", "service_unavailable"],
};

async function update(exchange: Exchange, principal: Principal, deps: AdminUpstreamDeps): Promise<Response> {
  const request = await readStrictBody(updateUpstreamRequest, exchange.req, deps.requestLimits());
  const name = exchange.params["name"] ?? "";
  return Response.json(await deps.upstreams.change(principal, name, request, originOf(exchange, deps)));
}

const deleteDoc: AdminDoc = {
  operationId: "deleteUpstream",
  summary: "Delete a model server that was added here",
  description: "What it is working on ends as usual. Drain it first to see when that is over.",
  parameters: nameParameter,
  response: { description: "It is deleted.", json: deletedUpstream },
  errors: ["not_found", "service_unavailable"],
};

async function remove(exchange: Exchange, principal: Principal, deps: AdminUpstreamDeps): Promise<Response> {
  const name = exchange.params["name"] ?? "";
  await deps.upstreams.remove(principal, name, originOf(exchange, deps));
  return Response.json({ object: "upstream", name, deleted: true } satisfies z.infer<typeof deletedUpstream>);
}

const testDoc: AdminDoc = {
  operationId: "testUpstream",
  summary: "Ask a model server for its models, without a change",
  description:
    "Either an upstream that there is, by `name`, or any server by `url`. What goes wrong there is in `error` of the answer, which is a 200. It takes 5 s at most.",
  requestBody: upstreamTestRequest,
  example: { url: "http://10.0.0.5:8000/v1" },
  response: { description: "What came of it.", json: upstreamTestShape },
  errors: [...bodyErrors, "not_found", "service_unavailable"],
};

async function test(exchange: Exchange, principal: Principal, deps: AdminUpstreamDeps): Promise<Response> {
  const request = await readStrictBody(upstreamTestRequest, exchange.req, deps.requestLimits());
  return Response.json(await deps.upstreamTests.run(principal, request));
}
