// The daily usage of a key or an app.
import { Group, Paper, SegmentedControl, SimpleGrid, Skeleton, Stack, Text, Title } from "@mantine/core";
import { useMemo } from "react";
import { useSearchParams } from "wouter";
import { costsNothing, useUnpriced } from "../../api/models.ts";
import { useRead } from "../../api/queries.ts";
import type { UsageReport, UsageRow } from "../../api/types.ts";
import { daySeconds, firstDay } from "../../api/usage.ts";
import { TimeChart } from "../chart/time-chart.tsx";
import { Failure } from "../page/failure.tsx";
import { count, counted, money, short } from "../words/figures.ts";
import { Note } from "../words/note.tsx";

const ranges = ["7", "30", "90"];

interface UsageHistoryProps {
  /** The API path of the usage report. */
  path: string;
  /** A sentence about the requests that count. */
  about?: string;
  /** The owner in words: "this key". */
  of: string;
}

export function UsageHistory({ path, about, of }: UsageHistoryProps) {
  const [parameters, setParameters] = useSearchParams();
  const asked = parameters.get("days") ?? "";
  const range = ranges.includes(asked) ? asked : "30";
  const start = firstDay(Number(range));
  const query = { bucket: "day", start };
  const { data, error, refetch } = useRead<UsageReport>(path, query, { keep: true, everyMs: 60_000 });
  return (
    <section aria-labelledby="usage-history">
      <Group justify="space-between" mb="sm">
        <Title order={2} id="usage-history">
          Usage
        </Title>
        <SegmentedControl
          size="xs"
          aria-label="Days shown"
          value={range}
          onChange={(days) => setParameters({ days }, { replace: true })}
          data={ranges.map((days) => ({ value: days, label: `${days} days` }))}
        />
      </Group>
      {about && <Note mb="sm">{about}</Note>}
      {error && !data && <Failure error={error} retry={refetch} />}
      {!data && !error && <Skeleton height={260} role="status" aria-label="Loading the usage" />}
      {data && <Figures rows={data.data} start={start} days={Number(range)} of={of} />}
    </section>
  );
}

interface FiguresProps extends Pick<UsageHistoryProps, "of"> {
  rows: readonly UsageRow[];
  start: number;
  days: number;
}

function Figures({ rows, start, days, of: what }: FiguresProps) {
  const { times, requests, tokens } = useMemo(() => {
    const times = Array.from({ length: days }, (_day, index) => start + index * daySeconds);
    const byDay = new Map(rows.map((row) => [row.start, row]));
    const of = (value: (row: UsageRow) => number) =>
      times.map((time) => {
        const row = byDay.get(time);
        return row ? value(row) : 0;
      });
    return {
      times,
      requests: [
        { label: "Answered", values: of((row) => row.requests - row.errors) },
        { label: "Failed", values: of((row) => row.errors) },
      ],
      tokens: [
        { label: "Prompt", values: of((row) => row.prompt_tokens) },
        { label: "Answer", values: of((row) => row.completion_tokens) },
      ],
    };
  }, [rows, start, days]);
  const sum = (value: (row: UsageRow) => number) => rows.reduce((all, row) => all + value(row), 0);
  const total = sum((row) => row.requests);
  const all = { cost: sum((row) => row.cost), total_tokens: sum((row) => row.total_tokens) };
  const { isAllThatIsFree } = useUnpriced(costsNothing(all));
  if (total === 0) {
    return (
      <Paper withBorder p="lg">
        <Note>
          No request with {what} in the last {days} days.
        </Note>
      </Paper>
    );
  }
  return (
    <Stack>
      <Text size="sm">
        {requestsText(
          total,
          sum((row) => row.errors),
        )}
        ;{" "}
        {counted(
          sum((row) => row.total_tokens),
          "token",
        )}
        ; {costsNothing(all) && isAllThatIsFree ? "no price set" : money(all.cost)}.
      </Text>
      <SimpleGrid cols={{ base: 1, lg: 2 }}>
        <TimeChart
          title="Requests per day"
          times={times}
          bucket="day"
          series={requests}
          kind="stack"
          whole
          format={short}
        />
        <TimeChart
          title="Tokens per day"
          times={times}
          bucket="day"
          series={tokens}
          kind="stack"
          whole
          format={short}
        />
      </SimpleGrid>
    </Stack>
  );
}

function requestsText(all: number, failed: number): string {
  const requests = counted(all, "request");
  if (failed === 0) return `${requests}, none failed`;
  if (failed === all) return all === 1 ? `${requests}, failed` : `${requests}, all failed`;
  return `${requests}, ${count(failed)} failed`;
}
