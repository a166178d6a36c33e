// The recent speed of a model at one upstream.

export interface Speed {
  /** The public id. */
  model: string;
  /** Name of the engine. */
  upstream: string;
  /** Mean time from the request to the first piece of the answer; only streams have one. */
  firstTokenMs: number;
  /** Mean while the answer was generated; null where no answer was long enough to tell. */
  tokensPerSecond: number | null;
}

export interface Speeds {
  /** Speeds of about the last quarter of an hour. */
  recent(nowSeconds: number): Promise<Speed[]>;
}
