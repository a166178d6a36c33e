// The figures of a tier in one line.
import { limitAmounts } from "../../api/limit-amounts.ts";
import type { Tier } from "../../api/types.ts";
import { amountInWords } from "../../parts/words/amounts.ts";
import { environmentList } from "../../parts/words/environments.ts";

export function tierSummary(tier: Tier): string {
  const parts = limitAmounts.flatMap((amount) => {
    const value = tier[amount.wire];
    return value === null ? [] : [amountInWords(amount, value)];
  });
  return parts.length === 0 ? "No limits." : `${parts.join(", ")}; in ${environmentList(tier.environments)}.`;
}
