// The results of a lookup in the response cache.

/**
 * `similar`: an answer to a request with the same meaning was cached. `refresh`: the client asked for a new answer.
 * `miss`: no answer was cached.
 */
export const cacheResults = ["hit", "similar", "refresh", "miss"] as const;
export type CacheResult = (typeof cacheResults)[number];
