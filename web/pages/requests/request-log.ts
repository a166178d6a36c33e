// The request log: pages of older requests, preceded by requests that ended since the page was opened.
import { useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useMemo, useReducer } from "react";
import { type ApiFailure, call, type Query } from "../../api/client.ts";
import type { AllRequestList, Request, RequestList, RequestOfAnyAccount } from "../../api/types.ts";
import { type Patience, usePatience } from "../../parts/page/patience.ts";
import type { Newer, Rows } from "../../parts/table/long-table.tsx";

export type LoggedRequest = Request & Partial<Pick<RequestOfAnyAccount, "account">>;
type LogPage = Omit<RequestList, "data"> & Partial<Pick<AllRequestList, "names">> & { data: LoggedRequest[] };

/** Returns the API path of the requests of all accounts, or of the session's account. */
export function pathOfRequests(isAll: boolean): string {
  return isAll ? "/v1/admin/requests" : "/v1/requests";
}

const everyMs = 5_000;
/** The first page is small, so that it arrives soon; the others load while the user scrolls. */
const firstRows = 60;
const pageRows = 200;
const newestRows = 50;
/** With more new requests than this the list is loaded anew, so that a page left open for days stays bounded. */
const maxArrived = 5_000;

export interface RequestLog extends Rows<LoggedRequest>, Patience {
  /** Names of accounts, credentials and apps by id; empty unless all accounts are shown. */
  names: Readonly<Record<string, string>>;
  newer: Newer;
  /** The time back to which the server has searched, in Unix seconds; null means to the beginning. */
  searchedTo: number | null;
  /** The failure of the last poll for new requests. */
  liveError: ApiFailure | null;
}

/** `path` and `filter` must not change while the component is mounted. */
export function useRequestLog(path: string, filter: Query, isLive: boolean): RequestLog {
  const client = useQueryClient();
  const backKey = [path, filter, "back"];
  const back = useInfiniteQuery({
    queryKey: backKey,
    queryFn: ({ pageParam: cursor, signal }) =>
      call<LogPage>("GET", path, {
        query: { ...filter, cursor, limit: cursor === null ? firstRows : pageRows },
        signal,
      }),
    initialPageParam: null as string | null,
    getNextPageParam: ({ next }) => next,
    // Ended requests never change, so no page is refetched; a separate poll looks for new ones.
    ...{ staleTime: Number.POSITIVE_INFINITY, gcTime: 0, refetchOnWindowFocus: false, refetchOnReconnect: false },
  });
  const newest = useQuery<LogPage, ApiFailure>({
    queryKey: [path, filter, "newest"],
    queryFn: ({ signal }) => call("GET", path, { query: { ...filter, limit: newestRows }, signal }),
    enabled: isLive && back.isSuccess,
    ...{ refetchInterval: everyMs, staleTime: 0, gcTime: 0 },
  });
  const { items, known } = useMemo(() => unique(back.data?.pages ?? []), [back.data]);
  const names = useMemo(
    () => Object.assign({}, ...(back.data?.pages ?? []).map((page) => page.names), newest.data?.names),
    [back.data, newest.data],
  );
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
    names,
    searchedTo: back.data?.pages.at(-1)?.searched_to ?? null,
    ...{ isPaused, goOn },
    liveError: newest.error,
  };
}

interface Arrived {
  shown: readonly LoggedRequest[];
  waiting: readonly LoggedRequest[];
  /** True if more requests ended than one poll returns, so that some are missing. */
  hasGap: boolean;
}

type Change = { page: LogPage; known: ReadonlySet<string> } | "show" | "anew";

const nothingArrived: Arrived = { shown: [], waiting: [], hasGap: false };

function change(before: Arrived, action: Change): Arrived {
  if (action === "anew") return nothingArrived;
  const { shown, waiting, hasGap } = before;
  if (action === "show") return { shown: [...waiting, ...shown].sort(newestFirst), waiting: [], hasGap };
  const { page, known } = action;
  const here = new Set([...shown, ...waiting].map(({ id }) => id));
  const isKnown = ({ id }: LoggedRequest) => known.has(id) || here.has(id);
  const fresh = page.data.filter((request) => !isKnown(request));
  if (fresh.length === 0) return before;
  const isGap = page.next !== null && fresh.length === page.data.length && known.size + here.size > 0;
  return { shown, waiting: [...fresh, ...waiting].slice(0, maxArrived), hasGap: hasGap || isGap };
}

/** Compares two requests in the server's order. */
function newestFirst(a: Request, b: Request): number {
  return b.at - a.at || (a.id < b.id ? 1 : -1);
}

function unique(pages: readonly LogPage[]) {
  const byId = new Map(pages.flatMap(({ data }) => data).map((request) => [request.id, request]));
  return { items: [...byId.values()], known: new Set(byId.keys()) };
}

/** Merges both lists without duplicates: a request that ended while the pages were loading may be in both. */
function merged(shown: readonly LoggedRequest[], items: LoggedRequest[], known: ReadonlySet<string>): LoggedRequest[] {
  const before = shown.filter(({ id }) => !known.has(id));
  return before.length === 0 ? items : [...before, ...items].sort(newestFirst);
}
