// A list of people or members with their spend and last use, sorted in the browser.
import { useState } from "react";
import type { Query } from "../../api/client.ts";
import { useList } from "../../api/queries.ts";
import type { Member, Person } from "../../api/types.ts";
import type { Column } from "../table/column.ts";
import { sortable } from "../table/sort-head.tsx";
import { timeColumn } from "../table/time-column.tsx";
import { type SortValue, useWholeList } from "../table/whole-list.ts";
import { count, money } from "../words/figures.ts";

type Listed = Pick<Member | Person, "name" | "usage">;

/** Loads the list in the order of the API or, once a column is sorted, whole. */
export function usePeopleList<Row extends Listed>(path: string, query: Query = {}) {
  const [order, setOrder] = useState("");
  const asked = { ...query, include: "usage" };
  const first = useList<Row>(path, { ...asked, limit: 100 });
  const sorted = useWholeList<Row>(path, asked, order, orderOf);
  const head = (name: string, text: string, way: "rises" | "falls") =>
    sortable({ name, text, order, first: way, change: setOrder });
  const spend: Column<Row> = {
    name: "spend",
    ...head("spend", "Spend, month", "falls"),
    cell: ({ usage }) => money(usage?.spend ?? 0),
    wideOnly: "middle",
    width: "9rem",
    numeric: true,
  };
  const used = timeColumn<Row>({
    name: "used",
    ...head("used", "Last used", "falls"),
    width: "8rem",
    at: ({ usage }) => usage?.last_used_at ?? null,
  });
  return {
    listing: order === "" ? first : sorted.listing,
    isAll: sorted.isAll,
    /** Replaces the number of rows if the sorted list is not whole. */
    status: sorted.isAll ? undefined : `The first ${count(sorted.listing.items.length)} people, sorted.`,
    nameHead: head("name", "Name", "rises"),
    usageColumns: [spend, used],
  };
}

function orderOf(name: string): SortValue<Listed> {
  if (name === "name") return (row) => row.name;
  return name === "spend" ? ({ usage }) => usage?.spend ?? 0 : ({ usage }) => usage?.last_used_at ?? 0;
}
