// A server whose tools are tasks, as 2025-11-25 has them and as the extension of 2026-07-28 does, by names that the official suite asks for.
import { CLIENT_CAPABILITIES_META_KEY, Server, type ServerContext } from "@modelcontextprotocol/server";

type Json = Record<string, unknown>;

interface Task {
  id: string;
  status: "working" | "input_required" | "completed" | "failed" | "cancelled";
  createdAt: string;
  changedAt: string;
  result?: Json;
  error?: { code: number; message: string };
  /** Questions that nobody has answered yet, by key, and what was answered. */
  asks: Json;
  answers: Json;
  /** Settles it, where it is not cancelled before. */
  go(): void;
}

const extension = "io.modelcontextprotocol/tasks";
const over = new Set(["completed", "failed", "cancelled"]);
const said = (text: string): Json => ({ content: [{ type: "text", text }] });
const form = (message: string, field: string): Json => ({
  method: "elicitation/create",
  params: {
    message,
    requestedSchema: { type: "object", properties: { [field]: { type: "string" } } },
  },
});
const anything = {
  "~standard": { version: 1, vendor: "test", validate: (value: unknown) => ({ value }) },
} as const;

/** Tools that are tasks, with whether they can be nothing else. */
const taskTools: Record<string, "optional" | "required"> = {
  ...{ slow_compute: "optional", protocol_error_job: "optional", confirm_delete: "optional", multi_input: "optional" },
  ...{ failing_job: "required", test_tool_with_task: "required", sign_off: "required", endless: "required" },
};

export class TaskServers {
  readonly tasks = new Map<string, Task>();
  /** The id of the next one in the place of one that nobody could guess. */
  nextId: string | undefined;

  readonly make = (): Server => {
    const tasks = { cancel: {}, requests: { tools: { call: {} } } };
    const capabilities = { tools: {}, tasks, extensions: { [extension]: {} } };
    const server = new Server({ name: "tasks", version: "1.0.0" }, { capabilities });
    const isModern = ({ mcpReq }: ServerContext) => mcpReq.envelope !== undefined;
    server.fallbackRequestHandler = async ({ method, params = {} }, context) =>
      this.#answer(method, params, context, isModern(context));
    for (const method of ["tasks/get", "tasks/cancel"]) {
      server.setRequestHandler(method, { params: anything }, async (params, context) =>
        this.#answer(method, params as Json, context, isModern(context)),
      );
    }
    return server;
  };

  async #answer(method: string, params: Json, context: ServerContext, isModern: boolean): Promise<Json> {
    if (method === "tools/list") return { tools: ["greet", ...Object.keys(taskTools)].map(toolOf) };
    if (method === "tools/call") return await this.#call(params, context, isModern);
    const task = this.tasks.get(String(params["taskId"]));
    if (!task) throw fault(-32_602, "Unknown task");
    if (method === "tasks/get") return isModern ? detailed(task) : early(task);
    if (method === "tasks/cancel") {
      if (!over.has(task.status)) change(task, "cancelled");
      return isModern ? {} : early(task);
    }
    if (method === "tasks/update") {
      for (const [key, answer] of Object.entries(context.mcpReq.inputResponses ?? {})) {
        if (!(key in task.asks)) continue;
        delete task.asks[key];
        task.answers[key] = answer;
      }
      if (task.status === "input_required" && Object.keys(task.asks).length === 0) task.go();
      return {};
    }
    if (method !== "tasks/result" || isModern) throw fault(-32_601, "Method not found");
    for (const [key, ask] of Object.entries(task.asks)) {
      // Who waits for the result is asked, as long as that lasts.
      task.answers[key] = await context.mcpReq.send(ask as { method: string; params: Json }, anything);
      delete task.asks[key];
      task.go();
    }
    while (!over.has(task.status)) await Bun.sleep(20);
    return { ...task.result, _meta: { "io.modelcontextprotocol/related-task": { taskId: task.id } } };
  }

  async #call({ name, arguments: given, task: wanted }: Json, { mcpReq }: ServerContext, isModern: boolean) {
    const args = (given ?? {}) as Json;
    const envelope: Json = { ...mcpReq.envelope };
    const capabilities = envelope[CLIENT_CAPABILITIES_META_KEY] as { extensions?: Json } | undefined;
    const isTask = isModern ? capabilities?.extensions?.[extension] !== undefined : wanted !== undefined;
    if (name === "greet") return said(`Hello, ${args["name"]}!`);
    const kind = taskTools[String(name)];
    if (kind === undefined) throw fault(-32_602, "Unknown tool");
    if (!isTask && kind === "required") {
      const requiredCapabilities = { extensions: { [extension]: {} } };
      throw isModern ? fault(-32_021, "It is a task.", { requiredCapabilities }) : fault(-32_601, "It is a task.");
    }
    if (name === "test_tool_with_task" && mcpReq.inputResponses === undefined) {
      return { resultType: "input_required", inputRequests: { who: form("Who?", "name") }, requestState: "state" };
    }
    const settled = () => this.#settle(String(name), args, { ...mcpReq.inputResponses });
    if (!isTask || (name === "slow_compute" && args["seconds"] === 0)) return settled();
    const task = this.#begin(String(name), args, settled);
    return isModern ? { ...shown(task), resultType: "task" } : { task: early(task) };
  }

  #settle(name: string, { seconds, label, filename }: Json, answers: Json): Json {
    if (name === "failing_job") return { ...said("It failed."), isError: true };
    if (name === "slow_compute") return said(`${label} took ${seconds} s.`);
    return said(`${name} ${filename ?? ""} ${JSON.stringify(answers)}`);
  }

  #begin(name: string, args: Json, settled: () => Json): Task {
    const now = new Date().toISOString();
    const id = this.nextId ?? crypto.randomUUID();
    this.nextId = undefined;
    const asks: Json =
      name === "confirm_delete"
        ? { confirm: form("Delete it?", "yes") }
        : name === "sign_off"
          ? { sign: form("Sign it?", "name") }
          : name === "multi_input"
            ? { one: form("One?", "one"), two: form("Two?", "two") }
            : {};
    const task: Task = {
      ...{ id, createdAt: now, changedAt: now, asks, answers: {} },
      status: Object.keys(asks).length > 0 ? "input_required" : "working",
      go() {
        if (over.has(task.status)) return;
        if (name === "protocol_error_job") task.error = { code: -32_603, message: "It broke." };
        else
          task.result = {
            ...settled(),
            ...(Object.keys(task.answers).length > 0 && said(JSON.stringify(task.answers))),
          };
        change(task, task.error ? "failed" : "completed");
      },
    };
    this.tasks.set(id, task);
    const ms = name === "slow_compute" ? Number(args["seconds"]) * 1_000 : 100;
    if (name === "endless") return task;
    if (task.status === "working") setTimeout(task.go, ms).unref();
    return task;
  }
}

function change(task: Task, status: Task["status"]): void {
  task.status = status;
  task.changedAt = new Date().toISOString();
}

/** Its form in the extension. */
function shown({ id, status, createdAt, changedAt }: Task): Json {
  return { taskId: id, status, createdAt, lastUpdatedAt: changedAt, ttlMs: 60_000, pollIntervalMs: 100 };
}

function detailed(task: Task): Json {
  const { status, result, error, asks } = task;
  return {
    ...shown(task),
    ...(status === "completed" && { result }),
    ...(status === "failed" && { error }),
    ...(status === "input_required" && { inputRequests: { ...asks } }),
  };
}

/** Its form in 2025-11-25. */
function early({ id, status, createdAt, changedAt }: Task): Json {
  return { taskId: id, status, createdAt, lastUpdatedAt: changedAt, ttl: 60_000, pollInterval: 100 };
}

function toolOf(name: string): Json {
  const kind = taskTools[name];
  return { name, inputSchema: { type: "object" }, ...(kind && { execution: { taskSupport: kind } }) };
}

function fault(code: number, message: string, data?: unknown): Error {
  return Object.assign(new Error(message), { code, data });
}
