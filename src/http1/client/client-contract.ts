// The interface of HTTP clients. The gateway's own client implements it, and so does a client that uses `fetch`.
import type { BodySource } from "../../base/bytes/body-source.ts";
import type { MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import type { Bytes } from "../../base/bytes/byte-span.ts";
import type { Cancellation } from "../../base/cancellation.ts";
import type { MaybePromise } from "../../base/deferred.ts";
import type { FieldLines } from "../head.ts";
import type { HeaderFields, HeaderLines } from "../message.ts";

export interface ClientRequest extends RequestContent {
  /** The path and query, percent-encoded. */
  path: string;
  /**
   * Headers without `host` and the framing headers, which the client adds. The object must not change, because the text
   * made from it is cached.
   */
  headers: HeaderFields;
  /** Headers that only this request has, in addition to `headers`. */
  ownHeaders?: HeaderFields;
}

/** A request that is forwarded with its headers exactly as they arrived. */
export interface PassedRequest extends RequestContent {
  /**
   * The request line and header lines, each with its line end, as text with one character for each byte. If there is an
   * `upload`, they include the framing headers.
   */
  head: string;
  passed: PassedParts;
}

export interface PassedParts {
  /** Returns the raw body, including its framing, as it arrives. Called once the headers were sent. */
  upload(): BodySource | undefined;
  /** Called when the server answers 100 Continue (RFC 9110, 15.2.1). */
  onContinue(): void;
}

/** The body of a request, and headers that differ for each request. */
export interface RequestContent {
  method: string;
  /** The header `x-request-id`, which differs for each request. */
  requestId?: string;
  /** The body. Text is sent as UTF-8. Bytes must not be changed until the answer arrives. */
  body?: string | Bytes;
  /** A body that is read in pieces, instead of `body`. */
  content?: SentContent;
  /**
   * The memory account for bytes of the answer that arrive while reading is paused. Without an account, these bytes are
   * unlimited.
   */
  memoryAccount?: MemoryAccount;
  /**
   * Lower-case name of a trailer with which the server reports a failure. If it arrives, the body fails with a
   * ClientError `told`.
   */
  faultTrailer?: string;
  /** Only set by `pass`, for a forwarded request. */
  passed?: PassedParts;
}

/** A request body of known length that is read in pieces. */
export interface SentContent {
  readonly length: number;
  /** Opens the body at its beginning. If the request is sent again, it is called again. */
  open(): BodySource;
}

export interface AnswerTimeouts {
  /**
   * Maximum milliseconds from the call of `send` until the answer's headers. If there is `content`, the time starts
   * again whenever part of it was sent.
   */
  readonly firstByteTimeoutMs: number;
  /** Maximum milliseconds without data while the answer's body arrives. */
  readonly idleTimeoutMs: number;
}

export interface ClientResponse {
  status: number;
  headers: HeaderLines;
  body: BodySource;
}

export interface PassedResponse extends ClientResponse {
  /** The trailers of the answer, if any. Known once the body has ended. */
  readonly trailers: FieldLines | undefined;
  /**
   * After status 101, sends the bytes of `source` to the server and then closes the connection. The server's own bytes
   * arrive in `body`.
   */
  upload(source: BodySource): void;
}

export interface HttpClient {
  /**
   * Sends a request. Rejects with a ClientError, or with the reason of the cancellation. Redirects are not followed.
   * Once the answer's headers have arrived, `cancellation` has no effect: cancel the body instead.
   */
  send(request: ClientRequest, timeouts: AnswerTimeouts, cancellation: Cancellation): MaybePromise<ClientResponse>;
  /** Closes the client. Running requests fail with a ClientError. */
  close(): void;
}

/**
 * The kind of failure. `connect`: nothing was sent. `first_byte_timeout` and `idle_timeout`: see AnswerTimeouts.
 * `broken`: the connection ended too early. `told`: the server reported a failure, with this message. `malformed`: the
 * answer is not valid HTTP. `closed`: the client was closed.
 */
export type ClientFault =
  | "connect"
  | "first_byte_timeout"
  | "idle_timeout"
  | "broken"
  | "told"
  | "malformed"
  | "closed";

/** An error of the HTTP client. Its message is for the log only. */
export class ClientError extends Error {
  override readonly name = "ClientError";
  readonly fault: ClientFault;
  /** True if the answer's headers were already delivered. */
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

/** Converts an error of the client, usually a ClientError, into the error that its caller gets. */
export type ClientErrorMap = (fault: unknown) => unknown;
