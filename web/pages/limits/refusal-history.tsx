// The requests that limits refused in the last days: by hour as a chart, and by reason with advice.
import { Alert, Paper, Stack, Table, Title } from "@mantine/core";
import { useMemo } from "react";
import type { ApiFailure } from "../../api/client.ts";
import type { Names } from "../../api/names.ts";
import {
  maxRefusals,
  type RefusalsOfReason,
  refusalReasons,
  refusalsByReason,
  refusalWords,
  refusedIn,
} from "../../api/refusals.ts";
import { nowSeconds } from "../../api/server-time.ts";
import type { Refusal } from "../../api/types.ts";
import { bucketStarts } from "../../api/usage.ts";
import { type Series, TimeChart } from "../../parts/chart/time-chart.tsx";
import { Failure } from "../../parts/page/failure.tsx";
import { RefusedFor } from "../../parts/usage/refused-for.tsx";
import { Ago } from "../../parts/words/ago.tsx";
import { count, short } from "../../parts/words/figures.ts";
import { SmallNote } from "../../parts/words/note.tsx";

interface RefusalHistoryProps {
  refusals: readonly Refusal[] | undefined;
  error: ApiFailure | null;
  names: Names;
  days: number;
}

/** Maximum number of lines for one reason. The keys and models with the most refused requests come first. */
const maxLines = 4;

export function RefusalHistory({ refusals = [], error, names, days }: RefusalHistoryProps) {
  const { times, series, now } = useMemo(() => chartOf(refusals, days), [refusals, days]);
  const reasons = useMemo(() => refusalsByReason(refusals), [refusals]);
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
        aside={count(refusedIn(refusals))}
        empty="No limit refused a request in this time."
      />
      {refusals.length >= maxRefusals && (
        <Alert color="yellow" title="Only the latest are shown">
          The server returned only the newest {count(maxRefusals)} entries, so the oldest days are incomplete.
        </Alert>
      )}
      {reasons.length > 0 && (
        <Paper withBorder p="md" component="section" aria-label="Refused requests by reason">
          <Title order={2} fz="md" mb="sm">
            Refused requests by reason
          </Title>
          <div className="meanings">
            {reasons.map((reason) => (
              <Reason key={reason.reason} {...reason} names={names} />
            ))}
          </div>
        </Paper>
      )}
    </Stack>
  );
}

function chartOf(refusals: readonly Refusal[], days: number) {
  const now = Math.floor(nowSeconds());
  const times = bucketStarts("hour", now - days * 86_400 + 3_600, now + 1);
  const indexes = new Map(times.map((time, index) => [time, index]));
  const series: Series[] = [];
  for (const [color, reason] of refusalReasons.entries()) {
    const values = times.map(() => 0);
    let total = 0;
    for (const refusal of refusals) {
      const at = indexes.get(refusal.start);
      if (refusal.reason !== reason || at === undefined) continue;
      values[at] = (values[at] ?? 0) + refusal.requests;
      total += refusal.requests;
    }
    // Each reason has a fixed color, whichever other reasons are shown.
    if (total > 0) series.push({ label: refusalWords[reason].title, values, color });
  }
  return { times, series, now };
}

function Reason({ reason, requests, lastAt, lines, names }: RefusalsOfReason & { names: Names }) {
  const { title } = refusalWords[reason];
  return (
    <section aria-label={title}>
      <RefusedFor reason={reason} requests={requests} here="/settings/limits">
        Last <Ago seconds={lastAt} />.
      </RefusedFor>
      <Table verticalSpacing={4} fz="xs" mt={6} aria-label={`${title}: by key and model`}>
        <Table.Tbody>
          {lines.slice(0, maxLines).map(({ id, first, requests: part }) => (
            <Table.Tr key={id}>
              <Table.Td pl={0}>{first.key === null ? "many keys at once" : names.key(first.key)}</Table.Td>
              <Table.Td>{first.model ?? "several models"}</Table.Td>
              <Table.Td ta="right" pr={0} className="numeric">
                {count(part)}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      {lines.length > maxLines && <SmallNote>and {count(lines.length - maxLines)} more</SmallNote>}
    </section>
  );
}
