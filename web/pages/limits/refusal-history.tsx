// What limits refused in the last days: by hour as a chart, and by reason with what to do about it.
import { Alert, Anchor, Paper, Stack, Table, Text, Title } from "@mantine/core";
import { useMemo } from "react";
import { Link } from "wouter";
import type { ApiFailure } from "../../api/client.ts";
import type { Names } from "../../api/names.ts";
import { mostRefusals, type Refusal, refusalReasons, refusalWords } from "../../api/refusals.ts";
import { bucketStarts } from "../../api/usage.ts";
import { Ago } from "../../parts/ago.tsx";
import { Failure } from "../../parts/failure.tsx";
import { count, short } from "../../parts/figures.ts";
import { type Series, TimeChart } from "../../parts/time-chart.tsx";

interface RefusalHistoryProps {
  refusals: readonly Refusal[] | undefined;
  error: ApiFailure | null;
  names: Names;
  days: number;
}

/** Where many keys meet many limits, those that did it most. */
const mostLines = 12;

export function RefusalHistory({ refusals = [], error, names, days }: RefusalHistoryProps) {
  const { times, series, now } = useMemo(() => chartOf(refusals, days), [refusals, days]);
  const lines = useMemo(() => linesOf(refusals), [refusals]);
  if (error && refusals.length === 0) return <Failure error={error} />;
  return (
    <Stack gap="sm">
      <TimeChart
        title={`Refused in the last ${days} days`}
        {...{ times, series }}
        bucket="hour"
        kind="stack"
        whole
        format={short}
        until={now}
        height={180}
        aside={count(refusals.reduce((sum, { requests }) => sum + requests, 0))}
        empty="No limit refused a request in this time."
      />
      {refusals.length >= mostRefusals && (
        <Alert color="orange" title="Only the latest are shown">
          There were so many that the server told of the newest {count(mostRefusals)} lines alone: the oldest days are
          not whole.
        </Alert>
      )}
      {lines.length > 0 && (
        <Paper withBorder p="md" component="section" aria-label="What was refused and why">
          <Title order={2} fz="md" mb="xs">
            What was refused and why
          </Title>
          <Table.ScrollContainer minWidth={560} type="native">
            <Table verticalSpacing="xs">
              <Table.Thead>
                <Table.Tr>
                  <Table.Th>Limit</Table.Th>
                  <Table.Th>Key</Table.Th>
                  <Table.Th>Model</Table.Th>
                  <Table.Th ta="right">Refused</Table.Th>
                  <Table.Th ta="right">Last</Table.Th>
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {lines.slice(0, mostLines).map(({ id, first, requests, lastAt }) => {
                  const { title, todo, place } = refusalWords[first.reason];
                  return (
                    <Table.Tr key={id}>
                      <Table.Td miw={240}>
                        <Text size="sm" fw={500}>
                          {title}
                        </Text>
                        <Text size="xs" c="dimmed">
                          {todo}{" "}
                          {place.path !== "/settings/limits" && (
                            <Anchor component={Link} href={place.path} inherit>
                              {place.title}
                            </Anchor>
                          )}
                        </Text>
                      </Table.Td>
                      <Table.Td>{first.key === null ? "many at once" : names.key(first.key)}</Table.Td>
                      <Table.Td>{first.model ?? "several"}</Table.Td>
                      <Table.Td ta="right" className="numeric">
                        {count(requests)}
                      </Table.Td>
                      <Table.Td ta="right" className="numeric">
                        <Ago seconds={lastAt} />
                      </Table.Td>
                    </Table.Tr>
                  );
                })}
              </Table.Tbody>
            </Table>
          </Table.ScrollContainer>
          {lines.length > mostLines && (
            <Text size="xs" c="dimmed" mt="xs">
              And {count(lines.length - mostLines)} more lines with fewer requests.
            </Text>
          )}
        </Paper>
      )}
    </Stack>
  );
}

function chartOf(refusals: readonly Refusal[], days: number) {
  const now = Math.floor(Date.now() / 1000);
  const times = bucketStarts("hour", now - days * 86_400 + 3_600, now + 1);
  const place = new Map(times.map((time, index) => [time, index]));
  const series: Series[] = [];
  for (const [color, reason] of refusalReasons.entries()) {
    const values = times.map(() => 0);
    let total = 0;
    for (const refusal of refusals) {
      const at = place.get(refusal.start);
      if (refusal.reason !== reason || at === undefined) continue;
      values[at] = (values[at] ?? 0) + refusal.requests;
      total += refusal.requests;
    }
    // A reason has its colour whatever the others are.
    if (total > 0) series.push({ label: refusalWords[reason].title, values, color });
  }
  return { times, series, now };
}

function linesOf(refusals: readonly Refusal[]) {
  return [...Map.groupBy(refusals, ({ reason, key, model }) => `${reason} ${key} ${model}`)]
    .flatMap(([id, same]) => {
      const [first] = same;
      if (!first) return [];
      const requests = same.reduce((sum, one) => sum + one.requests, 0);
      return [{ id, first, requests, lastAt: Math.max(...same.map(({ last_at }) => last_at)) }];
    })
    .sort((a, b) => b.requests - a.requests);
}
