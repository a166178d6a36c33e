// The recent speed of a model at one upstream.

export interface Speed {
  /** The public id. */
  model: string;
  /** Name of the engine. */
  upstream: string;
  /** Mean milliseconds from the request to the first piece of the answer. Measured for streams only. */
  firstTokenMs: number;
  /** Mean speed of generation. Null if no answer was long enough to measure it. */
  tokensPerSecond: number | null;
}

export interface Speeds {
  /** Returns the speeds measured in about the last 15 minutes. */
  recent(nowSeconds: number): Promise<Speed[]>;
}
