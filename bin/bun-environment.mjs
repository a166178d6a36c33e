// The environment that Bun must start with.

/**
 * By default Bun gives memory back to the system a tenth of a second after its use, to ask for the same again with the next
 * requests; where nothing is to be done it gives back what is free without waiting for that. And it lets garbage grow to
 * twice of what is in use before it looks for some, and what lived through one look to four times of it: half of that, and
 * one and a half times, cost requests no more.
 */
export const memorySettings = {
  MIMALLOC_PURGE_DELAY: "10000",
  MIMALLOC_PURGE_HOLES_MIN_INTERVAL: "1000",
  BUN_JSC_heapGrowthMaxIncrease: "1",
  BUN_JSC_minEdenToOldGenerationRatio: "0.4",
};

/** By default Bun silently queues outgoing requests beyond 256 per process. */
const fixedSettings = { BUN_CONFIG_MAX_HTTP_REQUESTS: "65535" };

/** What the program is started with wherever no launcher is: in an image, by a package of a system. */
export const bunSettings = { ...memorySettings, ...fixedSettings };

/**
 * @param {Record<string, string>} extra
 * @returns {Record<string, string>}
 */
export function bunEnvironment(extra = {}) {
  return { ...memorySettings, ...process.env, ...fixedSettings, ...extra };
}
