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
  summary: "List the model servers, with their source and state",
  description:
    "The built-in engine comes first, then servers in headrace.yaml, servers added by this API, and servers found on this machine.",
  response: { description: "The upstreams.", json: upstreamList },
  answer: ({ deps: { upstreams } }) => ({ object: "list", data: upstreams.list() }),
});

const create = endpoint("POST", "/v1/admin/upstreams", {
  operationId: "createUpstream",
  summary: "Add a model server",
  description:
    "The gateway first requests the list of models, for at most 5 s. The answer has their number or the error. The server is added in either case.",
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
  summary: "Change a model server that was added by this API, or drain any",
  description:
    "A draining server finishes its requests and gets no new ones. New requests go to other servers, or get 503 if there are none. `running` is the number of remaining requests. Servers in headrace.yaml, servers found on this machine and the built-in engine can be drained, but are otherwise read-only.",
  parameters: nameParameter,
  requestBody: updateUpstreamRequest,
  example: { draining: true },
  response: { description: "The upstream.", json: upstreamShape },
  answer: ({ deps, principal, id: name, body, origin }) => deps.upstreams.change(principal, name, body, origin),
});

const remove = endpoint("DELETE", "/v1/admin/upstreams/:name", {
  operationId: "deleteUpstream",
  summary: "Delete a model server that was added by this API",
  description: "Running requests end as usual. Drain the server first to see when they have ended.",
  parameters: nameParameter,
  response: { description: "The server is deleted.", json: deletedUpstream },
  async answer({ deps, principal, id: name, origin }) {
    await deps.upstreams.remove(principal, name, origin);
    return { object: "upstream", name, deleted: true };
  },
});

const test = endpoint("POST", "/v1/admin/upstream-tests", {
  operationId: "testUpstream",
  summary: "Test a model server, without a change",
  description:
    "Requests the models of an existing upstream by `name`, or of any server by `url`. Faults of the server are in `error` of the answer, with status 200. The test takes at most 5 s.",
  requestBody: upstreamTestRequest,
  example: { url: "http://10.0.0.5:8000/v1" },
  response: { description: "Result of the test.", json: upstreamTestShape },
  errors: ["not_found"],
  answer: ({ deps, principal, body }) => deps.upstreamTests.run(principal, body),
});
