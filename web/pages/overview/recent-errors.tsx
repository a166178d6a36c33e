// The latest failed requests, each with a link to its log entry.
import { Group, Stack } from "@mantine/core";
import type { Overview } from "../../api/types.ts";
import { PlainLink } from "../../parts/page/links.tsx";
import { Card } from "../../parts/page/section.tsx";
import { Ago } from "../../parts/words/ago.tsx";
import { ModelName } from "../../parts/words/model-name.tsx";
import { Note, SmallNote } from "../../parts/words/note.tsx";

interface RecentErrorsProps {
  errors: Overview["errors"];
  /** True for the requests of all accounts. */
  isAll: boolean;
  /** Returns the name of a credential by its id. */
  nameOf(id: string): string;
}

export function RecentErrors({ errors, isAll, nameOf }: RecentErrorsProps) {
  const more = <PlainLink href={`/requests?outcome=failed${isAll ? "&of=all" : ""}`}>All in Logs</PlainLink>;
  return (
    <Card title="Recent errors" more={more}>
      {errors.length === 0 && <Note>No recent errors.</Note>}
      <Stack gap="xs">
        {errors.map(({ id, at, model, key, error_code }) => (
          <Group key={id} justify="space-between" gap="xs" wrap="nowrap">
            <div style={{ minWidth: 0 }}>
              <PlainLink href={`/requests/${id}${isAll ? "?of=all" : ""}`} fw={500}>
                {error_code ?? "failed"}
              </PlainLink>
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
    </Card>
  );
}
