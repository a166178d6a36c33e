// What was used of quotas per window, as the API tells it.
import { usdOf } from "../base/money.ts";
import type { LimitStore, Quota } from "../domain/limits/limits.ts";
import type { UsedQuotas } from "../wire/quotas.ts";

/** One for each amount of these quotas. */
export async function quotaUse(
  quotas: readonly Quota[],
  limits: Pick<LimitStore, "usedInWindow">,
): Promise<UsedQuotas> {
  const used = await Promise.all(quotas.map((quota) => useOf(quota, limits)));
  return used.flat();
}

async function useOf(quota: Quota, limits: Pick<LimitStore, "usedInWindow">): Promise<UsedQuotas> {
  const { owner, called, ownerId, window, filter, requests, tokens, nanoUsd } = quota;
  if (window === undefined) return [];
  const { period, ...used } = await limits.usedInWindow(quota);
  const amounts = [
    { unit: "requests", amount: requests ?? null, used: used.requests },
    { unit: "tokens", amount: tokens, used: used.tokens },
    { unit: "usd", amount: nanoUsd === null ? null : usdOf(nanoUsd), used: usdOf(used.nanoUsd) },
  ] as const;
  return amounts.flatMap(({ unit, amount, used: ofUnit }) => {
    if (amount === null) return [];
    const models = filter?.models ? [...filter.models] : null;
    const time = {
      per: window.per,
      window: window.kind,
      starts_at: period?.start ?? null,
      resets_at: period?.end ?? null,
    };
    return [
      {
        owner: called ?? owner,
        owner_id: ownerId,
        unit,
        amount,
        used: ofUnit,
        ...time,
        models,
        tag: filter?.tag ?? null,
      },
    ];
  });
}
