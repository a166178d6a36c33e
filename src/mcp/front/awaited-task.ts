// A tool of 2025-11-25 that is a task and nothing else, called by who has no such tasks: the gateway makes it, waits, and gives what comes of it.
import type { Cancellation } from "../../base/cancellation.ts";
import type { Clock } from "../../base/clock.ts";
import { GatewayError } from "../../base/errors.ts";
import type { JsonObject, ToolExchange, ToolLink } from "../../domain/tools/tool-link.ts";
import { longestCallMs, type ToolServer } from "../../domain/tools/tool-server.ts";
import { isObject } from "./server-lists.ts";
import { isTellable, relatedTask, taskIn } from "./tasks.ts";

/** Servers say how often they like to be asked. */
const [usualPollMs, leastPollMs, mostPollMs] = [1_000, 100, 5_000];

/** Whether a tool, as its server lists it, cannot be called but as a task. */
export function isTaskAlone({ isLegacy, capabilities }: ToolLink, { execution }: JsonObject): boolean {
  const isDeclared = isLegacy && isObject(capabilities["tasks"]);
  return isDeclared && isObject(execution) && execution["taskSupport"] === "required";
}

export class AwaitedTask {
  readonly #server: ToolServer;
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #cancellation: Cancellation;
  readonly #untilMs: number;
  #id: unknown;
  #isAskedForResult = false;

  constructor(server: ToolServer, clock: Pick<Clock, "monotonicMs">, cancellation: Cancellation) {
    this.#server = server;
    this.#clock = clock;
    this.#cancellation = cancellation;
    this.#untilMs = clock.monotonicMs() + longestCallMs(server);
  }

  /** The call by which it is made. */
  asked(params: JsonObject): JsonObject {
    return { ...params, task: { ttl: longestCallMs(this.#server) } };
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
    const wantedMs = typeof pollInterval === "number" ? pollInterval : usualPollMs;
    await this.#pause(Math.min(Math.max(wantedMs, leastPollMs), mostPollMs));
    return { method: "tasks/get", params };
  };

  /** What its result is to who knows of no task. */
  told({ _meta, ...result }: JsonObject): JsonObject {
    if (!isObject(_meta)) return result;
    const { [relatedTask]: _, ...others } = _meta;
    return Object.keys(others).length > 0 ? { ...result, _meta: others } : result;
  }

  /** Nobody waits for it any more. */
  callOff(link: ToolLink, exchange: ToolExchange): void {
    if (this.#id !== undefined) link.request("tasks/cancel", { taskId: this.#id }, exchange).catch(() => {});
  }

  /** Rejects where its caller leaves meanwhile, or it takes longer than any call may. */
  async #pause(ms: number): Promise<void> {
    if (this.#clock.monotonicMs() + ms > this.#untilMs) {
      const most = longestCallMs(this.#server);
      throw new GatewayError(
        "upstream_timeout",
        `The task of the server of tools "${this.#server.name}" did not end within ${most} ms, the longest that a call of it may last.`,
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
