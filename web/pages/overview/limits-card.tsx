// Shows what is left of the rate limits now, and of the month's quota.
import { Stack } from "@mantine/core";
import type { AccountOverview } from "../../api/types.ts";
import { PlainLink } from "../../parts/page/links.tsx";
import { Card } from "../../parts/page/section.tsx";
import { UsedQuotas } from "../../parts/quotas/used-quotas.tsx";
import { QuotaMeters, RateMeters } from "../../parts/usage/account-meters.tsx";
import { environmentNames } from "../../parts/words/environments.ts";
import { SmallNote } from "../../parts/words/note.tsx";

export function LimitsCard({ account: { tier, rate, quota, quotas, environment } }: { account: AccountOverview }) {
  return (
    <Card title="Limits and quotas" more={<PlainLink href="/settings/limits">Limits</PlainLink>}>
      <Stack gap="md">
        <RateMeters rate={rate} />
        <QuotaMeters quota={quota} />
        {quotas.length > 0 && <UsedQuotas quotas={quotas} ofMany />}
        {rate.requests === null && rate.tokens === null && (
          <SmallNote>
            No rate limits apply in {environmentNames[environment]}. Your tier, {tier}, sets none here.
          </SmallNote>
        )}
      </Stack>
    </Card>
  );
}
