// The contract of an HTTP client, ours or `fetch`.
import type { BodySource } from "../../base/bytes/body-source.ts";
import type { MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import type { Bytes } from "../../base/bytes/byte-span.ts";
import type { Cancellation } from "../../base/cancellation.ts";
import type { MaybePromise } from "../../base/deferred.ts";
import type { FieldLines } from "../head.ts";
import type { HeaderFields, HeaderLines } from "../message.ts";

export interface ClientRequest extends RequestContent {
  /** Path and query, as sent. */
  path: string;
  /** Besides `host` and the framing fields, which the client sets. Each object is checked once and must not change. */
  headers: HeaderFields;
  /** Further headers of this request only. */
  ownHeaders?: HeaderFields;
}

/** A request whose head was made elsewhere. */
export interface PassedRequest extends RequestContent {
  /**
   * The request line and the fields, each with its line end, one character for each byte. Includes framing fields if it
   * has an `upload`.
   */
  head: string;
  passed: PassedParts;
}

export interface PassedParts {
  /** The bytes of the body as sent, with framing, as they arrive, instead of `body`. Called once the head was sent. */
  upload(): BodySource | undefined;
  /** The server asks for the body (RFC 9110, 15.2.1). */
  onContinue(): void;
}

/** The part of a request outside the fields of its head. */
export interface RequestContent {
  method: string;
  /** The field `x-request-id`, which differs for every request. */
  requestId?: string;
  /** Text is sent as UTF-8. Bytes must not change until the answer is here. */
  body?: string | Bytes;
  /** Sent instead of `body`, as it arrives. */
  content?: SentContent;
  /** The memory account of answer bytes that arrive during a pause. Without it they are counted and never refused. */
  memoryAccount?: MemoryAccount;
  /** A trailer, in lower case, by which the server says that it could not finish its answer: a ClientError `told`. */
  faultTrailer?: string;
  /** Only for `pass`. */
  passed?: PassedParts;
}

/** A body of known length that is not held as a whole. */
export interface SentContent {
  readonly length: number;
  /** The whole body from its beginning. Called each time that it is sent. */
  open(): BodySource;
}

export interface AnswerTimeouts {
  /** Wait for the answer's head, from the time it is sent; with `content`, since the server last took some of it. */
  readonly firstByteTimeoutMs: number;
  /** Longest silence within the answer's body. */
  readonly idleTimeoutMs: number;
}

export interface ClientResponse {
  status: number;
  headers: HeaderLines;
  body: BodySource;
}

export interface PassedResponse extends ClientResponse {
  /** Trailers of the answer, if any. Known at its end. */
  readonly trailers: FieldLines | undefined;
  /**
   * After status 101, when `body` is everything that the server says: sends what `source` delivers, and then ends the
   * connection.
   */
  upload(source: BodySource): void;
}

export interface HttpClient {
  /**
   * Rejects with a ClientError, or with the reason of the cancellation, which applies until the head is here: from then
   * on the body is cancelled. Redirects are answers like any other.
   */
  send(request: ClientRequest, timeouts: AnswerTimeouts, cancellation: Cancellation): MaybePromise<ClientResponse>;
  /** Ends all running exchanges with a ClientError. Nothing can be sent any more. */
  close(): void;
}

/**
 * `connect`: no connection was made, and nothing was sent. `first_byte_timeout`, `idle_timeout`: see AnswerTimeouts.
 * `broken`: the connection ended before the answer. `told`: the server reported it; the message is its text.
 * `malformed`: the answer is not HTTP. `closed`: the client is closed.
 */
export type ClientFault =
  | "connect"
  | "first_byte_timeout"
  | "idle_timeout"
  | "broken"
  | "told"
  | "malformed"
  | "closed";

/** `message` is for the log. */
export class ClientError extends Error {
  override readonly name = "ClientError";
  readonly fault: ClientFault;
  /** Whether the head of the answer was delivered already. */
  readonly answerBegan: boolean;

  constructor(fault: ClientFault, message: string, { answerBegan = false, cause }: ClientErrorDetails = {}) {
    super(message, { cause });
    this.fault = fault;
    this.answerBegan = answerBegan;
  }
}

export interface ClientErrorDetails {
  answerBegan?: boolean;
  cause?: unknown;
}

/** Turns what broke an exchange off, usually a ClientError, into the error for its owner. */
export type ClientErrorMap = (fault: unknown) => unknown;
