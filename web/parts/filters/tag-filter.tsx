// The choice of one tag among those that were used lately; one that is in the address may be older.
import { useState } from "react";
import { useRead } from "../../api/queries.ts";
import type { UsageReport } from "../../api/types.ts";
import { firstDay } from "../../api/usage.ts";
import { ChoiceFilter } from "./choice-filter.tsx";

interface TagFilterProps {
  /** Empty: all. */
  value: string;
  choose(tag: string): void;
}

const recentDays = 31;
/** Those of a page of the report: who has more types the rest. */
const maxRows = 1_000;

export function TagFilter({ value, choose }: TagFilterProps) {
  const [typed, setTyped] = useState("");
  const query = { group_by: "tag", bucket: "month", start: firstDay(recentDays), limit: maxRows };
  const { data } = useRead<UsageReport>("/v1/usage", query, { keep: true });
  const used = data?.data.flatMap(({ tag }) => tag ?? []) ?? [];
  const isCut = data?.next != null;
  const others = isCut && /^[\w.:@/=+-]+$/.test(typed) ? [typed] : [];
  const tags = new Set([...(value ? [value] : []), ...used, ...others]);
  return (
    <ChoiceFilter
      {...{ label: "Tag", value, choose, data: [...tags] }}
      all={{ short: "All", long: "All tags" }}
      nothing={used.length === 0 ? "No recent request has a tag" : "No matching tag"}
      onSearchChange={setTyped}
    />
  );
}
