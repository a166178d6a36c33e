// The operators' endpoints for model processes that the gateway starts on demand.
import { z } from "zod";
import type { ModelProcesses } from "../../../inference/models/manage-model-processes.ts";
import {
  changeModelProcessRequest,
  modelProcessList,
  modelProcessOutput,
  modelProcessShape,
} from "../../../wire/model-processes.ts";
import type { ScopedRoute } from "../../exchange/route.ts";
import type { EndpointDeps } from "../endpoint.ts";
import { adminEndpoints } from "./admin-endpoint.ts";

export interface AdminModelProcessDeps extends EndpointDeps {
  modelProcesses: Pick<ModelProcesses, "list" | "memory" | "find" | "change" | "outputAfter">;
}

const endpoint = adminEndpoints<AdminModelProcessDeps>();
const which = [
  { name: "id", in: "path", description: "Name of the command, or the id of a model that only this command serves." },
] as const;

export function adminModelProcessRoutes(deps: AdminModelProcessDeps): ScopedRoute[] {
  return [list(deps), show(deps), change(deps), output(deps)];
}

const list = endpoint("GET", "/v1/admin/model-processes", {
  operationId: "listModelProcesses",
  summary: "List the commands of this server that serve models, with their state and shared memory",
  description:
    "Lists `engine.commands` of the server that answers. Each replica and node has its own. On a development server, the first key is sufficient from the same machine.",
  ownMachine: true,
  response: { description: "The processes.", json: modelProcessList },
  answer: ({ deps: { modelProcesses } }) => ({
    object: "list",
    data: modelProcesses.list(),
    memory: modelProcesses.memory.map((pool) => ({ ...pool })),
  }),
});

const show = endpoint("GET", "/v1/admin/model-processes/:id", {
  operationId: "getModelProcess",
  summary: "Retrieve one command that serves models",
  parameters: which,
  response: { description: "The process.", json: modelProcessShape },
  answer: ({ deps, id }) => deps.modelProcesses.find(id),
});

const change = endpoint("PATCH", "/v1/admin/model-processes/:id", {
  operationId: "changeModelProcess",
  summary: "Load, stop or pin a command that serves models",
  description: "The response comes as soon as the change has begun. The state of the process shows the progress.",
  parameters: which,
  requestBody: changeModelProcessRequest,
  response: { description: "Current state of the process.", json: modelProcessShape },
  answer: ({ deps, principal, id, body, origin }) => deps.modelProcesses.change(principal, id, body, origin),
});

const after = z.coerce.number().int().min(0).default(0);

const output = endpoint("GET", "/v1/admin/model-processes/:id/output", {
  operationId: "getModelProcessOutput",
  summary: "Read the last lines that a command wrote",
  description:
    "Returns at most 1000 lines, without credentials. To follow the output, ask again for the lines after the last number.",
  parameters: which,
  query: z.object({ after: after.meta({ description: "a whole number; only lines after this number are returned" }) }),
  response: { description: "The lines, oldest first.", json: modelProcessOutput },
  answer: ({ deps, id, query }) => ({
    object: "list",
    data: deps.modelProcesses.outputAfter(id, query.after).map((line) => ({ ...line })),
  }),
});
