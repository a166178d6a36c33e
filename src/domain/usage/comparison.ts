// Compares the usage figures of a model with those of models that get a share of its requests.

/** `shadow`: the same requests were sent to both models. `split`: each request was sent to one of them. */
export const comparisonKinds = ["shadow", "split"] as const;
export type ComparisonKind = (typeof comparisonKinds)[number];

export interface ComparisonQuery {
  /** Public id of the model whose requests are shared. */
  readonly model: string;
  /** Public id of the other model. */
  readonly other: string;
  readonly kind: ComparisonKind;
  /** The period in Unix seconds. `start` is included, `end` is not. */
  readonly start: number;
  readonly end: number;
}

/** Times that 50 % and 95 % of the answered requests did not exceed. Null if nothing was measured. */
export interface ComparedTimes {
  readonly p50: number | null;
  readonly p95: number | null;
}

export interface ComparedSide {
  readonly requests: number;
  readonly errors: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Total cost in nano-USD. Null if one of the requests had no price. */
  readonly nanoUsd: number | null;
  readonly firstTokenMs: ComparedTimes;
  readonly durationMs: ComparedTimes;
  /**
   * Completion tokens of all answers, divided by the answers' durations without waiting times. Null without answers.
   */
  readonly tokensPerSecond: number | null;
  /** Mean completion tokens of an answer; null without answers. */
  readonly answerTokens: number | null;
}

export interface Comparison {
  readonly own: ComparedSide;
  readonly other: ComparedSide;
  /** True if only the newest requests were compared, because there are too many. */
  readonly isPartial: boolean;
}

export interface Comparisons {
  compare(query: ComparisonQuery): Promise<Comparison>;
}

/** Suffix of a shadow's request id. A shadow is the copy of a request that a second model gets. */
export const shadowSuffix = "-shadow";
/** The tag under which the usage of shadows is counted. */
export const shadowTag = "gateway:shadow";

/** Returns the id of a request's shadow, so that the request and its shadow can be compared. */
export function shadowIdOf(requestId: string): string {
  return requestId + shadowSuffix;
}

/** Returns the tag for requests to a model of which other models answer a share. `asked` is the requested model. */
export function askedTag(asked: string): string {
  return `asked:${asked}`;
}
