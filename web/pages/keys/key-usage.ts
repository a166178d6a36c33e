// Loads the recent usage of all keys in as few requests as possible.
import { useQuery } from "@tanstack/react-query";
import type { ApiFailure } from "../../api/client.ts";
import { pagesOf } from "../../api/queries.ts";
import type { UsageRow } from "../../api/types.ts";
import { daySeconds, firstDay } from "../../api/usage.ts";

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
