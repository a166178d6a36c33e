// Model requests that were refused before they began. They have no usage, but can be listed.

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
  /**
   * The model that the client requested, which may not exist. `model` and `stream` are null if the body was not read.
   */
  model: string | null;
  stream: boolean | null;
  errorCode: ErrorCode;
  /** The error message that the client got. Parts that quote the request are removed. */
  message: string;
  durationMs: number;
}

export interface RefusedPage {
  /**
   * Refused requests, newest first. There may be fewer than requested, because a page scans a limited number of rows.
   */
  refused: RefusedRequest[];
  next: RequestPosition | null;
}

export interface RefusedRequestStore {
  /** Adds all of these, or none if that fails. There may be some hundred at most. Existing rows stay unchanged. */
  add(refused: readonly RefusedRequest[]): Promise<void>;
  /** Lists refused requests that match the filter. The filter's outcome is ignored. */
  list(filter: RequestFilter, page: { after: RequestPosition | undefined; limit: number }): Promise<RefusedPage>;
  find(owner: RequestOwner | null, requestId: string): Promise<RefusedRequest | undefined>;
}
