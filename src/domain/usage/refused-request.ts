// Requests for models that were refused before they began: they have no usage, but can be listed.

import type { ErrorCode } from "../../base/errors.ts";
import type { Environment } from "../api-key.ts";
import type { BookedOperation } from "../models/operation.ts";
import type { RequestFilter, RequestOwner, RequestPosition } from "./request-log.ts";

export interface RefusedRequest {
  requestId: string;
  /** Unix seconds of the answer. */
  at: number;
  accountId: string;
  keyId: string;
  appId: string | null;
  environment: Environment;
  operation: BookedOperation;
  /** The requested model, known or not. null, like `stream`, if the body was not read. */
  model: string | null;
  stream: boolean | null;
  errorCode: ErrorCode;
  /** The message as the client got it, without the parts that repeat the request. */
  message: string;
  durationMs: number;
}

export interface RefusedPage {
  /** Refused requests, newest first; may be fewer than requested, as in `RequestPage`. */
  refused: RefusedRequest[];
  next: RequestPosition | null;
}

export interface RefusedRequestStore {
  /** Adds all, at most some hundred, or none. Existing rows stay unchanged. */
  add(refused: readonly RefusedRequest[]): Promise<void>;
  /** Lists refused requests, regardless of the outcome in the filter. */
  list(filter: RequestFilter, page: { after: RequestPosition | undefined; limit: number }): Promise<RefusedPage>;
  find(owner: RequestOwner, requestId: string): Promise<RefusedRequest | undefined>;
}
