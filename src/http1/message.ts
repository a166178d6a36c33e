// The types of requests and replies between the HTTP/1.1 server or client and the rest of the program.
import type { BodySource } from "../base/bytes/body-source.ts";
import type { MemoryAccount } from "../base/bytes/buffered-bytes.ts";
import type { ByteSpan, Bytes } from "../base/bytes/byte-span.ts";
import type { ClientStream } from "../base/bytes/client-stream.ts";
import type { Cancellation } from "../base/cancellation.ts";
import type { GatewayError } from "../base/errors.ts";
import type { PausableChannel } from "./byte-channel.ts";

/** The headers of a message, in order. Names are in lower case, also in arguments. */
export interface HeaderLines {
  /** Returns the value of a header, or null. Repeated headers are joined by `, ` (RFC 9110, 5.3). */
  get(name: string): string | null;
  has(name: string): boolean;
  keys(): Iterable<string>;
}

/** Headers to send, each once. Values must not contain control characters. */
export type HeaderFields = Readonly<Record<string, string>>;

/** Headers of an answer. Undefined ones are not sent. */
export type AnswerFields = Readonly<Record<string, string | number | undefined>>;

/** A request whose headers are complete and valid. The body may still be arriving. */
export interface IncomingRequest {
  readonly method: string;
  readonly version: "1.0" | "1.1";
  /** The unchanged request target (RFC 9112, 3.2): a path (`/v1/models?limit=1`), an absolute URL, or `*`. */
  readonly target: string;
  readonly headers: HeaderLines;
  /** The IP address of the peer, without port. */
  readonly peer: string;
  /** True if the request has a body: its length is not 0, or it is chunked. */
  readonly hasBody: boolean;
  /** True if the whole body was read, or there is none. */
  readonly bodyRead: boolean;
  /** True if the body has arrived completely. */
  readonly bodyIsHere: boolean;
  /**
   * The memory account for the body, and for answer bytes that the client has not received yet. Set it before
   * reading the body.
   */
  memoryAccount: MemoryAccount;
  /**
   * Returns the whole body; call it once. Synchronous if the body has arrived. Fails with a RequestBodyError, or
   * a GatewayError if the memory account is full. The body is charged to the account until the request ends.
   */
  readBody(maxBytes: number): ByteSpan | Promise<ByteSpan>;
  /**
   * Delivers the body as it arrives, instead of `readBody`. Its bytes are valid until the sink's `data` returns,
   * and are not charged. Fails with a RequestBodyError, or throws it at once if the body that has arrived is too long.
   */
  flowBody(maxBytes: number): BodySource;
  /** Cancelled if the client leaves before the answer was sent, or if the server is closed by force. */
  readonly clientGone: Cancellation;
  /** Charges more bytes to the memory account until the request ends. Returns an error if the account is full. */
  hold(bytes: number): GatewayError | undefined;
  /**
   * Calls the listener once, when the answer was sent completely or the connection has ended; immediately if
   * that is past. There is only one listener, and it must not throw.
   */
  onOver(listener: OverListener): void;
}

/** A request that can be forwarded unchanged to another server that parses it in the same way. */
export interface PassableRequest extends IncomingRequest {
  /**
   * Returns the original header lines except those named in `without`, each with its line end, one character per
   * byte.
   */
  fieldLines(without: ReadonlySet<string>): string;
  /** True if the client waits for 100 Continue before it sends the body. */
  readonly expectsContinue: boolean;
  /** Sends 100 Continue, if the client waits for it. */
  sendContinue(): void;
  /**
   * Delivers the raw body as it arrives, including its framing, instead of `readBody`. The code that
   * reads it must enforce deadlines. Bytes with invalid framing are delivered too.
   */
  passBody(): BodySource;
}

export interface OverListener {
  over(): void;
}

/**
 * Answers a request once, by `send`, `stream` or `upgrade`. The connection is closed afterwards if the body was
 * not read, or if the answer has `connection: close`. Framing headers are added.
 */
export interface Reply {
  readonly begun: boolean;
  /** Sends a complete answer. A body for HEAD or 304 only counts for Content-Length; with 204 it is ignored. */
  send(status: number, headers: AnswerFields, body: string | Uint8Array | Bytes): void;
  /**
   * Begins a streamed answer, chunked unless `length` is given. If a body of known length is too short, the
   * connection is broken off.
   */
  stream(status: number, headers: AnswerFields, length?: number): ClientStream;
  /**
   * Answers 101, with an `upgrade` header in `headers`, and returns the connection. The server does not wait for
   * it at a graceful stop, but closes it at a forced one. Throws if the request has a body or is HTTP/1.0, or if
   * the client has left.
   */
  upgrade(headers: AnswerFields): PausableChannel;
}

/**
 * The reason for which a body could not be read. `incomplete`: the client left or was silent for too long.
 * `malformed`: the framing is invalid.
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
