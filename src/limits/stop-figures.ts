// Reports what remains in quotas that can stop a running answer.
import type { Quota, StoppedBy } from "../domain/limits/limits.ts";
import type { QuotaFigures } from "./limit-decision.ts";

export interface StopFigures {
  /** Tokens that remain; infinite if no quota stops answers by tokens. */
  tokens: number;
  nanoUsd: number;
  /** Number of running requests in the busiest of the quotas. */
  running: number;
  /** The quota with the smallest remaining fraction. */
  tightest: StoppedBy | undefined;
}

export interface CountedStop {
  readonly quota: Quota;
  readonly counter: QuotaFigures;
}

export function stopFigures(counted: readonly CountedStop[]): StopFigures {
  const all: StopFigures = {
    ...{ tokens: Number.POSITIVE_INFINITY, nanoUsd: Number.POSITIVE_INFINITY },
    ...{ running: 0, tightest: undefined },
  };
  let leastPart = Number.POSITIVE_INFINITY;
  for (const { quota, counter } of counted) {
    all.running = Math.max(all.running, counter.leases);
    for (const unit of ["tokens", "nanoUsd"] as const) {
      const limit = quota[unit];
      if (limit === null || !quota.stops?.[unit]) continue;
      const remaining = Math.max(0, limit - takenOf(counter, unit));
      all[unit] = Math.min(all[unit], remaining);
      const part = remaining / Math.max(1, limit);
      if (part >= leastPart) continue;
      leastPart = part;
      all.tightest = { quota, unit, period: counter.period };
    }
  }
  return all;
}

function takenOf(
  { usedTokens, heldTokens, usedNanoUsd, heldNanoUsd }: QuotaFigures,
  unit: "tokens" | "nanoUsd",
): number {
  return unit === "tokens" ? usedTokens + heldTokens : usedNanoUsd + heldNanoUsd;
}
