// The recent speed of a model at one upstream.

export interface Speed {
  /** The public id. */
  model: string;
  /** Name of the engine. */
  upstream: string;
  /** Mean time from the request to the first piece of the answer; only streams have one. */
  firstTokenMs: number;
  /** Mean speed of generation; null if no answer was long enough to measure. */
  tokensPerSecond: number | null;
}

export interface Speeds {
  /** Returns speeds of about the last 15 minutes. */
  recent(nowSeconds: number): Promise<Speed[]>;
}
