// What is left of the limits at this moment, and of the month's quota.
import { Anchor, Group, Paper, Skeleton, Stack, Text, Title } from "@mantine/core";
import { Link } from "wouter";
import { useRead } from "../../api/queries.ts";
import type { AccountOverview } from "../../api/types.ts";
import { QuotaMeters, RateMeters } from "../../parts/account-meters.tsx";
import { environmentNames } from "../../parts/environments.ts";
import { Failure } from "../../parts/failure.tsx";

export function LimitsCard({ everyMs }: { everyMs: number | undefined }) {
  const { data, error } = useRead<AccountOverview>("/v1/account", {}, everyMs ? { everyMs } : {});
  return (
    <Paper withBorder p="md" component="section" aria-label="Limits and quota">
      <Group justify="space-between" mb="xs">
        <Title order={2} fz="md">
          Limits and quota
        </Title>
        <Anchor component={Link} href="/settings/limits" size="sm">
          {data ? `Tier ${data.tier}` : "Limits"}
        </Anchor>
      </Group>
      {error && !data && <Failure error={error} />}
      {!data && !error && <Skeleton height={160} />}
      {data && (
        <Stack gap="md">
          <RateMeters rate={data.rate} />
          <QuotaMeters quota={data.quota} />
          {data.rate.requests === null && data.rate.tokens === null && (
            <Text size="xs" c="dimmed">
              In the environment {environmentNames[data.environment]} the tier sets no rate limits.
            </Text>
          )}
        </Stack>
      )}
    </Paper>
  );
}
