// How pages ask for data: cached, shared between the parts of a page, asked again while it is looked at, paged.
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
      // Asked whatever the browser thinks of its network: a server on this machine needs none, and one that is not
      // reached says so, instead of an empty page that waits.
      networkMode: "always",
      refetchOnReconnect: true,
      staleTime: 5_000,
      gcTime: 60_000,
      retry: (count, error) => count < 2 && error instanceof ApiFailure && (error.status === 0 || error.status >= 502),
    },
    // Nothing is kept to be sent later, when nobody expects it any more; and what was sent or answered, such as a
    // password or a new key, is forgotten with the dialog that it was for.
    mutations: { networkMode: "always", gcTime: 0 },
  },
});

interface ReadOptions {
  /** Asks again as often, while the page is visible. */
  everyMs?: number;
  /** False: not yet. */
  enabled?: boolean;
  /** While another query is loading, what the last one gave is shown on. */
  keep?: boolean;
}

/** One GET. The key begins with the path, so that a change can say what it made stale. */
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

/** One GET that is asked again and again: where the server says that nothing changed, nothing is read or drawn. */
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
 * What came, drawn in slices: the library tells of it in a way that makes React draw all at once, which for a long list
 * holds the page up.
 */
export function useSliced<Read extends { data: unknown; isPending: boolean; error: unknown }>(read: Read): Read {
  const data = useDeferredValue(read.data);
  const isPending = useDeferredValue(read.isPending);
  const error = useDeferredValue(read.error);
  return { ...read, data, isPending, error };
}

/** A page of a list: `after` the last id, or from the cursor `next`. */
interface ListPage<Item> {
  data: Item[];
  has_more?: boolean;
  last_id?: string | null;
  next?: string | null;
}

/** The pages of a list one after the other, `most` of them. */
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

/** A list that goes on when somebody scrolls: `items` of all pages so far. */
export function useList<Item>(path: string, query: Query = {}, { everyMs, enabled = true }: ReadOptions = {}) {
  const result = useInfiniteQuery({
    queryKey: [path, query, "list"],
    queryFn: ({ pageParam, signal }) =>
      call<ListPage<Item>>("GET", path, { query: { ...query, ...pageParam }, signal }),
    initialPageParam: {} as Query,
    getNextPageParam: nextOf,
    enabled,
    // All pages so far are asked for again, one after the other: of a long list not for each look at it.
    refetchOnWindowFocus: isShort,
    refetchOnMount: (query: ListQuery) => query.state.isInvalidated || isShort(query),
    ...(everyMs === undefined ? {} : { refetchInterval: (query: ListQuery) => isShort(query) && everyMs }),
  });
  const error = result.error as ApiFailure | null;
  const pages = result.data?.pages;
  // The same array as long as nothing came, so that rows that are drawn stay as they are.
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

/** For what a change made stale to be there anew, so that a dialog closes over a list that has it. */
const maxWaitMs = 1_500;

export interface ChangeOptions<Given, Answer> {
  /** Paths whose data are asked for again afterwards. */
  stale?: readonly string[];
  /** The path of what is no more: what is below it, which may be shown a moment longer, is not asked for again. */
  gone?: string;
  done?: (answer: Answer, given: Given) => void;
  /** Leads on, or closes what the address shows: not called where somebody went elsewhere meanwhile. */
  leave?: (answer: Answer) => void;
}

/** Something that changes the server. */
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
      // What was answered may be a secret that is told once: it does not wait for a server that went away meanwhile.
      await Promise.race([shown, new Promise((resolve) => setTimeout(resolve, maxWaitMs))]);
      done?.(answer, given);
      if (addressNow() === askedAt) leave?.(answer);
    },
  });
}

/** What `useChange` gives. */
export type Change<Given, Answer> = ReturnType<typeof useChange<Given, Answer>>;

function addressNow(): string {
  return window.location.pathname + window.location.search;
}
