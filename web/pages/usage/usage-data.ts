// Loads the explorer's data: complete totals by bucket, and as many groups as fit.
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import type { ApiFailure } from "../../api/client.ts";
import { useSliced } from "../../api/queries.ts";
import { nowSeconds } from "../../api/server-time.ts";
import { useSession } from "../../api/session.tsx";
import { bucketStarts, byBucket, loadUsage, type UsageAsk, type UsageRow } from "../../api/usage.ts";

/** Maximum number of rows that a page shows and sorts without delay. */
const maxRows = 10_000;

export interface Explored {
  ask: UsageAsk;
  times: number[];
  totals: UsageRow[];
  /** The rows by bucket and group; the totals if there is no grouping. */
  rows: UsageRow[];
  cut: boolean;
  /** Names of accounts, keys and apps by id; empty unless all accounts are shown. */
  names: Readonly<Record<string, string>>;
  /** The server's time of the query, in Unix seconds. */
  now: number;
}

/** `askAt` is called again as time passes; it must return the same query for the same `text`. */
export function useExplored(text: string, askAt: (nowSeconds: number) => UsageAsk, enabled: boolean) {
  const { environment } = useSession();
  const read = useQuery<Explored, ApiFailure>({
    queryKey: ["/v1/usage", "explorer", environment, text],
    async queryFn({ signal }) {
      const now = Math.floor(nowSeconds());
      const ask = askAt(now);
      const [whole, groups] = await Promise.all([
        loadUsage({ ...ask, groupBy: [] }, { signal }),
        ask.groupBy.length === 0 ? undefined : loadUsage(ask, { signal, atMost: maxRows }),
      ]);
      const totals = byBucket(whole.rows);
      return {
        ...{ ask, now, totals, times: bucketStarts(ask.bucket, ask.start, ask.end) },
        ...{ rows: groups?.rows ?? totals, cut: groups?.cut ?? false, names: groups?.names ?? {} },
      };
    },
    enabled,
    staleTime: 15_000,
    placeholderData: keepPreviousData,
  });
  return useSliced(read);
}
