// The port for metrics and traces, which observe HTTP exchanges and inference requests.

import type { RefusalReason } from "../../base/errors.ts";
import type { Environment } from "../api-key.ts";
import type { BookedOperation } from "../models/operation.ts";
import type { AttemptCause } from "./attempt-health.ts";
import type { CacheResult } from "./cache-result.ts";
import type { UsageBegin, UsageEnd } from "./usage.ts";

export interface HttpEnd {
  requestId: string;
  /** The HTTP method as the client sent it, which may be any text. Empty if the bytes were not a request. */
  method: string;
  /** The pattern of the route. Undefined if no route matched. */
  route: string | undefined;
  status: number;
  durationMs: number;
}

/**
 * The result after a stream broke off. `continued`: another model server continued the answer. `failed`: none could,
 * or the maximum number of continuations was reached. `unfit`: the answer cannot be continued exactly.
 */
export const continuationOutcomes = ["continued", "failed", "unfit"] as const;
export type ContinuationOutcome = (typeof continuationOutcomes)[number];

/** Facts about an inference request that are not in the ledger. */
export interface InferenceCourse {
  /** Number of times that the request was sent to an engine. */
  attempts: number;
  /** The fallback model that served the request. Undefined if the requested model or no model did. */
  fallbackModel: string | undefined;
  /** The amount by which the fallback model cost more than the requested one would have. Missing means 0. */
  extraNanoUsd?: number;
  /** True if the engine reported fewer tokens than it delivered. */
  isUnderReported: boolean;
  /** The result of the look-up in the response cache. Undefined if there was no look-up. */
  cache?: CacheResult | undefined;
  /** The limit that ended the request, or the lack of capacity. */
  refusal: RefusalReason | undefined;
  /** A result for each time that a stream broke off and should have been continued. Missing if no stream broke off. */
  continuations?: readonly ContinuationOutcome[] | undefined;
}

/** A request that was refused before it began. */
export interface RefusedInference {
  requestId: string;
  operation: BookedOperation;
  /** Public model id. */
  model: string;
  environment: Environment;
  /** The value that was thrown, usually a GatewayError. */
  error: unknown;
}

/** Observes requests. The methods must be fast and never throw, and must not change their arguments. */
export interface Observer {
  /** Called when an HTTP exchange has ended: completed, failed, or abandoned by its client. */
  httpEnded(end: HttpEnd): void;
  /** Called when an inference request was admitted. `inferenceEnded` is called once afterwards. */
  inferenceBegan(begin: UsageBegin): void;
  inferenceEnded(begin: UsageBegin, end: UsageEnd, course: InferenceCourse): void;
  inferenceRefused(refused: RefusedInference): void;
  /**
   * Called when an engine has sent the head of its answer, or has failed. `error` is undefined if the engine accepted
   * the request. `model` is its id at the upstream. `cause` is set if the engine is at fault.
   */
  attempted(upstream: string, model: string, error: unknown, cause?: AttemptCause): void;
}
