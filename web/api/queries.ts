// Hooks by which pages load data: cached, shared between the parts of a page, polled while it is visible, and paged.
import {
  keepPreviousData,
  QueryClient,
  useInfiniteQuery,
  useMutation,
  useQuery,
  useQueryClient,
} from "@tanstack/react-query";
import { useDeferredValue, useMemo } from "react";
import { ApiFailure, call, callAgain, type Query, type Tagged } from "./client.ts";

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      // Queries run even if the browser reports itself offline. A server on the same machine needs no network, and an
      // error is better than a page that waits forever.
      networkMode: "always",
      refetchOnReconnect: true,
      staleTime: 5_000,
      gcTime: 60_000,
      retry: (count, error) => count < 2 && error instanceof ApiFailure && (error.status === 0 || error.status >= 502),
    },
    // A change is never queued until the network is back. The request and its answer, such as a password or a new key,
    // are forgotten when their dialog closes.
    mutations: { networkMode: "always", gcTime: 0 },
  },
});

interface ReadOptions {
  /** The polling interval in milliseconds; a hidden page does not poll. */
  everyMs?: number;
  /** False as long as the query must not run; true by default. */
  enabled?: boolean;
  /** If true, the previous query's answer stays on screen while the next query loads. */
  keep?: boolean;
}

/** Reads one path by GET. The query key begins with the path, so that a change can invalidate it. */
export function useRead<Answer>(path: string, query: Query = {}, { everyMs, enabled = true, keep }: ReadOptions = {}) {
  return useSliced(
    useQuery<Answer, ApiFailure>({
      queryKey: [path, query],
      queryFn: ({ signal }) => call<Answer>("GET", path, { query, signal }),
      enabled,
      ...(everyMs === undefined ? {} : { refetchInterval: everyMs }),
      ...(keep ? { placeholderData: keepPreviousData } : {}),
    }),
  );
}

/** Polls one path by GET. If the server answers 304, nothing is parsed or rendered. */
export function usePolled<Answer>(path: string, query: Query, everyMs: number | undefined) {
  return useSliced(
    useQuery<Tagged<Answer>, ApiFailure, Answer>({
      queryKey: [path, query],
      queryFn: ({ client, queryKey, signal }) =>
        callAgain<Answer>(path, client.getQueryData<Tagged<Answer>>(queryKey), { query, signal }),
      select: ({ answer }) => answer,
      placeholderData: keepPreviousData,
      ...(everyMs === undefined ? {} : { refetchInterval: everyMs }),
    }),
  );
}

/**
 * Defers new data, so that React renders it in slices. Otherwise the query library would force one synchronous render,
 * which blocks the page for a long list.
 */
export function useSliced<Read extends { data: unknown; isPending: boolean; error: unknown }>(read: Read): Read {
  const data = useDeferredValue(read.data);
  const isPending = useDeferredValue(read.isPending);
  const error = useDeferredValue(read.error);
  return { ...read, data, isPending, error };
}

/** One page of a list. The next page is requested by `after` with this `last_id`, or by `cursor` with this `next`. */
interface ListPage<Item> {
  data: Item[];
  has_more?: boolean;
  last_id?: string | null;
  next?: string | null;
}

/** Yields at most `most` pages of a list, one after the other. */
export async function* pagesOf<Item>(path: string, query: Query, signal: AbortSignal, most = 10) {
  let next: Query | undefined = {};
  for (let count = 0; next && count < most; count++) {
    const page: ListPage<Item> = await call("GET", path, { query: { ...query, ...next }, signal });
    next = nextOf(page);
    yield { data: page.data, isLast: next === undefined };
  }
}

function nextOf(page: ListPage<unknown>): Query | undefined {
  if (page.next) return { cursor: page.next };
  return page.has_more && page.last_id ? { after: page.last_id } : undefined;
}

/** A list that loads further pages on scrolling; `items` holds the items of all loaded pages. */
export function useList<Item>(path: string, query: Query = {}, { everyMs, enabled = true }: ReadOptions = {}) {
  const result = useInfiniteQuery({
    queryKey: [path, query, "list"],
    queryFn: ({ pageParam, signal }) =>
      call<ListPage<Item>>("GET", path, { query: { ...query, ...pageParam }, signal }),
    initialPageParam: {} as Query,
    getNextPageParam: nextOf,
    enabled,
    // A refetch repeats all loaded pages one by one, so a list of more than five pages is not refetched on focus.
    refetchOnWindowFocus: isShort,
    refetchOnMount: (query: ListQuery) => query.state.isInvalidated || isShort(query),
    ...(everyMs === undefined ? {} : { refetchInterval: (query: ListQuery) => isShort(query) && everyMs }),
  });
  const error = result.error as ApiFailure | null;
  const pages = result.data?.pages;
  // The array keeps its identity until data arrives, so that rows are not rendered again.
  const items = useMemo(() => pages?.flatMap((page) => page.data) ?? [], [pages]);
  return { ...result, error, items };
}

interface ListQuery {
  state: { data: { pages: readonly unknown[] } | undefined; isInvalidated: boolean };
}

function isShort({ state }: ListQuery): boolean {
  return (state.data?.pages.length ?? 0) <= 5;
}

export type Listing<Item> = ReturnType<typeof useList<Item>>;

/**
 * Maximum milliseconds that a dialog waits for the refetch after a change, so that it closes over an up-to-date list.
 */
const maxWaitMs = 1_500;

export interface ChangeOptions<Given, Answer> {
  /** The paths whose queries are loaded again after the change. */
  stale?: readonly string[];
  /** The path of a deleted item. Queries at or below this path may still be on screen, but are not repeated. */
  gone?: string;
  done?: (answer: Answer, given: Given) => void;
  /** Navigates away or closes the view; not called if the user has navigated elsewhere meanwhile. */
  leave?: (answer: Answer) => void;
}

/** A request that changes something on the server. */
export function useChange<Given, Answer = unknown>(
  change: (given: Given) => Promise<Answer>,
  { stale = [], gone, done, leave }: ChangeOptions<Given, Answer> = {},
) {
  const client = useQueryClient();
  return useMutation<Answer, ApiFailure, Given, string>({
    mutationFn: change,
    onMutate: addressNow,
    async onSuccess(answer, given, askedAt) {
      const isGone = (key: string) => gone !== undefined && `${key}/`.startsWith(`${gone}/`);
      const isStale = (key: unknown) =>
        typeof key === "string" && stale.some((path) => key.startsWith(path)) && !isGone(key);
      const shown = client.invalidateQueries({ predicate: ({ queryKey }) => isStale(queryKey[0]) });
      // The answer may hold a secret that is shown once, so it does not wait for a refetch from an unreachable server.
      await Promise.race([shown, new Promise((resolve) => setTimeout(resolve, maxWaitMs))]);
      done?.(answer, given);
      if (addressNow() === askedAt) leave?.(answer);
    },
  });
}

/** The value that `useChange` returns. */
export type Change<Given, Answer> = ReturnType<typeof useChange<Given, Answer>>;

function addressNow(): string {
  return window.location.pathname + window.location.search;
}
