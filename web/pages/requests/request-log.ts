// The list of requests: pages that go back in time, and in front of them what has ended since.
import { useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useMemo, useReducer } from "react";
import { type ApiFailure, call, type Query } from "../../api/client.ts";
import type { Request, RequestList } from "../../api/types.ts";
import { type Patience, usePatience } from "../../parts/page/patience.ts";
import type { Newer, Rows } from "../../parts/table/long-table.tsx";

const path = "/v1/requests";
const everyMs = 5_000;
/** The first page is there soon, the others are loaded while one scrolls. */
const firstRows = 60;
const pageRows = 200;
const newestRows = 50;
/** Beyond it the list begins anew, as a page that is left open for days must not grow for ever. */
const maxArrived = 5_000;

export interface RequestLog extends Rows<Request>, Patience {
  newer: Newer;
  /** Unix seconds; null: to the very beginning. */
  searchedTo: number | null;
  /** The failure of the last look for newer ones. */
  liveError: ApiFailure | null;
}

/** `filter` stays the same for as long as this is mounted. */
export function useRequestLog(filter: Query, isLive: boolean): RequestLog {
  const client = useQueryClient();
  const backKey = [path, filter, "back"];
  const back = useInfiniteQuery({
    queryKey: backKey,
    queryFn: ({ pageParam: cursor, signal }) =>
      call<RequestList>("GET", path, {
        query: { ...filter, cursor, limit: cursor === null ? firstRows : pageRows },
        signal,
      }),
    initialPageParam: null as string | null,
    getNextPageParam: ({ next }) => next,
    // What has ended does not change: newer ones are looked for by themselves.
    ...{ staleTime: Number.POSITIVE_INFINITY, gcTime: 0, refetchOnWindowFocus: false, refetchOnReconnect: false },
  });
  const newest = useQuery<RequestList, ApiFailure>({
    queryKey: [path, filter, "newest"],
    queryFn: ({ signal }) => call("GET", path, { query: { ...filter, limit: newestRows }, signal }),
    enabled: isLive && back.isSuccess,
    ...{ refetchInterval: everyMs, staleTime: 0, gcTime: 0 },
  });
  const { items, known } = useMemo(() => unique(back.data?.pages ?? []), [back.data]);
  const [arrived, dispatch] = useReducer(change, nothingArrived);
  useEffect(() => {
    if (newest.data) dispatch({ page: newest.data, known });
  }, [newest.data, known]);
  const anew = () => {
    dispatch("anew");
    void client.resetQueries({ queryKey: backKey, exact: true });
  };
  const { shown, waiting, hasGap } = arrived;
  const { isPaused, goOn } = usePatience(back.data?.pages, back.hasNextPage);
  return {
    items: useMemo(() => merged(shown, items, known), [shown, items, known]),
    error: back.error as ApiFailure | null,
    isPending: back.isPending,
    hasNextPage: back.hasNextPage && !isPaused,
    ...{ isFetchingNextPage: back.isFetchingNextPage, fetchNextPage: back.fetchNextPage, refetch: back.refetch },
    newer: {
      count: waiting.length,
      show: () => (hasGap || shown.length > maxArrived ? anew() : dispatch("show")),
    },
    searchedTo: back.data?.pages.at(-1)?.searched_to ?? null,
    ...{ isPaused, goOn },
    liveError: newest.error,
  };
}

interface Arrived {
  shown: readonly Request[];
  waiting: readonly Request[];
  /** So many ended that some are neither here nor in the pages. */
  hasGap: boolean;
}

type Change = { page: RequestList; known: ReadonlySet<string> } | "show" | "anew";

const nothingArrived: Arrived = { shown: [], waiting: [], hasGap: false };

function change(before: Arrived, action: Change): Arrived {
  if (action === "anew") return nothingArrived;
  const { shown, waiting, hasGap } = before;
  if (action === "show") return { shown: [...waiting, ...shown].sort(newestFirst), waiting: [], hasGap };
  const { page, known } = action;
  const here = new Set([...shown, ...waiting].map(({ id }) => id));
  const isKnown = ({ id }: Request) => known.has(id) || here.has(id);
  const fresh = page.data.filter((request) => !isKnown(request));
  if (fresh.length === 0) return before;
  const isGap = page.next !== null && fresh.length === page.data.length && known.size + here.size > 0;
  return { shown, waiting: [...fresh, ...waiting].slice(0, maxArrived), hasGap: hasGap || isGap };
}

/** The order of the server. */
function newestFirst(a: Request, b: Request): number {
  return b.at - a.at || (a.id < b.id ? 1 : -1);
}

function unique(pages: readonly RequestList[]) {
  const byId = new Map(pages.flatMap(({ data }) => data).map((request) => [request.id, request]));
  return { items: [...byId.values()], known: new Set(byId.keys()) };
}

/** One that ended while the pages were read may be in both. */
function merged(shown: readonly Request[], items: Request[], known: ReadonlySet<string>): Request[] {
  const before = shown.filter(({ id }) => !known.has(id));
  return before.length === 0 ? items : [...before, ...items].sort(newestFirst);
}
