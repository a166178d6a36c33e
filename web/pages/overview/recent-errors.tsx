// The last requests that failed, each with the way to its log.
import { Anchor, Group, Paper, Stack, Title } from "@mantine/core";
import { Link } from "wouter";
import type { Overview } from "../../api/types.ts";
import { Ago } from "../../parts/words/ago.tsx";
import { ModelName } from "../../parts/words/model-name.tsx";
import { Note, SmallNote } from "../../parts/words/note.tsx";

interface RecentErrorsProps {
  errors: Overview["errors"];
  /** `id`: a credential's. */
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
      {errors.length === 0 && <Note>No request failed lately.</Note>}
      <Stack gap="xs">
        {errors.map(({ id, at, model, key, error_code }) => (
          <Group key={id} justify="space-between" gap="xs" wrap="nowrap">
            <div style={{ minWidth: 0 }}>
              <Anchor component={Link} href={`/requests/${id}`} size="sm" fw={500}>
                {error_code ?? "failed"}
              </Anchor>
              <SmallNote truncate>
                <ModelName name={model} size="xs" maw="60%" style={{ verticalAlign: "bottom" }} /> · {nameOf(key)}
              </SmallNote>
            </div>
            <SmallNote className="numeric">
              <Ago seconds={at} />
            </SmallNote>
          </Group>
        ))}
      </Stack>
    </Paper>
  );
}
