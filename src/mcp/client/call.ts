// A running request to an MCP server: its timeouts, its buffered bytes, and its result, which is set exactly once.
import { AsyncLocalStorage } from "node:async_hooks";
import { GatewayError } from "../../base/errors.ts";
import type { ToolAnswer, ToolExchange } from "../../domain/tools/client-session.ts";
import { maxCallMs } from "../../domain/tools/mcp-server.ts";

export interface CallBounds {
  readonly server: string;
  readonly timeoutMs: number;
  readonly maxResultBytes: number;
}

export class Call {
  readonly exchange: ToolExchange;
  readonly answered: Promise<ToolAnswer>;
  readonly bounds: CallBounds;
  readonly hardMs: number;
  /** Milliseconds for which the server may be silent. */
  readonly #silenceMs: number;
  /** The progress token that the client sent. */
  readonly progressToken: unknown;
  /** Number of requests from the server to the client that are not answered yet. */
  asking = 0;
  /** Number of all requests that the server sent to the client. */
  asked = 0;
  /** True if the response is a stream of events. */
  isStreamed = false;
  /** Bytes of all response streams of the call, including streams that continue an earlier one. */
  streamedBytes = 0;
  readonly #settled = Promise.withResolvers<ToolAnswer>();
  readonly #onEnd: (isAnswered: boolean) => void;
  readonly #hardTimer: ReturnType<typeof setTimeout>;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #held = 0;
  #isOver = false;

  /** `onEnd` is called exactly once. */
  constructor(
    exchange: ToolExchange,
    bounds: CallBounds,
    { method, progressToken }: { method: string; progressToken: unknown },
    onEnd: (isAnswered: boolean) => void,
  ) {
    this.exchange = exchange;
    this.bounds = bounds;
    this.progressToken = progressToken;
    this.answered = this.#settled.promise;
    this.#onEnd = onEnd;
    this.hardMs = maxCallMs(bounds);
    // A server answers `tasks/result` only after the task has ended, so only the hard deadline applies.
    this.#silenceMs = method === "tasks/result" ? this.hardMs : bounds.timeoutMs;
    this.#hardTimer = setTimeout(this.#late, this.hardMs);
    this.prolong();
    exchange.cancellation.onCancel(this.#cancelled);
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Restarts the timeout, because the server has shown that it is working. */
  prolong(): void {
    clearTimeout(this.#timer);
    // The timeout is paused while a user answers the server's request.
    if (!this.#isOver && this.asking === 0) this.#timer = setTimeout(this.#late, this.#silenceMs);
  }

  /** Counts bytes of the response until the call ends. Returns an error if the caller's memory is used up. */
  hold(bytes: number): GatewayError | undefined {
    if (this.#isOver) return undefined;
    const refusal = this.exchange.memoryAccount.take("answers", bytes);
    if (!refusal) this.#held += bytes;
    return refusal;
  }

  answer(answer: ToolAnswer): void {
    if (this.#end(true)) this.#settled.resolve(answer);
  }

  fail(error: unknown): void {
    if (this.#end(false)) this.#settled.reject(error);
  }

  readonly #late = () => {
    const message = `The MCP server "${this.bounds.server}" did not answer within ${this.#silenceMs} ms.`;
    this.fail(new GatewayError("upstream_timeout", message));
  };

  readonly #cancelled = () => this.fail(this.exchange.cancellation.reason);

  #end(isAnswered: boolean): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#hardTimer);
    this.exchange.cancellation.off(this.#cancelled);
    if (this.#held > 0) this.exchange.memoryAccount.release("answers", this.#held);
    this.#onEnd(isAnswered);
    return true;
  }
}

/**
 * The call whose response stream delivered the message that is being handled. MCP does not say which call a server's
 * request belongs to.
 */
export const currentCall = new AsyncLocalStorage<Call>();
