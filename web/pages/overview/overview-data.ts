// What the overview shows: the usage of a range and of the time before it, asked for again and again.
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import type { ApiFailure } from "../../api/client.ts";
import { useSession } from "../../api/session.tsx";
import {
  bucketStart,
  bucketStarts,
  type Figures,
  loadUsage,
  sumOf,
  type UsageBucket,
  type UsageGroup,
  type UsageRow,
} from "../../api/usage.ts";

export const rangeNames = ["24h", "7d", "30d"] as const;
export type RangeName = (typeof rangeNames)[number];

/** The last bucket is the one that is not over yet. */
export const ranges: Readonly<Record<RangeName, { title: string; bucket: UsageBucket; seconds: number }>> = {
  "24h": { title: "24 hours", bucket: "hour", seconds: 86_400 },
  "7d": { title: "7 days", bucket: "hour", seconds: 7 * 86_400 },
  "30d": { title: "30 days", bucket: "day", seconds: 30 * 86_400 },
};

const bucketSeconds = { hour: 3_600, day: 86_400 } as const;

export interface Overview {
  bucket: UsageBucket;
  times: number[];
  /** When it was asked for, Unix seconds: the last bucket is known so far. */
  now: number;
  /** By bucket. */
  totals: UsageRow[];
  sum: Figures;
  /** Of the time before, as long as this one is by now. */
  before: Figures;
}

function startOf(range: RangeName, now: number): number {
  const { bucket, seconds } = ranges[range];
  const size = bucketSeconds[bucket === "hour" ? "hour" : "day"];
  return bucketStart(bucket, now) + size - seconds;
}

export function useOverview(range: RangeName, everyMs: number | false) {
  const { environment } = useSession();
  return useQuery<Overview, ApiFailure>({
    queryKey: ["/v1/usage", "overview", range, environment],
    async queryFn({ signal }) {
      const now = Math.floor(Date.now() / 1000);
      const { bucket, seconds } = ranges[range];
      const start = startOf(range, now);
      const { rows } = await loadUsage({ start: start - seconds, end: now + 1, bucket, groupBy: [] }, { signal });
      const totals = rows.filter((row) => row.start >= start);
      const before = rows.filter((row) => row.start < start).map((row) => untilAsLate(row, now - seconds));
      return {
        ...{ bucket, now, totals, times: bucketStarts(bucket, start, now + 1) },
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
  return useQuery<UsageRow[], ApiFailure>({
    queryKey: ["/v1/usage", "overview", range, environment, by],
    async queryFn({ signal }) {
      const now = Math.floor(Date.now() / 1000);
      const { bucket } = ranges[range];
      const ask = { start: startOf(range, now), end: now + 1, bucket, groupBy: by ? [by] : [] };
      return (await loadUsage(ask, { signal })).rows;
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
      const now = Math.floor(Date.now() / 1000);
      const ask = { start: now - 365 * 86_400, end: now + 1, bucket: "month", groupBy: [] } as const;
      return sumOf((await loadUsage(ask, { signal })).rows);
    },
    enabled: wanted,
    refetchInterval: everyMs,
  });
}
