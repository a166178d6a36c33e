// Tasks that MCP servers created for tool calls. Each belongs to its caller and is stored for a limited time. Its usage
// is recorded when it has ended.
import { longLived } from "../../base/long-lived.ts";
import type { ClientSession, JsonObject } from "../../domain/tools/client-session.ts";
import { type McpServer, maxCallMs } from "../../domain/tools/mcp-server.ts";
import type { OpenToolUse } from "../../domain/tools/tool-use.ts";
import { type ClientCall, ownerOf } from "./client-call.ts";
import { isObject } from "./server-lists.ts";

/** Name of the tasks extension (SEP-2663, revision 2026-07-28), which client and server must declare. */
export const tasksExtension = "io.modelcontextprotocol/tasks";
/** Member of `_meta` with which results of earlier revisions name their task. */
export const relatedTask = "io.modelcontextprotocol/related-task";
const { bounds, maxMs } = longLived.mcpTask;
const [maxOfOwner, maxOfAccount, maxOfAll] = [bounds.key.most, bounds.account.most, bounds.total.most];
/**
 * Default and maximum milliseconds for which a task is stored and the client may get its result. Servers may state a
 * value.
 */
const [defaultKeptMs, maxKeptMs] = [3_600_000, maxMs];
const maxIdLength = 512;
/** Notification methods for the status of a task. */
const statusMethods: ReadonlySet<unknown> = new Set(["notifications/tasks", "notifications/tasks/status"]);

type End = Parameters<OpenToolUse["ended"]>[0];

export interface MadeTask {
  readonly server: McpServer;
  /** Name of the tool at the server. */
  readonly tool: string;
  readonly link: Pick<ClientSession, "onChange">;
  readonly use: OpenToolUse;
  /** The task as the server returned it. */
  readonly made: JsonObject;
  /** Releases the stored parameters. Called when the task has ended. */
  readonly letGo: () => void;
}

export class Task {
  readonly owner: string;
  readonly accountId: string;
  readonly tool: string;
  readonly #id: unknown;
  readonly #use: OpenToolUse;
  readonly #stop: () => void;
  readonly #letGo: () => void;
  readonly #timer: ReturnType<typeof setTimeout>;
  #isOver = false;

  constructor(owner: string, accountId: string, { server, tool, link, use, made: { taskId }, letGo }: MadeTask) {
    this.owner = owner;
    this.accountId = accountId;
    this.tool = tool;
    this.#id = taskId;
    this.#use = use;
    this.#letGo = letGo;
    // The listener keeps the session, and so the server's process, in use until the task has ended.
    this.#stop = link.onChange((method, params) => {
      if (statusMethods.has(method)) void this.heard(method, params);
    });
    // After the maximum duration of a call, the usage is recorded even if the task goes on.
    this.#timer = setTimeout(() => void this.end("completed"), maxCallMs(server));
    use.rest();
  }

  /** Handles a response or notification of the server. If the task has ended, records its usage. */
  async heard(method: string, said: JsonObject): Promise<void> {
    if (method === "tasks/result") return await this.end("completed", said);
    // In revision 2026-07-28 and later, this response only confirms that cancellation was requested.
    if (method === "tasks/cancel" && said["status"] === undefined) return await this.end("cancelled");
    const { taskId, status, result } = said;
    if (taskId !== this.#id) return;
    if (status === "completed") await this.end("completed", isObject(result) ? result : {});
    else if (status === "failed" || status === "cancelled") await this.end(status);
  }

  async end(outcome: End["outcome"], result: JsonObject = {}): Promise<void> {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#stop();
    const code = outcome === "failed" ? "upstream_error" : null;
    const isError = result["isError"] === true;
    try {
      await this.#use.ended({ outcome, code, isError, content: () => JSON.stringify(result) });
    } finally {
      this.#letGo();
    }
  }
}

export class Tasks {
  readonly #tasks = new Map<string, { task: Task; timer: ReturnType<typeof setTimeout> }>();

  /** Reports whether the owner may have another task. */
  hasRoom({ principal }: Pick<ClientCall, "principal">): boolean {
    const owner = ownerOf(principal);
    let [own, ofAccount] = [0, 0];
    for (const { task } of this.#tasks.values()) {
      if (task.owner === owner) own++;
      if (task.accountId === principal.account.id) ofAccount++;
    }
    return own < maxOfOwner && ofAccount < maxOfAccount && this.#tasks.size < maxOfAll;
  }

  /** Stores a task. It takes over the usage record of the call that created it. */
  add({ principal }: Pick<ClientCall, "principal">, made: MadeTask): void {
    const owner = ownerOf(principal);
    const key = keyOf(owner, made.server.name, String(made.made["taskId"]));
    this.#drop(key);
    const { ttl, ttlMs = ttl } = made.made;
    const keptMs = typeof ttlMs === "number" && ttlMs > 0 ? Math.min(ttlMs, maxKeptMs) : defaultKeptMs;
    const timer = setTimeout(() => this.#drop(key), Math.max(keptMs, maxCallMs(made.server)));
    timer.unref();
    this.#tasks.set(key, { task: new Task(owner, principal.account.id, made), timer });
  }

  /** Returns the owner's task; `id` is the server's id of the task. */
  find({ principal }: Pick<ClientCall, "principal">, server: McpServer, id: string): Task | undefined {
    return this.#tasks.get(keyOf(ownerOf(principal), server.name, id))?.task;
  }

  /** Ends all tasks, because the gateway stops and clients cannot return. */
  async close(): Promise<void> {
    await Promise.all([...this.#tasks.keys()].map((key) => this.#drop(key)));
  }

  async #drop(key: string): Promise<void> {
    const known = this.#tasks.get(key);
    if (!known) return;
    this.#tasks.delete(key);
    clearTimeout(known.timer);
    await known.task.end("cancelled");
  }
}

/** Returns the task that a result contains; undefined if the server created none. */
export function taskIn({ resultType, task, ...rest }: JsonObject): JsonObject | undefined {
  const made = resultType === "task" ? rest : task;
  return isObject(made) && typeof made["taskId"] === "string" ? made : undefined;
}

/** Reports whether the task's id has a valid form for clients. */
export function hasId({ taskId }: JsonObject): boolean {
  return typeof taskId === "string" && taskId !== "" && taskId.length <= maxIdLength && /^[\x21-\x7e]+$/.test(taskId);
}

/** Reports whether these capabilities (of a client or a server) declare the tasks extension. */
export function hasTasksExtension({ extensions }: JsonObject): boolean {
  return isObject(extensions) && isObject(extensions[tasksExtension]);
}

/** Returns the capabilities without the tasks extension. */
export function withoutTasksExtension(capabilities: JsonObject): JsonObject {
  const { extensions } = capabilities;
  if (!isObject(extensions)) return capabilities;
  const { [tasksExtension]: _, ...others } = extensions;
  return { ...capabilities, extensions: others };
}

function keyOf(owner: string, server: string, id: string): string {
  return `${owner} ${server} ${id}`;
}
