// One request of the HTTP client and its answer: delivers the answer's headers, then its body.

import type { BodySink, BodySource } from "../../base/bytes/body-source.ts";
import { bufferedBytes, type MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import { ByteSpan } from "../../base/bytes/byte-span.ts";
import type { Cancellation } from "../../base/cancellation.ts";
import { Deferred } from "../../base/deferred.ts";
import type { FieldLines, ResponseHead } from "../head.ts";
import type { HeaderLines } from "../message.ts";
import type { AnswerTimeouts, ClientErrorMap, PassedResponse, RequestContent } from "./client-contract.ts";

/** The object that currently handles the request: a connection, or a place in the queue for a connection. */
export interface Carrier {
  /** Pauses reading from the server. */
  pause(): void;
  resume(): void;
  /** Sends the bytes of `source` after a protocol switch. */
  upload(source: BodySource): void;
  /** Gives up the request, because its answer is no longer needed. */
  abandon(): void;
}

const noFields: HeaderLines = { get: () => null, has: () => false, keys: () => [] };

/** One object is the request, the response and its body, which saves allocations. */
export class ClientExchange implements PassedResponse, BodySource {
  readonly response = new Deferred<PassedResponse>();
  /** The status of the answer, once it has arrived. */
  status = 0;
  headers: HeaderLines = noFields;
  trailers: FieldLines | undefined;
  /** The text of the request line and of the headers that many requests share. See `writeRequest`. */
  readonly head: string;
  readonly method: string;
  readonly idleTimeoutMs: number;
  readonly firstByteTimeoutMs: number;
  /** Time in monotonic milliseconds until which the answer's headers must arrive. */
  readonly answerBy: number;
  /** The memory account for bytes of the body that arrive before they are read. */
  readonly memoryAccount: MemoryAccount;
  readonly faultTrailer: string | undefined;
  /** True if the request has already been sent a second time. */
  retried = false;
  /** The connection, or the place in the queue, that currently handles the request. */
  carrier: Carrier | undefined;
  /** The body of the request and its own headers. Cleared once the answer begins, to free memory. */
  #request: RequestContent | undefined;
  readonly #cancellation: Cancellation;
  readonly #errors: ClientErrorMap;
  #sink: BodySink | undefined;
  /** Bytes of the body that arrived before it was read. */
  #waiting: ByteSpan[] | undefined;
  /** Set if the answer ended or failed before its body was read. */
  #outcome: { error?: unknown } | undefined;
  #over = false;

  /** `nowMs` is the current time in monotonic milliseconds. */
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

  /** The body of the request and its own headers. Undefined once the answer has begun. */
  get request(): RequestContent | undefined {
    return this.#request;
  }

  /** Reports whether the body is being read. */
  get flowing(): boolean {
    return this.#sink !== undefined;
  }

  /** Reports whether the request has ended, so that later bytes are dropped. */
  get over(): boolean {
    return this.#over;
  }

  /**
   * Only a forwarded request may switch protocols, because only the forwarding code knows whether the client asked for
   * that.
   */
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
    // The connection resumes before buffered bytes are delivered, because their receiver may pause it again.
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

  /** Called if the request is cancelled before the answer arrives. */
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
