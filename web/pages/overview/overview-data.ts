// What the overview shows: the usage of a range and of the time before it, asked for again and again.

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import type { ApiFailure } from "../../api/client.ts";
import { nowSeconds } from "../../api/server-time.ts";
import { useSession } from "../../api/session.tsx";
import { type Figures, loadUsage, sumOf, type UsageBucket, type UsageGroup, type UsageRow } from "../../api/usage.ts";
import type { ChartBucket } from "../../parts/time-chart.tsx";

export const rangeNames = ["24h", "7d", "30d"] as const;
export type RangeName = (typeof rangeNames)[number];

/** The last bucket is the one that is not over yet. */
export const ranges: Readonly<Record<RangeName, Range>> = {
  "24h": { title: "24 hours", bucket: "hour", shown: "hour", step: 3_600, seconds: 86_400 },
  "7d": { title: "7 days", bucket: "hour", shown: 21_600, step: 21_600, seconds: 7 * 86_400 },
  "30d": { title: "30 days", bucket: "day", shown: "day", step: 86_400, seconds: 30 * 86_400 },
};

interface Range {
  title: string;
  /** As the server counts. */
  bucket: UsageBucket;
  /** As it is shown: several together where single hours would be a thicket. */
  shown: ChartBucket;
  /** Seconds of one that is shown. */
  step: number;
  seconds: number;
}

export interface Overview {
  bucket: ChartBucket;
  times: number[];
  /** When it was asked for, Unix seconds: the last bucket is known so far. */
  now: number;
  /** By bucket. */
  totals: readonly UsageRow[];
  sum: Figures;
  /** Of the time before, as long as this one is by now. */
  before: Figures;
}

function startOf({ step, seconds }: Range, now: number): number {
  return now - (now % step) + step - seconds;
}

/** Rows of the steps that are shown. */
function together(rows: readonly UsageRow[], { shown, step }: Range, by: UsageGroup | undefined): readonly UsageRow[] {
  if (typeof shown !== "number") return rows;
  const startOfRow = ({ start }: UsageRow) => start - (start % step);
  const groups = Map.groupBy(rows, (row) => `${startOfRow(row)} ${by ? row[by] : ""}`);
  return [...groups.values()].flatMap((same) => {
    const [row] = same;
    return row ? [{ ...row, ...sumOf(same), start: startOfRow(row), end: startOfRow(row) + step }] : [];
  });
}

export function useOverview(range: RangeName, everyMs: number | false) {
  const { environment } = useSession();
  return useQuery<Overview, ApiFailure>({
    queryKey: ["/v1/usage", "overview", range, environment],
    async queryFn({ signal }) {
      const now = Math.floor(nowSeconds());
      const { bucket, shown, step, seconds } = ranges[range];
      const start = startOf(ranges[range], now);
      const { rows } = await loadUsage({ start: start - seconds, end: now + 1, bucket, groupBy: [] }, { signal });
      const totals = together(
        rows.filter((row) => row.start >= start),
        ranges[range],
        undefined,
      );
      const before = rows.filter((row) => row.start < start).map((row) => untilAsLate(row, now - seconds));
      return {
        ...{ bucket: shown, now, totals, times: Array.from({ length: seconds / step }, (_, at) => start + at * step) },
        ...{ sum: sumOf(totals), before: sumOf(before) },
      };
    },
    refetchInterval: everyMs,
    placeholderData: keepPreviousData,
  });
}

/** The time before ended within a bucket, as this one does: that part of it is taken. */
function untilAsLate(row: UsageRow, end: number): UsageRow {
  const part = Math.min(1, Math.max(0, (end - row.start) / (row.end - row.start)));
  if (part === 1) return row;
  const scaled = { ...row };
  for (const name of ["requests", "prompt_tokens", "completion_tokens", "total_tokens", "cost", "errors"] as const)
    scaled[name] = row[name] * part;
  return scaled;
}

export function useOverviewGroups(range: RangeName, by: UsageGroup | undefined, everyMs: number | false) {
  const { environment } = useSession();
  return useQuery<readonly UsageRow[], ApiFailure>({
    queryKey: ["/v1/usage", "overview", range, environment, by],
    async queryFn({ signal }) {
      const now = Math.floor(nowSeconds());
      const { bucket } = ranges[range];
      const ask = { start: startOf(ranges[range], now), end: now + 1, bucket, groupBy: by ? [by] : [] };
      return together((await loadUsage(ask, { signal })).rows, ranges[range], by);
    },
    enabled: by !== undefined,
    // Many rows take the server a while: it is asked for them less often.
    refetchInterval: ({ state }) => (everyMs && (state.data?.length ?? 0) > 2_000 ? 6 * everyMs : everyMs),
  });
}

/** Whether the account has ever made a request, here; asked only where it made none lately. */
export function useEverUsed(wanted: boolean, everyMs: number | false) {
  const { environment } = useSession();
  return useQuery<Figures, ApiFailure>({
    queryKey: ["/v1/usage", "ever", environment],
    async queryFn({ signal }) {
      const now = Math.floor(nowSeconds());
      const ask = { start: now - 365 * 86_400, end: now + 1, bucket: "month", groupBy: [] } as const;
      return sumOf((await loadUsage(ask, { signal })).rows);
    },
    enabled: wanted,
    refetchInterval: everyMs,
  });
}
