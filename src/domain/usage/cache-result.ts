// The results of a lookup in the response cache.

/** `similar`: of a request that means the same; `refresh`: its client wanted a new one; `miss`: there was none. */
export const cacheResults = ["hit", "similar", "refresh", "miss"] as const;
export type CacheResult = (typeof cacheResults)[number];
