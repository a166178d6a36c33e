// A request under way at an MCP server: its deadlines, the bytes that are held for it, and its single end.
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
  /** How long its server may say nothing. */
  readonly #silenceMs: number;
  /** What the client would like to hear of progress by. */
  readonly progressToken: unknown;
  /** Questions of the server that the client has not answered yet. */
  asking = 0;
  /** All that it asked. */
  asked = 0;
  /** The answer comes in a stream of events. */
  isStreamed = false;
  readonly #settled = Promise.withResolvers<ToolAnswer>();
  readonly #onEnd: (isAnswered: boolean) => void;
  readonly #hardTimer: ReturnType<typeof setTimeout>;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #held = 0;
  #isOver = false;

  /** `onEnd` is called once. */
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
    // By the protocol it is answered once the task has ended, whenever that is.
    this.#silenceMs = method === "tasks/result" ? this.hardMs : bounds.timeoutMs;
    this.#hardTimer = setTimeout(this.#late, this.hardMs);
    this.prolong();
    exchange.cancellation.onCancel(this.#cancelled);
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** It is being worked on: the wait begins anew. */
  prolong(): void {
    clearTimeout(this.#timer);
    // While a person thinks, the server has no time to keep.
    if (!this.#isOver && this.asking === 0) this.#timer = setTimeout(this.#late, this.#silenceMs);
  }

  /** Takes bytes of its answer, until it is over. Gives the refusal where that is too much. */
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

/** The call on whose stream something comes: the protocol itself does not say to which one a question of a server belongs. */
export const currentCall = new AsyncLocalStorage<Call>();
