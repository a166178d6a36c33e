// Calls a tool that requires tasks (revision 2025-11-25) for a client that does not support them: creates a task, polls
// it, and returns its result.
import { Cancellation } from "../../base/cancellation.ts";
import type { Clock } from "../../base/clock.ts";
import { GatewayError } from "../../base/errors.ts";
import type { ClientSession, JsonObject, ToolExchange } from "../../domain/tools/client-session.ts";
import { type McpServer, maxCallMs } from "../../domain/tools/mcp-server.ts";
import type { ToolSampler } from "../../domain/tools/tool-use.ts";
import type { ClientCall } from "./client-call.ts";
import { isObject } from "./server-lists.ts";
import { exchangeOf, resultOf } from "./server-requests.ts";
import { hasId, relatedTask, taskIn } from "./tasks.ts";

/** Milliseconds between polls of a task: default, minimum and maximum. Servers may suggest a value in this range. */
const [defaultPollMs, minPollMs, maxPollMs] = [1_000, 100, 5_000];

/** Reports whether the tool can be called only as a task. */
export function isTaskAlone({ isLegacy, capabilities }: ClientSession, { execution }: JsonObject): boolean {
  const isDeclared = isLegacy && isObject(capabilities["tasks"]);
  return isDeclared && isObject(execution) && execution["taskSupport"] === "required";
}

/** Calls a tool through a new task, and resolves to the result. If the call fails, the task is cancelled. */
export async function askByTask(
  { server, link, params }: { server: McpServer; link: ClientSession; params: JsonObject },
  call: ClientCall,
  sampler: ToolSampler,
  clock: Pick<Clock, "monotonicMs">,
): Promise<JsonObject> {
  const { memoryAccount, cancellation } = call;
  const task = new AwaitedTask(server, clock, cancellation);
  const asked = { ...params, task: { ttl: maxCallMs(server) } };
  try {
    const exchange = { ...exchangeOf(call, params, sampler, server.name), next: task.next };
    return withoutTask(resultOf(await link.request("tools/call", asked, exchange), call, server.name));
  } catch (error) {
    const nobody = { memoryAccount, cancellation: new Cancellation() };
    // Ignore the error: the client gets the original one, and a server that is unreachable ends the task itself.
    if (task.id !== undefined) link.request("tasks/cancel", { taskId: task.id }, nobody).catch(() => {});
    throw error;
  }
}

/** Removes the reference to the task, because the client does not support tasks. */
function withoutTask({ _meta, ...result }: JsonObject): JsonObject {
  if (!isObject(_meta)) return result;
  const { [relatedTask]: _, ...others } = _meta;
  return Object.keys(others).length > 0 ? { ...result, _meta: others } : result;
}

class AwaitedTask {
  readonly #server: McpServer;
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #cancellation: Cancellation;
  readonly #untilMs: number;
  #id: unknown;
  #isAskedForResult = false;

  constructor(server: McpServer, clock: Pick<Clock, "monotonicMs">, cancellation: Cancellation) {
    this.#server = server;
    this.#clock = clock;
    this.#cancellation = cancellation;
    this.#untilMs = clock.monotonicMs() + maxCallMs(server);
  }

  /** Id of the task; undefined until the server has created the task. */
  get id(): unknown {
    return this.#id;
  }

  readonly next: NonNullable<ToolExchange["next"]> = async (result) => {
    if (this.#isAskedForResult) return undefined;
    const said = this.#id === undefined ? taskIn(result) : result;
    // The server returned the result without creating a task.
    if (!said || (this.#id === undefined && !hasId(said))) return undefined;
    this.#id ??= said["taskId"];
    const params = { taskId: this.#id };
    if (said["status"] !== "working") {
      // While it handles `tasks/result`, the server may send requests to the client.
      this.#isAskedForResult = true;
      return { method: "tasks/result", params };
    }
    const { pollInterval } = said;
    const wantedMs = typeof pollInterval === "number" ? pollInterval : defaultPollMs;
    await this.#pause(Math.min(Math.max(wantedMs, minPollMs), maxPollMs));
    return { method: "tasks/get", params };
  };

  /** Waits until the next poll. Rejects if the caller cancels or the maximum duration of a call is over. */
  async #pause(ms: number): Promise<void> {
    if (this.#clock.monotonicMs() + ms > this.#untilMs) {
      const most = maxCallMs(this.#server);
      throw new GatewayError(
        "upstream_timeout",
        `The task of the MCP server "${this.#server.name}" did not end within ${most} ms, the longest that a call of it may last.`,
      );
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, ms);
    this.#cancellation.onCancel(resolve);
    await promise;
    clearTimeout(timer);
    this.#cancellation.off(resolve);
    this.#cancellation.throwIfCancelled();
  }
}
