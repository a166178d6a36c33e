// The quotas that an account has in place of its tier's, in words.
import type { Account } from "../../api/types.ts";
import { accountAmounts, amountInWords } from "../../parts/words/amounts.ts";

/** Undefined where all is as the tier says. */
export function overrideText(account: Account): string | undefined {
  const parts = accountAmounts.flatMap((amount) => {
    const value = account[amount.wire];
    if (value === null) return [];
    return [value === "unlimited" ? `${amount.label.toLowerCase()} without limit` : amountInWords(amount, value)];
  });
  return parts.length === 0 ? undefined : parts.join(", ");
}
