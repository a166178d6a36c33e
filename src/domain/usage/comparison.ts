// Compares a model with the models that get a share of its requests, by figures only.

/** `shadow`: requests that both models got; `split`: the requests of each. */
export const comparisonKinds = ["shadow", "split"] as const;
export type ComparisonKind = (typeof comparisonKinds)[number];

export interface ComparisonQuery {
  /** Public id of the model whose requests are shared. */
  readonly model: string;
  /** Public id of the other model. */
  readonly other: string;
  readonly kind: ComparisonKind;
  /** Unix seconds: from `start`, before `end`. */
  readonly start: number;
  readonly end: number;
}

/** Half of the answered requests, and 95 of 100, took no longer. null without measurements. */
export interface ComparedTimes {
  readonly p50: number | null;
  readonly p95: number | null;
}

export interface ComparedSide {
  readonly requests: number;
  readonly errors: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** null if one of the requests had no price. */
  readonly nanoUsd: number | null;
  readonly firstTokenMs: ComparedTimes;
  readonly durationMs: ComparedTimes;
  /** Completion tokens of all answers divided by their time without waits; null without answers. */
  readonly tokensPerSecond: number | null;
  /** Mean completion tokens of an answer; null without answers. */
  readonly answerTokens: number | null;
}

export interface Comparison {
  readonly own: ComparedSide;
  readonly other: ComparedSide;
  /** True if only the newest requests were compared, because there are very many. */
  readonly isPartial: boolean;
}

export interface Comparisons {
  compare(query: ComparisonQuery): Promise<Comparison>;
}

/** Ends the request id of a shadow, which is the copy of a request that a second model gets. */
export const shadowSuffix = "-shadow";
/** The tag under which the usage of shadows is counted. */
export const shadowTag = "gateway:shadow";

/** Returns the id of a request's copy for a second model, which pairs the two. */
export function shadowIdOf(requestId: string): string {
  return requestId + shadowSuffix;
}

/** Returns the tag for requests of a model of which other models answer some. */
export function askedTag(asked: string): string {
  return `asked:${asked}`;
}
