// The quotas that an account has in place of its tier's, in words.
import type { Account } from "../../api/types.ts";
import { money, short } from "../../parts/words/figures.ts";

export function overrideText({ monthly_tokens: tokens, monthly_spend: spend }: Account): string {
  const parts: string[] = [];
  if (tokens !== null) parts.push(tokens === "unlimited" ? "tokens without limit" : `${short(tokens)} tokens`);
  if (spend !== null) parts.push(spend === "unlimited" ? "spend without limit" : money(spend));
  return parts.length === 0 ? "as the tier says" : parts.join(", ");
}
