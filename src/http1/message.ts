// The messages between the HTTP/1.1 server or client and the rest of the program: heads, requests, replies.
import type { BodySource } from "../base/bytes/body-source.ts";
import type { MemoryAccount } from "../base/bytes/buffered-bytes.ts";
import type { ByteSpan, Bytes } from "../base/bytes/byte-span.ts";
import type { ClientStream } from "../base/bytes/client-stream.ts";
import type { Cancellation } from "../base/cancellation.ts";
import type { GatewayError } from "../base/errors.ts";
import type { PausableChannel } from "./byte-channel.ts";

/** The fields of a head in order. Names are in lower case, also in calls. */
export interface HeaderLines {
  /** Returns the value, or null if there is no such field. Repeated fields are joined by `, ` (RFC 9110, 5.3). */
  get(name: string): string | null;
  has(name: string): boolean;
  keys(): Iterable<string>;
}

/** Fields to send, each once. Values have no control characters. */
export type HeaderFields = Readonly<Record<string, string>>;

/** The fields of an answer. Undefined fields are not sent. */
export type AnswerFields = Readonly<Record<string, string | number | undefined>>;

/** A request whose head is complete and valid. Its body may still arrive. */
export interface IncomingRequest {
  readonly method: string;
  readonly version: "1.0" | "1.1";
  /** The target as sent (RFC 9112, 3.2): origin form (`/v1/models?limit=1`), absolute form, or `*`. */
  readonly target: string;
  readonly headers: HeaderLines;
  /** The address of the peer, without its port. */
  readonly peer: string;
  /** Whether the request has a body: its length is not 0, or it is chunked, even if empty. */
  readonly hasBody: boolean;
  /** Whether the whole body was read; true without a body. */
  readonly bodyRead: boolean;
  /** Whether the body has arrived completely. */
  readonly bodyIsHere: boolean;
  /**
   * The memory account of the body, and of answer bytes that the client has not received yet. Set it before the body is
   * read.
   */
  memoryAccount: MemoryAccount;
  /**
   * Returns the whole body, synchronously if it has arrived. Call it once. Throws, or rejects with, a RequestBodyError,
   * or a GatewayError if its memory account is full. The body counts in the account until the request is over.
   */
  readBody(maxBytes: number): ByteSpan | Promise<ByteSpan>;
  /**
   * Returns the content of the body as it arrives, instead of `readBody`, without counting it: bytes are valid until
   * the sink's `data` returns. Fails with a RequestBodyError, or throws one if the body has arrived and is too long.
   */
  flowBody(maxBytes: number): BodySource;
  /** Cancelled if the client leaves before the answer was sent, or if the server is forced to close. */
  readonly clientGone: Cancellation;
  /** Counts memory derived from the body until the request is over, or returns the refusal. */
  hold(bytes: number): GatewayError | undefined;
  /**
   * `listener` is called once, when the kernel has the whole answer or the connection has ended; immediately if that
   * has happened. Only one listener, which must not throw.
   */
  onOver(listener: OverListener): void;
}

/** A request that can also be forwarded unchanged to another server that parses it alike. */
export interface PassableRequest extends IncomingRequest {
  /**
   * Returns the field lines as received, each with its line end, one character for each byte, except those named in
   * `without`.
   */
  fieldLines(without: ReadonlySet<string>): string;
  /** Whether the client waits for permission to send the body. */
  readonly expectsContinue: boolean;
  /** Sends 100 Continue if the client waits for it. */
  sendContinue(): void;
  /**
   * Returns the bytes of the body as they arrive, with their framing, instead of `readBody`. The reader enforces their
   * deadlines. Bytes up to and including invalid framing are forwarded.
   */
  passBody(): BodySource;
}

export interface OverListener {
  over(): void;
}

/**
 * Answers one request, once: by `send`, `stream` or `upgrade`. If the body was not read by then, the connection ends
 * after the answer, as it does with a field `connection: close`. Framing fields are set here.
 */
export interface Reply {
  readonly begun: boolean;
  /** Sends a whole answer. A body for HEAD, 204 or 304 is counted but not sent. */
  send(status: number, headers: AnswerFields, body: string | Uint8Array | Bytes): void;
  /**
   * Begins a streamed answer, chunked without `length`. Otherwise the body must have that many bytes, and a shorter one
   * is broken off.
   */
  stream(status: number, headers: AnswerFields, length?: number): ClientStream;
  /**
   * Answers 101 with an `upgrade` field in `headers` and hands the connection over. The server counts the connection
   * and cuts it when forced to close, but `stop` does not wait for it. Throws for a request with a body, of HTTP/1.0,
   * or whose client has left.
   */
  upgrade(headers: AnswerFields): PausableChannel;
}

/**
 * The fault of a body. `incomplete`: the client left, or sent nothing for too long. `malformed`: its framing is wrong.
 */
export type BodyFault = "too_large" | "incomplete" | "malformed";

export class RequestBodyError extends Error {
  override readonly name = "RequestBodyError";
  readonly fault: BodyFault;

  constructor(fault: BodyFault, message: string) {
    super(message);
    this.fault = fault;
  }
}
