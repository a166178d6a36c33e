// The operators' endpoints for upstreams: add, change, drain, delete, test.
import { z } from "zod";
import type { Upstreams } from "../../../inference/models/manage-upstreams.ts";
import type { UpstreamTests } from "../../../inference/models/upstream-test.ts";
import {
  createUpstreamRequest,
  updateUpstreamRequest,
  upstreamShape,
  upstreamTestRequest,
  upstreamTestShape,
} from "../../../wire/upstreams.ts";
import type { ScopedRoute } from "../../exchange/route.ts";
import type { EndpointDeps } from "../endpoint.ts";
import { wholeListOf } from "../list.ts";
import { adminEndpoints } from "./admin-endpoint.ts";

export interface AdminUpstreamDeps extends EndpointDeps {
  upstreams: Pick<Upstreams, "list" | "get" | "add" | "change" | "remove">;
  upstreamTests: Pick<UpstreamTests, "run">;
}

const nameParameter = [{ name: "name", in: "path", description: "Name of the upstream, such as `vllm`." }] as const;
const upstreamList = wholeListOf(upstreamShape, "UpstreamList");
const deletedUpstream = z
  .object({ object: z.literal("upstream"), name: z.string(), deleted: z.literal(true) })
  .meta({ id: "DeletedUpstream" });

const endpoint = adminEndpoints<AdminUpstreamDeps>();

export function adminUpstreamRoutes(deps: AdminUpstreamDeps): ScopedRoute[] {
  return [list(deps), create(deps), retrieve(deps), update(deps), remove(deps), test(deps)];
}

const list = endpoint("GET", "/v1/admin/upstreams", {
  operationId: "listUpstreams",
  summary: "List the model servers, with where each comes from and how it does",
  description: "The built-in engine, then those of headrace.yaml, those added here, and those found on this machine.",
  response: { description: "The upstreams.", json: upstreamList },
  answer: ({ deps: { upstreams } }) => ({ object: "list", data: upstreams.list() }),
});

const create = endpoint("POST", "/v1/admin/upstreams", {
  operationId: "createUpstream",
  summary: "Add a model server",
  description:
    "It is asked for its models before the answer, for 5 s at most: the answer says how many there are, or what went wrong. Added it is in either case.",
  requestBody: createUpstreamRequest,
  example: { name: "vllm", url: "http://10.0.0.5:8000/v1", max_concurrency: 32 },
  response: { description: "The upstream.", json: upstreamShape },
  answer: ({ deps, principal, body, origin }) => deps.upstreams.add(principal, body, origin),
});

const retrieve = endpoint("GET", "/v1/admin/upstreams/:name", {
  operationId: "retrieveUpstream",
  summary: "Retrieve one model server",
  parameters: nameParameter,
  response: { description: "The upstream.", json: upstreamShape },
  answer: ({ deps: { upstreams }, id }) => upstreams.get(id),
});

const update = endpoint("PATCH", "/v1/admin/upstreams/:name", {
  operationId: "updateUpstream",
  summary: "Change a model server that was added here, or drain any",
  description:
    "While it is draining, it finishes what it has and gets nothing new: requests go elsewhere, or get 503 where there is no other. `running` says how many are left. What headrace.yaml defines, what was found and the built-in engine can be drained, and are otherwise read-only.",
  parameters: nameParameter,
  requestBody: updateUpstreamRequest,
  example: { draining: true },
  response: { description: "The upstream.", json: upstreamShape },
  answer: ({ deps, principal, id: name, body, origin }) => deps.upstreams.change(principal, name, body, origin),
});

const remove = endpoint("DELETE", "/v1/admin/upstreams/:name", {
  operationId: "deleteUpstream",
  summary: "Delete a model server that was added here",
  description: "What it is working on ends as usual. Drain it first to see when that is over.",
  parameters: nameParameter,
  response: { description: "It is deleted.", json: deletedUpstream },
  async answer({ deps, principal, id: name, origin }) {
    await deps.upstreams.remove(principal, name, origin);
    return { object: "upstream", name, deleted: true };
  },
});

const test = endpoint("POST", "/v1/admin/upstream-tests", {
  operationId: "testUpstream",
  summary: "Ask a model server for its models, without a change",
  description:
    "Either an upstream that there is, by `name`, or any server by `url`. What goes wrong there is in `error` of the answer, which is a 200. It takes 5 s at most.",
  requestBody: upstreamTestRequest,
  example: { url: "http://10.0.0.5:8000/v1" },
  response: { description: "What came of it.", json: upstreamTestShape },
  errors: ["not_found"],
  answer: ({ deps, principal, body }) => deps.upstreamTests.run(principal, body),
});
