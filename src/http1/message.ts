// The messages between the HTTP/1.1 server or client and the rest of the program: heads, requests, replies.
import type { BodySource } from "../base/bytes/body-source.ts";
import type { MemoryAccount } from "../base/bytes/buffered-bytes.ts";
import type { ByteSpan, Bytes } from "../base/bytes/byte-span.ts";
import type { ClientStream } from "../base/bytes/client-stream.ts";
import type { Cancellation } from "../base/cancellation.ts";
import type { GatewayError } from "../base/errors.ts";
import type { PausableChannel } from "./byte-channel.ts";

/** Fields of a head in their order. Names are in lower case, also in calls. */
export interface HeaderLines {
  /** Repeated fields are joined by `, ` (RFC 9110, 5.3). */
  get(name: string): string | null;
  has(name: string): boolean;
  keys(): Iterable<string>;
}

/** Fields to send, each once. Values have no control characters. */
export type HeaderFields = Readonly<Record<string, string>>;

/** The same for an answer. Undefined fields are not sent. */
export type AnswerFields = Readonly<Record<string, string | number | undefined>>;

/** A request whose head is complete and valid. Its body may still arrive. */
export interface IncomingRequest {
  readonly method: string;
  readonly version: "1.0" | "1.1";
  /** The target as sent (RFC 9112, 3.2): origin form (`/v1/models?limit=1`), absolute form, or `*`. */
  readonly target: string;
  readonly headers: HeaderLines;
  /** Address of the peer, without its port. */
  readonly peer: string;
  /** Whether it has a body, even an empty one: it has a length other than 0, or is sent in chunks. */
  readonly hasBody: boolean;
  /** Whether the whole body was read. True without a body. */
  readonly bodyRead: boolean;
  /** Whether no part of the body is still to arrive. */
  readonly bodyIsHere: boolean;
  /** The memory account of the body and of the part of the answer that is not taken. Set it before the body is read. */
  memoryAccount: MemoryAccount;
  /**
   * The whole body, immediately if it is here. Call it once. Throws, or rejects with, a RequestBodyError, or a
   * GatewayError if its memory account may hold no more. It counts as held until the request is over.
   */
  readBody(maxBytes: number): ByteSpan | Promise<ByteSpan>;
  /**
   * The content of the body as it arrives, instead of `readBody`, on no account: bytes are lent until the sink's `data`
   * returns. Fails with a RequestBodyError, or throws it if the body is here completely and too long.
   */
  flowBody(maxBytes: number): BodySource;
  /** Cancelled if the client leaves before the answer was sent, or if the server is forced to close. */
  readonly clientGone: Cancellation;
  /** Counts what is made of the body as held until the request is over, or returns the refusal. */
  hold(bytes: number): GatewayError | undefined;
  /**
   * `listener` is called once, when the kernel has the whole answer or the connection has ended; immediately if that
   * has happened. Only one listener, which must not throw.
   */
  onOver(listener: OverListener): void;
}

/** A request as the server delivers it. It can also be passed on unchanged to another server that reads it alike. */
export interface PassableRequest extends IncomingRequest {
  /**
   * The field lines as received, each with its line end, one character for each byte, except those named in `without`.
   */
  fieldLines(without: ReadonlySet<string>): string;
  /** Whether the client waits for permission to send the body. */
  readonly expectsContinue: boolean;
  /** Gives that permission if the client waits for it. */
  sendContinue(): void;
  /**
   * The bytes of the body as they arrive, with their framing, instead of `readBody`. The reader watches their
   * deadlines. Invalid framing is passed on too, and nothing after it.
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
  /** A body for HEAD, 204 or 304 is counted but not sent. */
  send(status: number, headers: AnswerFields, body: string | Uint8Array | Bytes): void;
  /** In chunks without `length`. Otherwise the body must have that many bytes, and a shorter one is broken off. */
  stream(status: number, headers: AnswerFields, length?: number): ClientStream;
  /**
   * Answers 101 with an `upgrade` field in `headers` and hands the connection over. The server counts it and cuts it
   * when forced to close, but `stop` does not wait for it. Throws for a request with a body, of HTTP/1.0, or whose
   * client has left.
   */
  upgrade(headers: AnswerFields): PausableChannel;
}

/** `incomplete`: the client left, or sent nothing for too long. `malformed`: its framing is wrong. */
export type BodyFault = "too_large" | "incomplete" | "malformed";

export class RequestBodyError extends Error {
  override readonly name = "RequestBodyError";
  readonly fault: BodyFault;

  constructor(fault: BodyFault, message: string) {
    super(message);
    this.fault = fault;
  }
}
