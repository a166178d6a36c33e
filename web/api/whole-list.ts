// Loads all pages of a list, for pages that sort it.
import { useQuery } from "@tanstack/react-query";
import type { ApiFailure, Query } from "./client.ts";
import { pagesOf, useSliced } from "./queries.ts";

/** Maximum number of pages of 100 items; the items beyond are left out. */
const maxPages = 20;

interface Whole<Item> {
  items: Item[];
  isAll: boolean;
}

/** Loads nothing while `enabled` is false. */
export function useWhole<Item>(path: string, query: Query, enabled: boolean) {
  return useSliced(
    useQuery<Whole<Item>, ApiFailure>({
      queryKey: [path, "all", query],
      queryFn: ({ signal }) => loadAll<Item>(path, query, signal),
      enabled,
    }),
  );
}

async function loadAll<Item>(path: string, query: Query, signal: AbortSignal): Promise<Whole<Item>> {
  const items: Item[] = [];
  let isAll = false;
  for await (const { data, isLast } of pagesOf<Item>(path, { ...query, limit: 100 }, signal, maxPages)) {
    items.push(...data);
    isAll = isLast;
  }
  return { items, isAll };
}
