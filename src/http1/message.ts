// The types of HTTP/1.1 requests and answers that the server and the client share with the rest of the program.
import type { BodySource } from "../base/bytes/body-source.ts";
import type { MemoryAccount } from "../base/bytes/buffered-bytes.ts";
import type { ByteSpan, Bytes } from "../base/bytes/byte-span.ts";
import type { ClientStream } from "../base/bytes/client-stream.ts";
import type { Cancellation } from "../base/cancellation.ts";
import type { GatewayError } from "../base/errors.ts";
import type { PausableChannel } from "./byte-channel.ts";

/** The headers of a message, in order. All names are in lower case, including those that callers pass. */
export interface HeaderLines {
  /** Returns the value of a header, or null. The values of repeated headers are joined with `, ` (RFC 9110, 5.3). */
  get(name: string): string | null;
  has(name: string): boolean;
  keys(): Iterable<string>;
}

/** Headers to send, each with one value. Values must not contain control characters. */
export type HeaderFields = Readonly<Record<string, string>>;

/** Headers of an answer. Headers with the value undefined are not sent. */
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
  /** True if the whole body was read, or if there is no body. */
  readonly bodyRead: boolean;
  /** True if all bytes of the body have arrived. */
  readonly bodyIsHere: boolean;
  /**
   * The memory account for the body, and for bytes of the answer that the client has not received yet. Set it before
   * reading the body.
   */
  memoryAccount: MemoryAccount;
  /**
   * Returns the whole body, or a promise if it has not arrived completely. Call this once. Fails with a
   * RequestBodyError, or with a GatewayError if the memory account is full. The body counts on the account until the
   * request ends.
   */
  readBody(maxBytes: number): ByteSpan | Promise<ByteSpan>;
  /**
   * Delivers the body as it arrives. It is called instead of `readBody`. The bytes are valid until the sink's `data`
   * returns, and do not count on the memory account. Fails with a RequestBodyError. If the bytes that have already
   * arrived are too long, throws this error immediately.
   */
  flowBody(maxBytes: number): BodySource;
  /** Cancelled if the client leaves before the whole answer was sent, or if the server is closed by force. */
  readonly clientGone: Cancellation;
  /** Counts more bytes on the memory account until the request ends. Returns an error if the account is full. */
  hold(bytes: number): GatewayError | undefined;
  /**
   * Calls the listener once, when the whole answer was sent or the connection has ended. If that has already happened,
   * calls it immediately. There can be only one listener, and it must not throw.
   */
  onOver(listener: OverListener): void;
}

/** A request that can be forwarded unchanged to another server, which parses it in the same way. */
export interface PassableRequest extends IncomingRequest {
  /**
   * Returns the original header lines except those named in `without`. Each line has its line end, and one character
   * for each byte.
   */
  fieldLines(without: ReadonlySet<string>): string;
  /** True if the client waits for 100 Continue before it sends the body. */
  readonly expectsContinue: boolean;
  /** Sends 100 Continue, if the client waits for it. */
  sendContinue(): void;
  /**
   * Delivers the raw body with its framing as it arrives. It is called instead of `readBody`. The caller must enforce
   * deadlines. Bytes with invalid framing are delivered too.
   */
  passBody(): BodySource;
}

export interface OverListener {
  over(): void;
}

/**
 * Answers a request once, with `send`, `stream` or `upgrade`. The connection is closed after the answer if the
 * request's body was not read, or if the answer has `connection: close`. Framing headers are added automatically.
 */
export interface Reply {
  readonly begun: boolean;
  /**
   * Sends a complete answer. For HEAD or status 304, only the length of the body is sent. With status 204, the body is
   * ignored.
   */
  send(status: number, headers: AnswerFields, body: string | Uint8Array | Bytes): void;
  /**
   * Begins a streamed answer. It is chunked unless `length` is given. If the body ends before `length` bytes, the
   * connection is broken off.
   */
  stream(status: number, headers: AnswerFields, length?: number): ClientStream;
  /**
   * Answers with status 101 and returns the connection. `headers` must contain `upgrade`. A graceful stop of the server
   * does not wait for the connection, and a forced stop closes it. Throws if the request has a body or is HTTP/1.0, or
   * if the client has left.
   */
  upgrade(headers: AnswerFields): PausableChannel;
}

/**
 * The reason why a body could not be read. `incomplete`: the client left or sent nothing for too long. `malformed`: the
 * framing is invalid.
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
