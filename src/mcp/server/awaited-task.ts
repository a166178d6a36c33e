// A tool of 2025-11-25 that is a task and nothing else, called by who has no such tasks: the gateway makes it, waits, and gives what comes of it.
import { Cancellation } from "../../base/cancellation.ts";
import type { Clock } from "../../base/clock.ts";
import { GatewayError } from "../../base/errors.ts";
import type { ClientSession, JsonObject, ToolExchange } from "../../domain/tools/client-session.ts";
import { type McpServer, maxCallMs } from "../../domain/tools/mcp-server.ts";
import type { ToolSampler } from "../../domain/tools/tool-use.ts";
import type { ClientCall } from "./client-call.ts";
import { isObject } from "./server-lists.ts";
import { exchangeOf, resultOf } from "./server-requests.ts";
import { isTellable, relatedTask, taskIn } from "./tasks.ts";

/** Servers say how often they like to be asked. */
const [defaultPollMs, minPollMs, maxPollMs] = [1_000, 100, 5_000];

/** Whether a tool, as its server lists it, cannot be called but as a task. */
export function isTaskAlone({ isLegacy, capabilities }: ClientSession, { execution }: JsonObject): boolean {
  const isDeclared = isLegacy && isObject(capabilities["tasks"]);
  return isDeclared && isObject(execution) && execution["taskSupport"] === "required";
}

/** The same as `askServer`, by a task that is made for it, and called off where nobody waits for it any more. */
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
    // The client gets the error that led here; a server that cannot be reached ends the task itself.
    if (task.id !== undefined) link.request("tasks/cancel", { taskId: task.id }, nobody).catch(() => {});
    throw error;
  }
}

/** What its result is to who knows of no task. */
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

  /** Undefined until it is made. */
  get id(): unknown {
    return this.#id;
  }

  readonly next: NonNullable<ToolExchange["next"]> = async (result) => {
    if (this.#isAskedForResult) return undefined;
    const said = this.#id === undefined ? taskIn(result) : result;
    // It gave its result at once.
    if (!said || (this.#id === undefined && !isTellable(said))) return undefined;
    this.#id ??= said["taskId"];
    const params = { taskId: this.#id };
    if (said["status"] !== "working") {
      // What it waits for, it asks for here.
      this.#isAskedForResult = true;
      return { method: "tasks/result", params };
    }
    const { pollInterval } = said;
    const wantedMs = typeof pollInterval === "number" ? pollInterval : defaultPollMs;
    await this.#pause(Math.min(Math.max(wantedMs, minPollMs), maxPollMs));
    return { method: "tasks/get", params };
  };

  /** Rejects where its caller leaves meanwhile, or it takes longer than any call may. */
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
