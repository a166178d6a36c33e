// The operators' endpoints for processes that serve models and are started for requests.
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
  { name: "id", in: "path", description: "Its name, or the id of a model that it alone serves." },
] as const;

export function adminModelProcessRoutes(deps: AdminModelProcessDeps): ScopedRoute[] {
  return [list(deps), show(deps), change(deps), output(deps)];
}

const list = endpoint("GET", "/v1/admin/model-processes", {
  operationId: "listModelProcesses",
  summary: "List the commands of this server that serve models, with their state and the memory that they share",
  description:
    "Those of `engine.commands` of the server that answers; each replica and node has its own. On the machine of a development server its first key will do.",
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
  summary: "Show one command that serves models",
  parameters: which,
  response: { description: "The process.", json: modelProcessShape },
  answer: ({ deps, id }) => deps.modelProcesses.find(id),
});

const change = endpoint("PATCH", "/v1/admin/model-processes/:id", {
  operationId: "changeModelProcess",
  summary: "Load, stop or pin a command that serves models",
  description: "Answers once the change has begun; its state tells how far it is.",
  parameters: which,
  requestBody: changeModelProcessRequest,
  response: { description: "The process as it is now.", json: modelProcessShape },
  answer: ({ deps, principal, id, body, origin }) => deps.modelProcesses.change(principal, id, body, origin),
});

const after = z.coerce.number().int().min(0).default(0);

const output = endpoint("GET", "/v1/admin/model-processes/:id/output", {
  operationId: "getModelProcessOutput",
  summary: "Show the last lines that a command wrote",
  description: "At most a thousand, without credentials. To follow it, ask again behind the last number.",
  parameters: which,
  query: z.object({ after: after.meta({ description: "a whole number, the lines behind which are wanted" }) }),
  response: { description: "The lines, the oldest first.", json: modelProcessOutput },
  answer: ({ deps, id, query }) => ({
    object: "list",
    data: deps.modelProcesses.outputAfter(id, query.after).map((line) => ({ ...line })),
  }),
});
