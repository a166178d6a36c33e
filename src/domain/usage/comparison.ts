// How a model does beside those that get a share of its requests: figures of both sides, and none of their words.

/** `shadow`: of the requests that both models got; `split`: of what each was given. */
export const comparisonKinds = ["shadow", "split"] as const;
export type ComparisonKind = (typeof comparisonKinds)[number];

export interface ComparisonQuery {
  /** Public id of the model whose requests are shared. */
  readonly model: string;
  /** Public id of the other one. */
  readonly other: string;
  readonly kind: ComparisonKind;
  /** Unix seconds: from `start`, before `end`. */
  readonly start: number;
  readonly end: number;
}

/** Half of those that were answered, and 95 of 100, took no longer. Null where nothing was timed. */
export interface ComparedTimes {
  readonly p50: number | null;
  readonly p95: number | null;
}

export interface ComparedSide {
  readonly requests: number;
  readonly errors: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Null where one of them had no price. */
  readonly nanoUsd: number | null;
  readonly firstTokenMs: ComparedTimes;
  readonly durationMs: ComparedTimes;
  /** Completion tokens of all answers by the time that they took, waits not counted; null where nothing was answered. */
  readonly tokensPerSecond: number | null;
  /** Mean completion tokens of an answer; null likewise. */
  readonly answerTokens: number | null;
}

export interface Comparison {
  readonly own: ComparedSide;
  readonly other: ComparedSide;
  /** Whether only the newest were looked at, as there are very many. */
  readonly isPartial: boolean;
}

export interface Comparisons {
  compare(query: ComparisonQuery): Promise<Comparison>;
}

/** Ends the id of a request that a second model got as well. */
export const shadowSuffix = "-shadow";
/** Its usage is counted under it. */
export const shadowTag = "gateway:shadow";

/** The id of the request that a second model got of it: by it, the two are a pair. */
export function shadowIdOf(requestId: string): string {
  return requestId + shadowSuffix;
}

/** What the usage of a model's requests is counted under where others answer some of them. */
export function askedTag(asked: string): string {
  return `asked:${asked}`;
}
