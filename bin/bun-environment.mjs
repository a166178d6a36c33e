// The environment that Bun must start with.

/**
 * By default Bun silently queues outgoing requests beyond 256 per process, and gives memory back to the system a tenth of
 * a second after its use, to ask for the same again with the next requests. Where nothing is to be done it gives back what
 * is free without waiting for that.
 * @param {Record<string, string>} extra
 * @returns {Record<string, string>}
 */
export function bunEnvironment(extra = {}) {
  return {
    MIMALLOC_PURGE_DELAY: "10000",
    MIMALLOC_PURGE_HOLES_MIN_INTERVAL: "1000",
    ...process.env,
    BUN_CONFIG_MAX_HTTP_REQUESTS: "65535",
    ...extra,
  };
}
