// One exchange of the client: delivers the answer's head, then its body.

import type { BodySink, BodySource } from "../../base/bytes/body-source.ts";
import { bufferedBytes, type MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import { ByteSpan } from "../../base/bytes/byte-span.ts";
import type { Cancellation } from "../../base/cancellation.ts";
import { Deferred } from "../../base/deferred.ts";
import type { FieldLines, ResponseHead } from "../head.ts";
import type { HeaderLines } from "../message.ts";
import type { AnswerTimeouts, ClientErrorMap, PassedResponse, RequestContent } from "./client-contract.ts";

/** A connection that carries an exchange, or a place in the queue for one. */
export interface Carrier {
  /** Pauses and resumes reading. */
  pause(): void;
  resume(): void;
  /** Sends what `source` delivers, in the switched protocol. */
  upload(source: BodySource): void;
  /** Gives up the exchange, because its answer is no longer needed. */
  abandon(): void;
}

const noFields: HeaderLines = { get: () => null, has: () => false, keys: () => [] };

/** The exchange is also its response and the response's body, to save objects for each request. */
export class ClientExchange implements PassedResponse, BodySource {
  readonly response = new Deferred<PassedResponse>();
  /** The status of the answer, once known. */
  status = 0;
  headers: HeaderLines = noFields;
  trailers: FieldLines | undefined;
  /** The head of the request; see `writeRequest`. */
  readonly head: string;
  readonly method: string;
  readonly idleTimeoutMs: number;
  readonly firstByteTimeoutMs: number;
  /** The monotonic milliseconds at which the wait for the head ends. */
  readonly answerBy: number;
  /** The memory account of bytes that arrive before the receiver takes them. */
  readonly memoryAccount: MemoryAccount;
  readonly faultTrailer: string | undefined;
  /** Whether the request was sent a second time already. */
  retried = false;
  /** The current carrier: a connection, or a place in the queue for one. */
  carrier: Carrier | undefined;
  /** Cleared once an answer has begun. */
  #request: RequestContent | undefined;
  readonly #cancellation: Cancellation;
  readonly #errors: ClientErrorMap;
  #sink: BodySink | undefined;
  /** Bytes that arrived before the receiver was set. */
  #waiting: ByteSpan[] | undefined;
  /** The outcome, if the exchange ended before its receiver was set. */
  #outcome: { error?: unknown } | undefined;
  #over = false;

  /** `nowMs` is monotonic. */
  constructor(
    head: string,
    request: RequestContent,
    timeouts: AnswerTimeouts,
    cancellation: Cancellation,
    errors: ClientErrorMap,
    nowMs: number,
  ) {
    this.head = head;
    this.method = request.method;
    this.idleTimeoutMs = timeouts.idleTimeoutMs;
    this.firstByteTimeoutMs = timeouts.firstByteTimeoutMs;
    this.answerBy = nowMs + timeouts.firstByteTimeoutMs;
    this.memoryAccount = request.memoryAccount ?? bufferedBytes.bounded;
    this.faultTrailer = request.faultTrailer;
    this.#request = request;
    this.#cancellation = cancellation;
    this.#errors = errors;
    cancellation.onCancel(this);
  }

  get body(): BodySource {
    return this;
  }

  /** The request content to send after the head. Undefined once an answer has begun. */
  get request(): RequestContent | undefined {
    return this.#request;
  }

  /** Reports whether the body has a receiver. */
  get flowing(): boolean {
    return this.#sink !== undefined;
  }

  /** Reports whether the exchange is over, so that further bytes are of no use to anybody. */
  get over(): boolean {
    return this.#over;
  }

  /** A forwarded request may switch protocols, because the code that made its head knows whether it asks for that. */
  get maySwitch(): boolean {
    return this.#request?.passed !== undefined;
  }

  continued(): void {
    this.#request?.passed?.onContinue();
  }

  answered({ status, headers }: ResponseHead): void {
    if (!this.#request) return;
    this.#request = undefined;
    this.#cancellation.off(this);
    this.status = status;
    this.headers = headers;
    this.response.resolve(this);
  }

  data(bytes: Buffer, start: number, end: number): void {
    if (this.#over) return;
    const sink = this.#sink;
    if (sink?.piece) {
      sink.piece(bytes, start, end);
      return;
    }
    const piece = new ByteSpan(bytes, start, end);
    if (sink) sink.data(piece);
    else if (this.#waiting) this.#waiting.push(piece);
    else this.#waiting = [piece];
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
    if (this.#request) {
      this.#over = true;
      this.#request = undefined;
      this.#cancellation.off(this);
      this.response.reject(error);
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
    // Resumes before anything is delivered, because the receiver may pause again.
    this.carrier?.resume();
    if (waiting) for (const { buffer, start, end } of waiting) this.data(buffer, start, end);
    if (this.#outcome && !this.#over) {
      this.#over = true;
      if ("error" in this.#outcome) sink.fail(this.#outcome.error);
      else sink.end();
    }
  }

  upload(source: BodySource): void {
    this.carrier?.upload(source);
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

  /** Called when the exchange is cancelled while its answer is awaited. */
  cancelled(): void {
    if (!this.#request) return;
    this.#over = true;
    this.#request = undefined;
    this.#drop();
    this.response.reject(this.#cancellation.reason);
  }

  #drop(): void {
    const { carrier } = this;
    this.carrier = undefined;
    carrier?.abandon();
  }
}
