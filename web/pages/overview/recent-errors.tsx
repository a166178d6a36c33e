// The last requests that failed, each with the way to its log.
import { Anchor, Group, Paper, Stack, Text, Title } from "@mantine/core";
import { Link } from "wouter";
import type { Names } from "../../api/names.ts";
import { useRead } from "../../api/queries.ts";
import type { RequestList } from "../../api/types.ts";
import { Ago } from "../../parts/ago.tsx";
import { Failure } from "../../parts/failure.tsx";

export function RecentErrors({ names, everyMs }: { names: Names; everyMs: number | undefined }) {
  const query = { outcome: "failed", limit: 6 };
  const { data, error } = useRead<RequestList>("/v1/requests", query, everyMs ? { everyMs } : {});
  return (
    <Paper withBorder p="md" component="section" aria-label="Recent errors">
      <Group justify="space-between" mb="xs">
        <Title order={2} fz="md">
          Recent errors
        </Title>
        <Anchor component={Link} href="/requests?outcome=failed" size="sm">
          All in Logs
        </Anchor>
      </Group>
      {error && !data && <Failure error={error} />}
      {!data && !error && (
        <Text size="sm" c="dimmed">
          Loading…
        </Text>
      )}
      {data?.data.length === 0 && (
        <Text size="sm" c="dimmed">
          No request failed lately.
        </Text>
      )}
      <Stack gap="xs">
        {data?.data.map(({ id, at, model, key, error_code }) => (
          <Group key={id} justify="space-between" gap="xs" wrap="nowrap">
            <div style={{ minWidth: 0 }}>
              <Anchor component={Link} href={`/requests/${id}`} size="sm" fw={500}>
                {error_code ?? "failed"}
              </Anchor>
              <Text size="xs" c="dimmed" truncate>
                {model} · {names.key(key)}
              </Text>
            </div>
            <Text size="xs" c="dimmed" className="numeric">
              <Ago seconds={at} />
            </Text>
          </Group>
        ))}
      </Stack>
    </Paper>
  );
}
