// When a delivery is tried again, and for how long.

/** Seconds before each attempt, as Standard Webhooks advises: the last one is some three days after the first. */
const waits = [0, 5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400] as const;
/** Waits differ by up to this part, so that what failed together is not tried together. */
const jitter = 0.1;

export const maxAttempts = waits.length;

/**
 * Seconds to wait after `failed` attempts, undefined after the last; never less than the receiver asked for. `random`: from
 * 0 up to, and without, 1.
 */
export function waitAfter(failed: number, askedSeconds: number | undefined, random: () => number): number | undefined {
  const wait = waits[failed];
  if (wait === undefined) return undefined;
  return Math.max(Math.round(wait * (1 + jitter * random())), askedSeconds ?? 0);
}
