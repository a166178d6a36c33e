// A request in progress at an MCP server: its deadlines, its buffered bytes, and its end, which comes only once.
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
  /** Progress token of the client. */
  readonly progressToken: unknown;
  /** Number of server requests that the client has not answered yet. */
  asking = 0;
  /** Number of all server requests. */
  asked = 0;
  /** True if the response is a stream of events. */
  isStreamed = false;
  readonly #settled = Promise.withResolvers<ToolAnswer>();
  readonly #onEnd: (isAnswered: boolean) => void;
  readonly #hardTimer: ReturnType<typeof setTimeout>;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #held = 0;
  #isOver = false;

  /** Calls `onEnd` exactly once. */
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
    // A server answers `tasks/result` only when the task has ended, which may take until the hard deadline.
    this.#silenceMs = method === "tasks/result" ? this.hardMs : bounds.timeoutMs;
    this.#hardTimer = setTimeout(this.#late, this.hardMs);
    this.prolong();
    exchange.cancellation.onCancel(this.#cancelled);
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Restarts the silence timeout after a sign of work. */
  prolong(): void {
    clearTimeout(this.#timer);
    // The timeout is paused while a user answers the server's request.
    if (!this.#isOver && this.asking === 0) this.#timer = setTimeout(this.#late, this.#silenceMs);
  }

  /** Counts bytes of the response until the call ends. Returns the refusal if the bytes exceed the memory account. */
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

/** The call whose stream delivered the current message. MCP does not state which call a server request belongs to. */
export const currentCall = new AsyncLocalStorage<Call>();
