// Usage of quotas with a window and of monthly quotas, in the form of the API.
import { calendarMonthOf } from "../base/calendar-month.ts";
import { usdOf } from "../base/money.ts";
import type { Environment } from "../domain/api-key.ts";
import { quotaReason, whomToAsk } from "../domain/limits/limit-refusal.ts";
import type { LimitStore, Quota, QuotaUse } from "../domain/limits/limits.ts";
import type { Period } from "../domain/limits/quota-rules.ts";
import type { AccountQuotaWire } from "../wire/accounts.ts";
import type { UsedQuotas } from "../wire/quotas.ts";

/** Returns the usage of quotas with a window: one entry for each amount of each quota. */
export async function quotaUse(
  quotas: readonly Quota[],
  limits: Pick<LimitStore, "usedInWindow">,
): Promise<UsedQuotas> {
  const used = await Promise.all(
    quotas.map(async (quota) => {
      const { period, ...use } = await limits.usedInWindow(quota);
      return amountsOf(quota, use, period);
    }),
  );
  return used.flat();
}

/** Returns the usage of monthly quotas: one entry for each amount. */
export async function monthUse(
  quotas: readonly Quota[],
  limits: Pick<LimitStore, "used">,
  nowSeconds: number,
): Promise<UsedQuotas> {
  const limited = quotas.filter(({ tokens, nanoUsd }) => tokens !== null || nanoUsd !== null);
  const month = calendarMonthOf(nowSeconds);
  const used = await Promise.all(
    limited.map(async (quota) => amountsOf(quota, { requests: 0, ...(await limits.used(quota)) }, month)),
  );
  return used.flat();
}

/** Returns the limits and usage of this month in each environment, in the form of the API. */
export async function monthOf(
  limitsIn: (environment: Environment) => { quota: Quota; windows: readonly Quota[] },
  environments: readonly Environment[],
  limits: Pick<LimitStore, "used" | "usedInWindow">,
  nowSeconds: number,
): Promise<AccountQuotaWire> {
  const month = calendarMonthOf(nowSeconds);
  const quotaOf = async (environment: Environment) => {
    const { quota, windows } = limitsIn(environment);
    const used = await limits.used(quota);
    return {
      environment,
      tokens: { limit: quota.tokens, used: used.tokens },
      spend: { limit: quota.nanoUsd === null ? null : usdOf(quota.nanoUsd), used: usdOf(used.nanoUsd) },
      windows: await quotaUse(windows, limits),
    };
  };
  return {
    period_start: month.start,
    period_end: month.end,
    environments: await Promise.all(environments.map(quotaOf)),
  };
}

function amountsOf(quota: Quota, use: QuotaUse, period: Period | undefined): UsedQuotas {
  const { owner, called, ownerId, window, filter, requests, tokens, nanoUsd, stops } = quota;
  const asItIs = (value: number) => value;
  const amounts = [
    { unit: "requests", amount: requests ?? null, used: use.requests, shown: asItIs, stop: false },
    { unit: "tokens", amount: tokens, used: use.tokens, shown: asItIs, stop: stops?.tokens ?? false },
    { unit: "usd", amount: nanoUsd, used: use.nanoUsd, shown: usdOf, stop: stops?.nanoUsd ?? false },
  ] as const;
  return amounts.flatMap(({ unit, amount, used, shown, stop }) => {
    if (amount === null) return [];
    return [
      {
        ...{ reason: quotaReason(quota), owner: called ?? owner, owner_id: ownerId, unit },
        // The remainder is computed from whole numbers, not from two fractions of a dollar.
        ...{ amount: shown(amount), used: shown(used), left: shown(Math.max(0, amount - used)) },
        ...{ per: window?.per ?? "month", window: window?.kind ?? "calendar" },
        ...{ starts_at: period?.start ?? null, resets_at: period?.end ?? null },
        models: filter?.models ? [...filter.models] : null,
        tag: filter?.tag ?? null,
        hard_stop: stop,
        ask: whomToAsk(quota),
      },
    ];
  });
}
