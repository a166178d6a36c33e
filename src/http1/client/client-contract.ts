// The contract of an HTTP client, whether it is our own or `fetch`.
import type { BodySource } from "../../base/bytes/body-source.ts";
import type { MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import type { Bytes } from "../../base/bytes/byte-span.ts";
import type { Cancellation } from "../../base/cancellation.ts";
import type { MaybePromise } from "../../base/deferred.ts";
import type { FieldLines } from "../head.ts";
import type { HeaderFields, HeaderLines } from "../message.ts";

export interface ClientRequest extends RequestContent {
  /** Path and query, as they are sent. */
  path: string;
  /** Besides `host` and the framing fields, which the client sets. Checked once for an object, which must not change. */
  headers: HeaderFields;
  /** Further ones, of this request alone. */
  ownHeaders?: HeaderFields;
}

/** A request whose head was made elsewhere. */
export interface PassedRequest extends RequestContent {
  /** The request line and the fields, each with its end, one character for each byte; framing fields where it has an `upload`. */
  head: string;
  passed: PassedParts;
}

export interface PassedParts {
  /** The bytes of the body as they are sent, framing included, as they come; instead of `body`. Called when the head was sent. */
  upload(): BodySource | undefined;
  /** The server asks for the body (RFC 9110, 15.2.1). */
  onContinue(): void;
}

/** The part of a request that is no field of its head. */
export interface RequestContent {
  method: string;
  /** The field `x-request-id`, which every request has of its own. */
  requestId?: string;
  /** Text is sent as UTF-8. Bytes must not change until the answer is here. */
  body?: string | Bytes;
  /** Sent instead of `body`, as it comes. */
  content?: SentContent;
  /** The memoryAccount of what came of the answer while that is paused. Left out: it is counted, and never refused. */
  memoryAccount?: MemoryAccount;
  /** A trailer, in lower case, by which the server says that it could not answer to the end: a ClientError `told`. */
  faultTrailer?: string;
  /** Only for `pass`. */
  passed?: PassedParts;
}

/** A body of a length that is known, which is not held as a whole. */
export interface SentContent {
  readonly length: number;
  /** All of it, from the beginning; called once for each time that it is sent. */
  open(): BodySource;
}

export interface AnswerTimeouts {
  /** Wait for the head of the answer, from when it is sent; of a `content`, since the server took some of it. */
  readonly firstByteTimeoutMs: number;
  /** Longest silence in the middle of the answer's body. */
  readonly idleTimeoutMs: number;
}

export interface ClientResponse {
  status: number;
  headers: HeaderLines;
  body: BodySource;
}

export interface PassedResponse extends ClientResponse {
  /** Trailers of the answer, where it has any; known at its end. */
  readonly trailers: FieldLines | undefined;
  /**
   * With status 101, where `body` is all that the server says from there on: sends it what `source` gives, and ends the
   * connection behind that.
   */
  upload(source: BodySource): void;
}

export interface HttpClient {
  /**
   * Rejects with a ClientError, or the reason of the cancellation, which holds until the head is here: from then on the
   * body is cancelled. Redirects are answers like any other.
   */
  send(request: ClientRequest, timeouts: AnswerTimeouts, cancellation: Cancellation): MaybePromise<ClientResponse>;
  /** Ends all that is under way with a ClientError; nothing can be sent any more. */
  close(): void;
}

/**
 * `connect`: no connection came about; nothing was sent. `first_byte_timeout`, `idle_timeout`: see AnswerTimeouts.
 * `broken`: the connection ended before the answer did. `told`: the server said so; its words are the message. `malformed`: what came is no HTTP. `closed`: the client is.
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
  /** Whether the head of the answer was given already. */
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

/** Makes of what broke an exchange off, mostly a ClientError, the error that its owner hears of. */
export type ClientErrorMap = (fault: unknown) => unknown;
