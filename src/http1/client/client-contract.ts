// The interface of an HTTP client, our own or `fetch`.
import type { BodySource } from "../../base/bytes/body-source.ts";
import type { MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import type { Bytes } from "../../base/bytes/byte-span.ts";
import type { Cancellation } from "../../base/cancellation.ts";
import type { MaybePromise } from "../../base/deferred.ts";
import type { FieldLines } from "../head.ts";
import type { HeaderFields, HeaderLines } from "../message.ts";

export interface ClientRequest extends RequestContent {
  /** The path and query, as sent. */
  path: string;
  /**
   * Headers besides `host` and the framing fields, which the client sets. Each object is checked once and must not
   * change.
   */
  headers: HeaderFields;
  /** Headers of this request only, in addition to `headers`. */
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
  /** Returns the body's bytes with their framing, as they arrive, instead of `body`. Called once the head was sent. */
  upload(): BodySource | undefined;
  /** Called when the server asks for the body (RFC 9110, 15.2.1). */
  onContinue(): void;
}

/** The content of a request besides the fields of its head. */
export interface RequestContent {
  method: string;
  /** The field `x-request-id`, which differs for every request. */
  requestId?: string;
  /** The body. Text is sent as UTF-8. Bytes must not change until the answer arrives. */
  body?: string | Bytes;
  /** The body sent piece by piece, instead of `body`. */
  content?: SentContent;
  /**
   * The memory account of answer bytes that arrive while reading is paused. Without an account these are counted but
   * never refused.
   */
  memoryAccount?: MemoryAccount;
  /**
   * A trailer, in lower case, by which the server reports that it could not finish its answer; the error is then a
   * ClientError `told`.
   */
  faultTrailer?: string;
  /** Set for `pass` only. */
  passed?: PassedParts;
}

/** A body of known length that is not in memory as a whole. */
export interface SentContent {
  readonly length: number;
  /** Opens the body at its beginning, each time that it is sent. */
  open(): BodySource;
}

export interface AnswerTimeouts {
  /**
   * The longest wait for the answer's head, counted from the call of `send`; with `content`, from the last time that
   * the server took some of it.
   */
  readonly firstByteTimeoutMs: number;
  /** The longest silence within the answer's body. */
  readonly idleTimeoutMs: number;
}

export interface ClientResponse {
  status: number;
  headers: HeaderLines;
  body: BodySource;
}

export interface PassedResponse extends ClientResponse {
  /** The trailers of the answer, if any. Known at its end. */
  readonly trailers: FieldLines | undefined;
  /**
   * Used after status 101, when `body` is everything that the server sends: sends the bytes of `source`, and then
   * closes the connection.
   */
  upload(source: BodySource): void;
}

export interface HttpClient {
  /**
   * Sends a request. Rejects with a ClientError, or with the reason of the cancellation, which applies until the head
   * arrives: afterwards the body is cancelled. Redirects are answers like any other.
   */
  send(request: ClientRequest, timeouts: AnswerTimeouts, cancellation: Cancellation): MaybePromise<ClientResponse>;
  /** Fails all running exchanges with a ClientError. Nothing can be sent afterwards. */
  close(): void;
}

/**
 * The kind of a failure. `connect`: no connection was made, and nothing was sent. `first_byte_timeout`, `idle_timeout`:
 * see AnswerTimeouts. `broken`: the connection ended before the answer. `told`: the server reported a failure, and the
 * message is its text. `malformed`: the answer is not HTTP. `closed`: the client is closed.
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

/** Converts the error that ended an exchange, usually a ClientError, for the code that started it. */
export type ClientErrorMap = (fault: unknown) => unknown;
