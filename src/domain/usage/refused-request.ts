// Requests for models that were answered with an error before they began: no usage, but somebody asks why.

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
  /** The model as it was asked for, a public id or not; null with `stream` where the body was not read. */
  model: string | null;
  stream: boolean | null;
  errorCode: ErrorCode;
  /** The message as the client got it, but for what it repeats of the request. */
  message: string;
  durationMs: number;
}

export interface RefusedPage {
  /** Newest first; may be fewer than were asked for, as in `RequestPage`. */
  refused: RefusedRequest[];
  next: RequestPosition | null;
}

export interface RefusedRequestStore {
  /** All of them, some hundred at most, or none; one that is there already stays as it is. */
  add(refused: readonly RefusedRequest[]): Promise<void>;
  /** Whatever outcome the filter names. */
  list(filter: RequestFilter, page: { after: RequestPosition | undefined; limit: number }): Promise<RefusedPage>;
  find(owner: RequestOwner, requestId: string): Promise<RefusedRequest | undefined>;
}
