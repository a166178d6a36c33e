// Describes the limits that a tier sets, and the limits that an account overrides, each in one line.
import { limitAmounts } from "../../api/limit-amounts.ts";
import type { Account, Tier } from "../../api/types.ts";
import { accountAmounts, amountInWords } from "../../parts/words/amounts.ts";
import { environmentList } from "../../parts/words/environments.ts";
import { quotaInWords } from "../../parts/words/quotas.ts";

export function tierSummary(tier: Tier): string {
  const parts = [
    ...limitAmounts.flatMap((amount) => amountInWords(amount, tier[amount.wire])),
    ...tier.quotas.map(quotaInWords),
  ];
  return parts.length === 0 ? "No limits." : `${parts.join(", ")}; in ${environmentList(tier.environments)}.`;
}

/** Returns undefined if the account overrides nothing. */
export function overrideText(account: Account): string | undefined {
  const quotas = account.quotas?.length === 0 ? ["no quotas"] : (account.quotas ?? []).map(quotaInWords);
  const parts = [...accountAmounts.flatMap((amount) => amountInWords(amount, account[amount.wire])), ...quotas];
  return parts.length === 0 ? undefined : parts.join(", ");
}
