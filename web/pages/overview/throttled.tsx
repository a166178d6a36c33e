// What was refused for want of room, and why, in words that lead to what to do.
import { Anchor, Group, Paper, Text, Title } from "@mantine/core";
import { Link } from "wouter";
import type { ApiFailure } from "../../api/client.ts";
import type { Names } from "../../api/names.ts";
import { refusalsByReason, refusalWords } from "../../api/refusals.ts";
import type { Refusal } from "../../api/types.ts";
import { Ago } from "../../parts/ago.tsx";
import { Failure } from "../../parts/failure.tsx";
import { count } from "../../parts/figures.ts";
import { State } from "../../parts/state.tsx";

interface ThrottledProps {
  refusals: readonly Refusal[] | undefined;
  error: ApiFailure | null;
  names: Names;
}

const mostLines = 4;

export function Throttled({ refusals, error, names }: ThrottledProps) {
  const groups = refusalsByReason(refusals ?? []);
  return (
    <Paper withBorder p="md" component="section" aria-label="Throttled">
      <Group justify="space-between" mb="xs">
        <Title order={2} fz="md">
          Throttled
        </Title>
        {groups.length > 0 && (
          <Anchor component={Link} href="/settings/limits" size="sm">
            Limits
          </Anchor>
        )}
      </Group>
      {error && !refusals ? (
        <Failure error={error} />
      ) : groups.length === 0 ? (
        <Text size="sm" c="dimmed">
          {refusals ? "No limit refused a request in this time." : "Loading…"}
        </Text>
      ) : (
        <div className="meanings">
          {groups.slice(0, mostLines).map(({ reason, requests, lastAt, lines }) => {
            const { title, why, todo, place } = refusalWords[reason];
            return (
              <div key={reason}>
                <Group gap="xs">
                  <Text size="sm" fw={600}>
                    {title}
                  </Text>
                  <State kind="warning">{`${count(requests)} refused`}</State>
                </Group>
                <Text size="sm" c="dimmed">
                  {why} Most of all {said(lines[0]?.first, names)}; last <Ago seconds={lastAt} />.
                </Text>
                <Text size="sm">
                  {todo}{" "}
                  <Anchor component={Link} href={place.path} size="sm" underline="always">
                    {place.title}
                  </Anchor>
                </Text>
              </div>
            );
          })}
          {groups.length > mostLines && (
            <Anchor component={Link} href="/settings/limits" size="sm">
              {groups.length - mostLines} more reasons
            </Anchor>
          )}
        </div>
      )}
    </Paper>
  );
}

/** Whose most of the requests were. */
function said(refusal: Refusal | undefined, names: Names): string {
  const { key = null, model = null } = refusal ?? {};
  const parts = [key === null ? undefined : names.key(key), model === null ? undefined : `with ${model}`];
  return parts.filter((part) => part !== undefined).join(" ") || "many at once";
}
