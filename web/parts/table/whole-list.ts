// Loads a whole list and sorts it in the browser, because the lists of the API have one order each.
import { useMemo } from "react";
import type { Query } from "../../api/client.ts";
import { useWhole } from "../../api/whole-list.ts";
import { allRows, type Rows } from "./long-table.tsx";

/** Returns the text or the number by which a column is sorted. */
export type SortValue<Row> = (row: Row) => string | number;

/**
 * Loads and sorts a list. `order` is the name of a column, with `-` before the name if the order is descending. If
 * `order` is empty, nothing is loaded. `orderOf` returns how the column with this name is sorted, and must be stable.
 */
export function useWholeList<Row>(
  path: string,
  query: Query,
  order: string,
  orderOf: (name: string) => SortValue<Row>,
) {
  const { data, error, isPending, refetch } = useWhole<Row>(path, query, order !== "");
  const rows = data?.items;
  const items = useMemo(() => (rows ? sorted(rows, order, orderOf) : []), [rows, order, orderOf]);
  const listing: Rows<Row> = { ...allRows(items), error, isPending, refetch: () => refetch() as Promise<never> };
  return { listing, isAll: data?.isAll ?? true };
}

function sorted<Row>(rows: readonly Row[], order: string, orderOf: (name: string) => SortValue<Row>): Row[] {
  const way = order.startsWith("-") ? -1 : 1;
  const value = orderOf(order.replace("-", ""));
  return rows.toSorted((a, b) => {
    const [one, other] = [value(a), value(b)];
    if (typeof one === "string") return way * one.localeCompare(String(other), "en");
    return way * (one - Number(other));
  });
}
