// Which answers of a model are kept to be given again to the same account, for how long, and at what price.

/** `deterministic`: requests of temperature 0, and those that ask for it; `asked`: those that ask for it alone; `all`: every one. */
export const cachedRequests = ["deterministic", "asked", "all"] as const;

export interface CachePolicy {
  readonly requests: (typeof cachedRequests)[number];
  readonly ttlSeconds: number;
  /** The part of the price that an answer costs which is given again, 0 to 1. */
  readonly priceFactor: number;
  /** Left null, only the same request, in all that matters, gets the same answer. */
  readonly semantic: SemanticCache | null;
}

export interface SemanticCache {
  /** Public id of the embedding model. */
  readonly embeddingModel: string;
  /** Cosine similarity from which on two requests count as the same, above 0 up to 1. */
  readonly threshold: number;
}

/** The response cache setting of a key. `on` uses the model's policy, or `defaultCachePolicy` if the model has none. */
export const responseCaches = ["on", "off"] as const;
export type ResponseCache = (typeof responseCaches)[number];

/** Where nothing else is said: of keys that have it on, for models that have none of their own. */
export const defaultCachePolicy: CachePolicy = {
  requests: "deterministic",
  ttlSeconds: 3_600,
  priceFactor: 0,
  semantic: null,
};
