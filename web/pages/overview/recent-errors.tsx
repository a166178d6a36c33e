// The last requests that failed, each with the way to its log.
import { Anchor, Group, Paper, Stack, Text, Title } from "@mantine/core";
import { Link } from "wouter";
import type { Overview } from "../../api/types.ts";
import { Ago } from "../../parts/words/ago.tsx";
import { ModelName } from "../../parts/words/model-name.tsx";

interface RecentErrorsProps {
  errors: Overview["errors"];
  /** Of a credential. */
  nameOf(id: string): string;
}

export function RecentErrors({ errors, nameOf }: RecentErrorsProps) {
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
      {errors.length === 0 && (
        <Text size="sm" c="dimmed">
          No request failed lately.
        </Text>
      )}
      <Stack gap="xs">
        {errors.map(({ id, at, model, key, error_code }) => (
          <Group key={id} justify="space-between" gap="xs" wrap="nowrap">
            <div style={{ minWidth: 0 }}>
              <Anchor component={Link} href={`/requests/${id}`} size="sm" fw={500}>
                {error_code ?? "failed"}
              </Anchor>
              <Text size="xs" c="dimmed" truncate>
                <ModelName name={model} size="xs" maw="60%" style={{ verticalAlign: "bottom" }} /> · {nameOf(key)}
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
