// The port of whoever watches the server, for metrics and traces: told of each exchange and each inference request.

import type { RefusalReason } from "../../base/errors.ts";
import type { Environment } from "../api-key.ts";
import type { BookedOperation } from "../models/operation.ts";
import type { CacheResult } from "./cache-result.ts";
import type { UsageBegin, UsageEnd } from "./usage.ts";

export interface HttpEnd {
  requestId: string;
  /** The method as the client sent it: any text. Empty where what came was no request. */
  method: string;
  /** The route's pattern; undefined where there is none for it. */
  route: string | undefined;
  status: number;
  durationMs: number;
}

/**
 * What came of an answer whose model server broke off: another `continued` it, none could or there had been too many (`failed`),
 * or it was none that can be continued exactly (`unfit`).
 */
export const continuationOutcomes = ["continued", "failed", "unfit"] as const;
export type ContinuationOutcome = (typeof continuationOutcomes)[number];

/** The course of an inference request, beside what the ledger keeps of it. */
export interface InferenceCourse {
  /** Times that an engine was asked. */
  attempts: number;
  /** The model that stood in for the one that was asked for; undefined where that one served it, or none did. */
  standIn: string | undefined;
  /** Whether the engine reported fewer tokens than it delivered. */
  understated: boolean;
  /** The result of the lookup in the response cache; undefined without a lookup. */
  cache?: CacheResult | undefined;
  /** The limit, or want of capacity, that ended it. */
  refusal: RefusalReason | undefined;
  /** What came of each break in the middle of a stream that was to be continued; left out: there was none. */
  continuations?: readonly ContinuationOutcome[] | undefined;
}

/** A request that was not admitted. */
export interface RefusedInference {
  requestId: string;
  operation: BookedOperation;
  /** Public model id. */
  model: string;
  environment: Environment;
  /** The error that the client was answered, most likely a GatewayError. */
  error: unknown;
}

/** Called while requests are served: it is quick, and never throws. What it is given it must not change. */
export interface Observer {
  /** Answered to its end, failed, or left by its client. */
  httpEnded(end: HttpEnd): void;
  /** It was admitted; `inferenceEnded` follows, once. */
  inferenceBegan(begin: UsageBegin): void;
  inferenceEnded(begin: UsageBegin, end: UsageEnd, course: InferenceCourse): void;
  inferenceRefused(refused: RefusedInference): void;
  /**
   * An engine was asked, and gave the head of an answer or failed: `error` is undefined where it took the request.
   * `model` is the public id of the one that it was asked for.
   */
  attempted(requestId: string, model: string, upstream: string, error: unknown): void;
}
