// Loads all data of the overview in one polled answer.
import { useQuery } from "@tanstack/react-query";
import type { ApiFailure } from "../../api/client.ts";
import { usePolled } from "../../api/queries.ts";
import { nowSeconds } from "../../api/server-time.ts";
import { useSession } from "../../api/session.tsx";
import type { Overview, OverviewOfAllAccounts } from "../../api/types.ts";
import { type Figures, loadUsage, sumOf } from "../../api/usage.ts";
import type { ChartBucket } from "../../parts/chart/time-chart.tsx";

export const rangeNames = ["24h", "7d", "30d"] as const;
export type RangeName = (typeof rangeNames)[number];

interface Range {
  title: string;
  /** The length of one bucket of the charts. */
  bucket: ChartBucket;
}

export const ranges: Readonly<Record<RangeName, Range>> = {
  "24h": { title: "24 hours", bucket: "hour" },
  "7d": { title: "7 days", bucket: 21_600 },
  "30d": { title: "30 days", bucket: "day" },
};

export const groups = ["model", "key", "app"] as const;
/** The groups of operators over all accounts. */
export const groupsOfAll = ["account", "model", "upstream", "deployment", "outcome"] as const;
export type GroupName = (typeof groups)[number] | (typeof groupsOfAll)[number];

/** The overview of an account, or of all accounts, which has no limits of its own. */
export type AnyOverview = OverviewOfAllAccounts & Partial<Pick<Overview, "account">>;

export function useOverview(isAll: boolean, range: RangeName, by: GroupName | undefined, everyMs: number | undefined) {
  const path = isAll ? "/v1/admin/overview" : "/v1/overview";
  return usePolled<AnyOverview>(path, { range, group_by: by }, everyMs);
}

/** Loads the account's usage of the last year in this environment; all figures are 0 before the first request. */
export function useEverUsed(everyMs: number) {
  const { environment } = useSession();
  return useQuery<Figures, ApiFailure>({
    queryKey: ["/v1/usage", "ever", environment],
    async queryFn({ signal }) {
      const now = Math.floor(nowSeconds());
      const ask = { start: now - 365 * 86_400, end: now + 1, bucket: "month", groupBy: [] } as const;
      return sumOf((await loadUsage(ask, { signal })).rows);
    },
    refetchInterval: everyMs,
  });
}
