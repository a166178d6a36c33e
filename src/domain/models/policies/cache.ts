// The response cache policy of a model: which answers are cached for an account, for how long, and at what price.

/**
 * `deterministic`: requests with temperature 0, and requests that ask for caching. `asked`: only requests that ask for
 * caching. `all`: every request.
 */
export const cachedRequests = ["deterministic", "asked", "all"] as const;

export interface CachePolicy {
  readonly requests: (typeof cachedRequests)[number];
  readonly ttlSeconds: number;
  /** The share of the price that a cached answer costs, 0 to 1. */
  readonly priceFactor: number;
  /** Describes how similar requests share an answer. If null, only identical requests do. */
  readonly semantic: SemanticCache | null;
}

export interface SemanticCache {
  /** Public id of the embedding model that compares requests. */
  readonly embeddingModel: string;
  /** Minimum cosine similarity of requests that share an answer. Above 0, at most 1. */
  readonly threshold: number;
}

/**
 * A key's setting for the response cache. `on` applies the model's policy, or `defaultCachePolicy` if the model has
 * none.
 */
export const responseCaches = ["on", "off"] as const;
export type ResponseCache = (typeof responseCaches)[number];

/** The cache policy if the key's setting is `on` and the model has no policy. */
export const defaultCachePolicy: CachePolicy = {
  requests: "deterministic",
  ttlSeconds: 3_600,
  priceFactor: 0,
  semantic: null,
};
