// One request of the client on its way: its answer is promised, then pushed to whoever takes it.
import type { BodySink, BodySource } from "../domain/body-source.ts";
import type { Cancellation } from "../domain/cancellation.ts";
import type { ClientErrorMap, ClientRequest, ClientResponse, SendOptions } from "./client-contract.ts";
import type { ResponseHead } from "./head.ts";

/** What carries an exchange. */
export interface Carrier {
  /** Stops and goes on with reading. */
  pause(): void;
  resume(): void;
  /** Nobody wants the rest. */
  abandon(): void;
}

export class ClientExchange implements BodySource {
  readonly response: Promise<ClientResponse>;
  /** What is sent; see `writeRequest`. The body is let go of when an answer has begun. */
  readonly head: string;
  readonly requestId: string | undefined;
  body: string | Uint8Array | undefined;
  readonly method: string;
  readonly idleTimeoutMs: number;
  /** Monotonic milliseconds at which the wait for the head is over. */
  readonly answerBy: number;
  /** It was sent a second time already. */
  retried = false;
  /** What carries it now: a connection, or a place in the queue for one. */
  carrier: Carrier | undefined;
  readonly #cancellation: Cancellation;
  readonly #errors: ClientErrorMap;
  #resolve: ((response: ClientResponse) => void) | undefined;
  #reject: (reason: unknown) => void = () => {};
  #sink: BodySink | undefined;
  /** What came before somebody took it. */
  #waiting: Buffer[] | undefined;
  /** Came in this read, for a sink that takes text: given at its end, however many pieces it came in. */
  #text = "";
  /** How it ended, where that was before somebody took it. */
  #outcome: { error?: unknown } | undefined;
  #over = false;

  constructor(head: string, request: ClientRequest, options: SendOptions, errors: ClientErrorMap) {
    this.head = head;
    this.requestId = request.requestId;
    this.body = request.body;
    this.method = request.method;
    this.idleTimeoutMs = options.idleTimeoutMs;
    this.answerBy = performance.now() + options.firstByteTimeoutMs;
    this.#cancellation = options.cancellation;
    this.#errors = errors;
    this.response = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.#cancellation.onCancel(this.#cancelled);
  }

  /** Whether somebody takes the body. */
  get flowing(): boolean {
    return this.#sink !== undefined;
  }

  /** Nothing that comes is of use to anybody. */
  get over(): boolean {
    return this.#over;
  }

  answered(head: ResponseHead): void {
    this.#cancellation.off(this.#cancelled);
    this.body = undefined;
    const resolve = this.#resolve;
    this.#resolve = undefined;
    resolve?.({ status: head.status, headers: head.headers, body: this });
  }

  data(bytes: Buffer, start: number, end: number): void {
    if (this.#over) return;
    const sink = this.#sink;
    if (sink?.byteText) {
      this.#text += bytes.toString("latin1", start, end);
      return;
    }
    const piece = end - start === bytes.byteLength ? bytes : bytes.subarray(start, end);
    if (sink) sink.data(piece);
    else if (this.#waiting) this.#waiting.push(piece);
    else this.#waiting = [piece];
  }

  /** All of one read was given. */
  dataRead(): void {
    const text = this.#text;
    if (text === "") return;
    this.#text = "";
    if (!this.#over) this.#sink?.byteText?.(text);
  }

  end(): void {
    this.carrier = undefined;
    if (this.#over) return;
    if (!this.#sink) {
      this.#outcome = {};
      return;
    }
    this.#over = true;
    this.#sink.end();
  }

  fail(fault: unknown): void {
    this.carrier = undefined;
    if (this.#over) return;
    const error = this.#errors(fault);
    if (this.#resolve) {
      this.#over = true;
      this.#resolve = undefined;
      this.#cancellation.off(this.#cancelled);
      this.#reject(error);
    } else if (this.#sink) {
      this.#over = true;
      this.#sink.fail(error);
    } else {
      this.#outcome = { error };
    }
  }

  flow(sink: BodySink): void {
    if (this.#over) return;
    this.#sink = sink;
    const waiting = this.#waiting;
    this.#waiting = undefined;
    // Before anything is given: its taker may pause.
    this.carrier?.resume();
    for (const bytes of waiting ?? []) this.data(bytes, 0, bytes.byteLength);
    this.dataRead();
    if (this.#outcome && !this.#over) {
      this.#over = true;
      if ("error" in this.#outcome) sink.fail(this.#outcome.error);
      else sink.end();
    }
  }

  pause(): void {
    this.carrier?.pause();
  }

  resume(): void {
    if (this.#sink) this.carrier?.resume();
  }

  cancel(): void {
    if (this.#over) return;
    this.#over = true;
    this.#waiting = undefined;
    this.#drop();
  }

  readonly #cancelled = (): void => {
    if (!this.#resolve) return;
    this.#over = true;
    this.#resolve = undefined;
    this.#reject(this.#cancellation.reason);
    this.#drop();
  };

  #drop(): void {
    const { carrier } = this;
    this.carrier = undefined;
    carrier?.abandon();
  }
}
