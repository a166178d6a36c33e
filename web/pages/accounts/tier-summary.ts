// The figures of a tier in one line.
import type { Tier } from "../../api/types.ts";
import { environmentList } from "../../parts/words/environments.ts";
import { money, short } from "../../parts/words/figures.ts";

export function tierSummary(tier: Tier): string {
  const { requests_per_minute: requests, tokens_per_minute: tokens } = tier;
  const { monthly_tokens: monthlyTokens, monthly_spend: monthlySpend, environments } = tier;
  const parts = [
    ...(requests === null ? [] : [`${short(requests)} requests a minute`]),
    ...(tokens === null ? [] : [`${short(tokens)} tokens a minute`]),
    ...(monthlyTokens === null ? [] : [`${short(monthlyTokens)} tokens a month`]),
    ...(monthlySpend === null ? [] : [`${money(monthlySpend)} a month`]),
  ];
  return parts.length === 0 ? "No limits." : `${parts.join(", ")}; in ${environmentList(environments)}.`;
}
