// Runs a client's request at an MCP server: admits it, sends it, and records it until it (or its task) has ended. Also
// resumes suspended calls.
import { Cancellation } from "../../base/cancellation.ts";
import type { Clock } from "../../base/clock.ts";
import { GatewayError } from "../../base/errors.ts";
import type { ClientSession, JsonObject } from "../../domain/tools/client-session.ts";
import type { McpServer, McpServers } from "../../domain/tools/mcp-server.ts";
import type { ToolSampler, ToolUses } from "../../domain/tools/tool-use.ts";
import { mayUseServer } from "../../domain/tools/usable-server.ts";
import { askByTask, isTaskAlone } from "./awaited-task.ts";
import type { ServerCatalog } from "./catalog.ts";
import { type ClientCall, keepAsked } from "./client-call.ts";
import { publicName, publicUri } from "./names.ts";
import { passedResult } from "./passed-result.ts";
import { invalidParams, missingCapability, RpcError } from "./rpc-error.ts";
import { askServer } from "./server-requests.ts";
import { SuspendedCalls } from "./suspended-calls.ts";
import { hasId, hasTasksExtension, Tasks, taskIn, tasksExtension } from "./tasks.ts";
import { mayUseResources, mayUseTool } from "./view.ts";

export interface ServerCallsDeps {
  servers: Pick<McpServers, "find">;
  uses: Pick<ToolUses, "begin">;
  sampler: ToolSampler;
  clock: Pick<Clock, "monotonicMs">;
}

/** Request to a server. */
interface Asked {
  readonly server: McpServer;
  readonly link: ClientSession;
  readonly method: string;
  /** Name of the tool, prompt or resource at the server; null if the request names none. */
  readonly name: string | null;
  readonly params: JsonObject;
}

export class ServerCalls {
  readonly #deps: ServerCallsDeps;
  readonly #offers: Pick<ServerCatalog, "permit" | "open">;
  readonly #held = new SuspendedCalls();
  readonly #tasks = new Tasks();

  constructor(deps: ServerCallsDeps, offers: Pick<ServerCatalog, "permit" | "open">) {
    this.#deps = deps;
    this.#offers = offers;
  }

  /** Runs a request at the server. Returns the result in the form for the client. */
  async use(
    method: string,
    server: McpServer,
    name: string | null,
    params: JsonObject,
    call: ClientCall,
  ): Promise<JsonObject> {
    await this.#offers.permit(call, method, name, server);
    const link = await this.#offers.open(server, call);
    const work = (one: ClientCall) => this.#onRecord({ server, link, method, name, params }, call, one);
    if (call.isAskable || !link.isLegacy) return await work(call);
    const subject = { server: server.name, method, name };
    return await this.#held.begin({ ...call, lacking: new Set() }, subject, params, work);
  }

  /**
   * Returns the result of a suspended call that the client continues with its responses, even while new calls are
   * refused; undefined if it continues none. `asked` is the public name or URI in the request.
   */
  resumed(
    method: string,
    asked: unknown,
    { requestState, inputResponses }: JsonObject,
    call: ClientCall,
  ): Promise<JsonObject> | undefined {
    if (call.isAskable) return undefined;
    const { only, principal } = call;
    return this.#held.resume(call, requestState, inputResponses, ({ server: name, method: of, name: own }) => {
      const server = only === undefined || only === name ? this.#deps.servers.find(name) : undefined;
      if (!server || own === null || of !== method || !mayUseServer(server, principal)) return false;
      const at = only === undefined ? name : undefined;
      if (method !== "resources/read") return asked === publicName(at, own) && mayUseTool(server, own, principal);
      return asked === (at === undefined ? own : publicUri(at, own)) && mayUseResources(server, principal);
    });
  }

  /** Runs a request about a task. The task id contains the server's name; other owners' tasks are unknown. */
  async atTask(method: string, params: JsonObject, call: ClientCall): Promise<JsonObject> {
    const { taskId } = params;
    if (!call.isAskable && !hasTasksExtension(call.capabilities)) {
      const requiredCapabilities = { extensions: { [tasksExtension]: {} } };
      throw new RpcError(missingCapability, "Tasks are for clients that say that they know them.", {
        requiredCapabilities,
      });
    }
    if (typeof taskId !== "string") throw new RpcError(invalidParams, "taskId must be a text.");
    const { only, principal } = call;
    const dot = taskId.indexOf(".");
    const name = only ?? taskId.slice(0, Math.max(0, dot));
    const server = this.#deps.servers.find(name);
    const own = only === undefined ? taskId.slice(dot + 1) : taskId;
    const task = server && mayUseServer(server, principal) ? this.#tasks.find(call, server, own) : undefined;
    if (!server || !task || !mayUseTool(server, task.tool, principal))
      throw new RpcError(invalidParams, "Unknown task.");
    const answer = await this.use(method, server, null, { ...params, taskId: own }, call);
    await task.heard(method, { ...answer, taskId: own });
    return answer;
  }

  /** Cancels suspended calls and tasks, because the gateway stops and clients cannot return. */
  async close(): Promise<void> {
    this.#held.close();
    await this.#tasks.close();
  }

  /**
   * Sends the request and records it in the ledger until it ends. `one` is the call at the server, which may outlive
   * the client's request `call` if it is suspended.
   */
  async #onRecord(asked: Asked, call: ClientCall, one: ClientCall): Promise<JsonObject> {
    const { server, link, method, name, params } = asked;
    const { principal, requestId, cancellation, trace } = call;
    const content = () => JSON.stringify(params);
    const use = await this.#deps.uses.begin({
      ...{ requestId, principal, server, method, name, content, cancellation, trace },
    });
    try {
      const { sampler, clock } = this.#deps;
      const isByTask = params["task"] === undefined && one.tool !== undefined && isTaskAlone(link, one.tool);
      const result = isByTask
        ? await askByTask(asked, one, sampler, clock)
        : await askServer(asked, one, sampler, clock);
      const made = method === "tools/call" && name !== null ? taskIn(result) : undefined;
      if (made) {
        const letGo = this.#takeTask(made, asked, one);
        this.#tasks.add(one, { server, tool: name ?? "", link, use, made, letGo });
        return passedResult(result, server, one);
      }
      const isError = result["isError"] === true;
      // The server may have answered after the client disconnected.
      const outcome = one.cancellation.cancelled ? "cancelled" : "completed";
      await use.ended({ outcome, code: null, isError, content: () => JSON.stringify(result) });
      return passedResult(result, server, one);
    } catch (error) {
      const isCancelled = one.cancellation.cancelled;
      const code = error instanceof GatewayError ? error.code : "upstream_error";
      const outcome = isCancelled ? "cancelled" : "failed";
      await use.ended({ outcome, code: isCancelled ? null : code, isError: false, content: () => "" });
      throw error;
    }
  }

  /**
   * Accepts a task that the server created. Returns a function that releases its stored parameters. If the client did
   * not request a task or has too many, cancels it and throws.
   */
  #takeTask(made: JsonObject, { link, params }: Asked, call: ClientCall): () => void {
    try {
      this.#requireTask(made, link, params, call);
      return keepAsked(call, params);
    } catch (error) {
      const nobody = { memoryAccount: call.memoryAccount, cancellation: new Cancellation() };
      // Ignore the error: the client gets the original one, and a server that is unreachable ends the task itself.
      link.request("tasks/cancel", { taskId: made["taskId"] }, nobody).catch(() => {});
      throw error;
    }
  }

  #requireTask(made: JsonObject, link: ClientSession, { task }: JsonObject, call: ClientCall): void {
    const isAsked = link.isLegacy ? task !== undefined : !call.isAskable && hasTasksExtension(call.capabilities);
    if (!isAsked || !hasId(made)) {
      const message = "The server made a task that nobody asked for, or that cannot be asked for.";
      throw new GatewayError("upstream_error", message);
    }
    if (this.#tasks.hasRoom(call)) return;
    const message = "As many tasks are under way for this key as may. Let some of them end.";
    throw new GatewayError("rate_limit_exceeded", message);
  }
}
