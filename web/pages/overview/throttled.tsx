// What was refused for want of room, and why, in words that lead to what to do.
import { Anchor, Group, Paper, Text, Title } from "@mantine/core";
import { Link } from "wouter";
import { refusalWords } from "../../api/refusals.ts";
import type { Overview } from "../../api/types.ts";
import { Ago } from "../../parts/words/ago.tsx";
import { count } from "../../parts/words/figures.ts";
import { Note } from "../../parts/words/note.tsx";
import { State } from "../../parts/words/state.tsx";

type Line = Overview["throttled"][number];

interface ThrottledProps {
  throttled: readonly Line[];
  /** `id`: a credential's. */
  nameOf(id: string): string;
}

const mostLines = 4;

export function Throttled({ throttled, nameOf }: ThrottledProps) {
  return (
    <Paper withBorder p="md" component="section" aria-label="Throttled">
      <Group justify="space-between" mb="xs">
        <Title order={2} fz="md">
          Throttled
        </Title>
        {throttled.length > 0 && (
          <Anchor component={Link} href="/settings/limits" size="sm">
            Limits
          </Anchor>
        )}
      </Group>
      {throttled.length === 0 ? (
        <Note>No limit refused a request in this time.</Note>
      ) : (
        <div className="meanings">
          {throttled.slice(0, mostLines).map((line) => {
            const { reason, requests, last_at } = line;
            const { title, why, todo, place } = refusalWords[reason];
            return (
              <div key={reason}>
                <Group gap="xs">
                  <Text size="sm" fw={600}>
                    {title}
                  </Text>
                  <State kind="warning">{`${count(requests)} refused`}</State>
                </Group>
                <Note>
                  {why} Most of all {said(line, nameOf)}; last <Ago seconds={last_at} />.
                </Note>
                <Text size="sm">
                  {todo}{" "}
                  <Anchor component={Link} href={place.path} size="sm" underline="always">
                    {place.title}
                  </Anchor>
                </Text>
              </div>
            );
          })}
          {throttled.length > mostLines && (
            <Anchor component={Link} href="/settings/limits" size="sm">
              {throttled.length - mostLines} more reasons
            </Anchor>
          )}
        </div>
      )}
    </Paper>
  );
}

/** Whose most of the requests were. */
function said({ key, model }: Line, nameOf: ThrottledProps["nameOf"]): string {
  const parts = [key === null ? undefined : nameOf(key), model === null ? undefined : `with ${model}`];
  return parts.filter((part) => part !== undefined).join(" ") || "many at once";
}
