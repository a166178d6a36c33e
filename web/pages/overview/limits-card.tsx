// What is left of the limits at this moment, and of the month's quota.
import { Anchor, Group, Paper, Stack, Title } from "@mantine/core";
import { Link } from "wouter";
import type { AccountOverview } from "../../api/types.ts";
import { QuotaMeters, RateMeters } from "../../parts/usage/account-meters.tsx";
import { environmentNames } from "../../parts/words/environments.ts";
import { SmallNote } from "../../parts/words/note.tsx";

export function LimitsCard({ account: { tier, rate, quota, environment } }: { account: AccountOverview }) {
  return (
    <Paper withBorder p="md" component="section" aria-label="Limits and quota">
      <Group justify="space-between" mb="xs">
        <Title order={2} fz="md">
          Limits and quota
        </Title>
        <Anchor component={Link} href="/settings/limits" size="sm">
          Limits
        </Anchor>
      </Group>
      <Stack gap="md">
        <RateMeters rate={rate} />
        <QuotaMeters quota={quota} />
        {rate.requests === null && rate.tokens === null && (
          <SmallNote>
            No rate limits apply in {environmentNames[environment]}: those of your tier, {tier}, are for other
            environments or not set.
          </SmallNote>
        )}
      </Stack>
    </Paper>
  );
}
