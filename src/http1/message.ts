// The messages between the HTTP/1.1 server or client and the rest of the program: heads, requests, replies.
import type { BodySource } from "../base/bytes/body-source.ts";
import type { MemoryAccount } from "../base/bytes/buffered-bytes.ts";
import type { ByteSpan, Bytes } from "../base/bytes/byte-span.ts";
import type { ClientStream } from "../base/bytes/client-stream.ts";
import type { Cancellation } from "../base/cancellation.ts";
import type { GatewayError } from "../base/errors.ts";
import type { PausableChannel } from "./byte-channel.ts";

/** Fields of a head in their order. Names are in lower case, here and where they are asked for. */
export interface HeaderLines {
  /** Repeated fields are joined by `, ` (RFC 9110, 5.3). */
  get(name: string): string | null;
  has(name: string): boolean;
  keys(): Iterable<string>;
}

/** Fields to send, each once; values have no control characters. */
export type HeaderFields = Readonly<Record<string, string>>;

/** Likewise, of an answer; what is undefined is not sent. */
export type AnswerFields = Readonly<Record<string, string | number | undefined>>;

/** A request whose head is complete and valid; its body may still be on its way. */
export interface IncomingRequest {
  readonly method: string;
  readonly version: "1.0" | "1.1";
  /** The target as it was sent (RFC 9112, 3.2): origin form (`/v1/models?limit=1`), absolute form, or `*`. */
  readonly target: string;
  readonly headers: HeaderLines;
  /** Address of the peer, without its port. */
  readonly peer: string;
  /** Whether it has a body, were it of no bytes: a length other than 0 was announced, or it is sent in chunks. */
  readonly hasBody: boolean;
  /** Whether all of the body was read; true where there is none. */
  readonly bodyRead: boolean;
  /** Whether nothing of the body is still on its way. */
  readonly bodyIsHere: boolean;
  /** The memoryAccount of the body, and of what of the answer is not taken; set before the body is read. */
  memoryAccount: MemoryAccount;
  /**
   * All of the body; at once where it is here. Once. Throws, or rejects with, a RequestBodyError, or a GatewayError where
   * its memoryAccount may hold no more. It counts as held until the request is over.
   */
  readBody(maxBytes: number): ByteSpan | Promise<ByteSpan>;
  /**
   * The content of the body as it comes, instead of `readBody`, held on nobody's account: bytes are lent until the sink's
   * `data` returns. Fails with a RequestBodyError; throws it where all of it is here, and too long.
   */
  flowBody(maxBytes: number): BodySource;
  /** Cancelled when the client leaves before the answer was sent, or the server is closed by force. */
  readonly left: Cancellation;
  /** Counts what is made of the body as held until the request is over, or gives the refusal. */
  hold(bytes: number): GatewayError | undefined;
  /**
   * `listener` is told once, when all of the answer is with the kernel or the connection has ended; at once where that
   * has happened. For one listener, which must not throw.
   */
  onOver(listener: OverListener): void;
}

/** A request as the server gives it: it can also be passed on as it came, to another server that reads it in the same way. */
export interface PassableRequest extends IncomingRequest {
  /** The field lines as they came, each with its end, one character for each byte; but for those with a name in `without`. */
  fieldLines(without: ReadonlySet<string>): string;
  /** Whether the client waits for leave to send the body. */
  readonly expectsContinue: boolean;
  /** Gives that leave where it is waited for. */
  sendContinue(): void;
  /**
   * The bytes of the body as they come, with the framing that they have on their way, instead of `readBody`. Whoever reads
   * them watches their deadlines. What is no valid framing is given as well, and nothing behind it.
   */
  passBody(): BodySource;
}

export interface OverListener {
  over(): void;
}

/**
 * Answers one request, once: by `send`, by `stream` or by `upgrade`. A body that was not read by then ends the connection behind the
 * answer, as does a field `connection: close`; framing fields are its own.
 */
export interface Reply {
  readonly begun: boolean;
  /** A body for HEAD, 204 or 304 is not sent, but counted. */
  send(status: number, headers: AnswerFields, body: string | Uint8Array | Bytes): void;
  /**
   * In chunks where no `length` is given; else the body must have so many bytes, and one that ends before is broken off.
   */
  stream(status: number, headers: AnswerFields, length?: number): ClientStream;
  /**
   * Answers 101 with a field `upgrade` among `headers`, and hands the connection over: the server counts it and cuts it
   * when it is closed by force, but `stop` does not wait for it. Throws for a request with a body, of HTTP/1.0, or whose
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
