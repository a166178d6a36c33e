// The recent speed of a model at one upstream.

/** Milliseconds within which 50, 95 and 99 % of the answers came. */
export interface Percentiles {
  p50: number;
  p95: number;
  p99: number;
}

/** Returns the percentiles by the nearest rank; undefined without values. Sorts the values in place. */
export function percentilesOf(values: number[]): Percentiles | undefined {
  values.sort((a, b) => a - b);
  const rank = (percent: number) => values[Math.ceil((values.length * percent) / 100) - 1];
  const [p50, p95, p99] = [rank(50), rank(95), rank(99)];
  return p50 === undefined || p95 === undefined || p99 === undefined ? undefined : { p50, p95, p99 };
}

export interface Speed {
  /** The public id. */
  model: string;
  /** Name of the engine. */
  upstream: string;
  /** Mean milliseconds from the request to the first piece of the answer. Null without streams. */
  firstTokenMs: number | null;
  /** Mean speed of generation. Null if no answer was long enough to measure it. */
  tokensPerSecond: number | null;
  /**
   * The percentiles of the time to a stream's first piece. `totalPercentiles` are those of the time to the end of all
   * completed answers.
   */
  firstTokenPercentiles?: Percentiles | undefined;
  totalPercentiles?: Percentiles | undefined;
}

export interface Speeds {
  /** Returns the speeds measured in about the last 15 minutes. */
  recent(nowSeconds: number): Promise<Speed[]>;
}
