// A filter that selects one of the recently used tags; the address may name an older tag.
import { useState } from "react";
import { useRead } from "../../api/queries.ts";
import type { UsageReport } from "../../api/types.ts";
import { firstDay } from "../../api/usage.ts";
import { ChoiceFilter } from "./choice-filter.tsx";

interface TagFilterProps {
  /** The chosen tag; empty means all. */
  value: string;
  choose(tag: string): void;
}

const recentDays = 31;
/** The rows of the one report page that is loaded. If there are more tags, users can type a tag's full name. */
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
