// The port of metrics and traces, which observe each exchange and each inference request.

import type { RefusalReason } from "../../base/errors.ts";
import type { Environment } from "../api-key.ts";
import type { BookedOperation } from "../models/operation.ts";
import type { CacheResult } from "./cache-result.ts";
import type { UsageBegin, UsageEnd } from "./usage.ts";

export interface HttpEnd {
  requestId: string;
  /** The method as the client sent it: any text. Empty for bytes that are not a request. */
  method: string;
  /** The route's pattern. Undefined for an unknown route. */
  route: string | undefined;
  status: number;
  durationMs: number;
}

/**
 * The result after a model server broke off: another `continued` the answer, none could or the maximum was reached
 * (`failed`), or the answer cannot be continued exactly (`unfit`).
 */
export const continuationOutcomes = ["continued", "failed", "unfit"] as const;
export type ContinuationOutcome = (typeof continuationOutcomes)[number];

/** Facts about an inference request that the ledger does not have. */
export interface InferenceCourse {
  /** Number of attempts at engines. */
  attempts: number;
  /** The fallback model that served the request. Undefined if the requested model did, or none. */
  fallbackModel: string | undefined;
  /** True if the engine reported fewer tokens than it delivered. */
  isUnderReported: boolean;
  /** The result of the lookup in the response cache; undefined without a lookup. */
  cache?: CacheResult | undefined;
  /** The limit, or missing capacity, that ended the request. */
  refusal: RefusalReason | undefined;
  /** The result of each break in a stream that was to be continued. Missing: no break. */
  continuations?: readonly ContinuationOutcome[] | undefined;
}

/** A request that was not admitted. */
export interface RefusedInference {
  requestId: string;
  operation: BookedOperation;
  /** Public model id. */
  model: string;
  environment: Environment;
  /** The client's error, usually a GatewayError. */
  error: unknown;
}

/** Called while requests are served: methods are quick, never throw, and do not change their arguments. */
export interface Observer {
  /** Called when an exchange is completed, failed, or left by its client. */
  httpEnded(end: HttpEnd): void;
  /** Called after the admission. `inferenceEnded` follows once. */
  inferenceBegan(begin: UsageBegin): void;
  inferenceEnded(begin: UsageBegin, end: UsageEnd, course: InferenceCourse): void;
  inferenceRefused(refused: RefusedInference): void;
  /**
   * Called when an engine sent the head of an answer, or failed. `error` is undefined if it accepted the request.
   * `model` is the public id.
   */
  attempted(requestId: string, model: string, upstream: string, error: unknown): void;
}
