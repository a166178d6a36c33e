// Schedule of delivery attempts.

/** Seconds before each attempt, as Standard Webhooks advises. The last attempt is some three days after the first. */
const waits = [0, 5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400] as const;
/**
 * Each wait is extended by a random part of up to this fraction, so that failed deliveries are not repeated all at
 * once.
 */
const jitter = 0.1;

export const maxAttempts = waits.length;

/**
 * Returns the seconds to wait after `failed` attempts; undefined after the last. The wait is at least what the receiver
 * asked for. `random` returns numbers from 0 up to, but not including, 1.
 */
export function waitAfter(failed: number, askedSeconds: number | undefined, random: () => number): number | undefined {
  const wait = waits[failed];
  if (wait === undefined) return undefined;
  return Math.max(Math.round(wait * (1 + jitter * random())), askedSeconds ?? 0);
}
