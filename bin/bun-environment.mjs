// The environment that Bun must start with.

/**
 * By default Bun gives memory back to the system a tenth of a second after its use, to ask for the same again with the next
 * requests; where nothing is to be done it gives back what is free without waiting for that.
 */
export const memorySettings = {
  MIMALLOC_PURGE_DELAY: "10000",
  MIMALLOC_PURGE_HOLES_MIN_INTERVAL: "1000",
};

/**
 * By default Bun keeps the address of a name for 30 s, also if nobody answers there any more: a database or a Redis whose
 * name leads to its standby would be away for as long.
 */
const nameSettings = { BUN_CONFIG_DNS_TIME_TO_LIVE_SECONDS: "3" };

/** By default Bun silently queues outgoing requests beyond 256 per process. */
const fixedSettings = { BUN_CONFIG_MAX_HTTP_REQUESTS: "65535" };

/** What the program is started with wherever no launcher is: in an image, by a package of a system. */
export const bunSettings = { ...memorySettings, ...nameSettings, ...fixedSettings };

/**
 * @param {Record<string, string>} extra
 * @returns {Record<string, string>}
 */
export function bunEnvironment(extra = {}) {
  return { ...memorySettings, ...nameSettings, ...process.env, ...fixedSettings, ...extra };
}
