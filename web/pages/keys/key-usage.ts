// What all keys were used for in the last days, in as few requests as that takes.
import { useQuery } from "@tanstack/react-query";
import { type ApiFailure, call } from "../../api/client.ts";
import type { UsageReport } from "../../api/types.ts";
import { daySeconds, firstDay } from "../../api/usage.ts";

export const usageDays = 14;
const rowsAPage = 1_000;
const mostPages = 10;

/** Requests a day, the oldest first, by key. */
export type UsageByKey = ReadonlyMap<string, readonly number[]>;

/** `null`: more than can be asked for at once. */
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
  let cursor: string | null = null;
  for (let page = 0; page < mostPages; page++) {
    const answer: UsageReport = await call<UsageReport>("GET", "/v1/usage", { query: { ...query, cursor }, signal });
    for (const row of answer.data) {
      const days = byKey.get(row.key ?? "") ?? new Array<number>(usageDays).fill(0);
      const day = Math.floor((row.start - start) / daySeconds);
      if (day >= 0 && day < usageDays) days[day] = (days[day] ?? 0) + row.requests;
      byKey.set(row.key ?? "", days);
    }
    if (answer.next === null) return byKey;
    cursor = answer.next;
  }
  return null;
}
