// Loads the recent usage of all keys in as few requests as possible.
import { useQuery } from "@tanstack/react-query";
import type { ApiFailure } from "../../api/client.ts";
import { pagesOf } from "../../api/queries.ts";
import { nowSeconds } from "../../api/server-time.ts";
import type { UsageRow } from "../../api/types.ts";
import { bucketStart, daySeconds, firstDay, loadUsage } from "../../api/usage.ts";

export const usageDays = 14;
const rowsAPage = 1_000;

/** The requests per day by key, oldest day first. */
export type UsageByKey = ReadonlyMap<string, readonly number[]>;

/** Loads the requests per day of all keys; `null` if the report has more than ten pages. */
export function useUsageByKey() {
  return useQuery<UsageByKey | null, ApiFailure>({
    queryKey: ["/v1/usage", "of all keys"],
    queryFn: ({ signal }) => readUsage(firstDay(usageDays), signal),
    staleTime: 60_000,
  });
}

async function readUsage(start: number, signal: AbortSignal): Promise<UsageByKey | null> {
  const byKey = new Map<string, number[]>();
  const query = { group_by: "key", bucket: "day", start, limit: rowsAPage };
  for await (const { data, isLast } of pagesOf<UsageRow>("/v1/usage", query, signal)) {
    for (const row of data) {
      const days = byKey.get(row.key ?? "") ?? new Array<number>(usageDays).fill(0);
      const day = Math.floor((row.start - start) / daySeconds);
      if (day >= 0 && day < usageDays) days[day] = (days[day] ?? 0) + row.requests;
      byKey.set(row.key ?? "", days);
    }
    if (isLast) return byKey;
  }
  return null;
}

/** Maximum number of keys whose spend is loaded. */
const maxSpenders = 10_000;

/** The spend in USD of each key that was used this month, in UTC. */
export type SpendByKey = ReadonlyMap<string, number>;

export function useSpendByKey() {
  return useQuery<SpendByKey, ApiFailure>({
    queryKey: ["/v1/usage", "spend of all keys"],
    async queryFn({ signal }) {
      const now = Math.floor(nowSeconds());
      const month = { start: bucketStart("month", now), end: now + 1, bucket: "month", groupBy: ["key"] } as const;
      const { rows } = await loadUsage(month, { signal, atMost: maxSpenders });
      return new Map(rows.map(({ key, cost }) => [key ?? "", cost]));
    },
    staleTime: 60_000,
  });
}
