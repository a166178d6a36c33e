// A filter that selects one of any number of keys; the server searches while the user types.
import { useDebouncedValue } from "@mantine/hooks";
import { useState } from "react";
import { useRead } from "../../api/queries.ts";
import type { ApiKeyList } from "../../api/types.ts";
import { ChoiceFilter } from "./choice-filter.tsx";

interface KeyFilterProps {
  value: string | undefined;
  nameOf(id: string): string;
  /** Called with the id of the chosen key; an empty id means all keys. */
  choose(id: string): void;
}

export function KeyFilter({ value, nameOf, choose }: KeyFilterProps) {
  const [text, setText] = useState("");
  const [search] = useDebouncedValue(text.trim(), 250);
  const chosenName = value === undefined ? undefined : nameOf(value);
  const isChosen = search === chosenName;
  const found = useRead<ApiKeyList>("/v1/keys", { search: isChosen ? "" : search, limit: 50 }, { keep: true });
  const names = new Map(found.data?.data.map(({ id, name, last4 }) => [id, `${name || "Key"} …${last4}`]));
  if (value !== undefined && chosenName !== undefined) names.set(value, chosenName);
  return (
    <ChoiceFilter
      {...{ label: "Key", value: value ?? "", choose }}
      data={[...names].map(([id, label]) => ({ value: id, label }))}
      all={{ short: "All", long: "All keys" }}
      nothing="No matching key"
      // The server has already filtered, also by fields that the label does not show.
      filter={({ options }) => options}
      onSearchChange={setText}
    />
  );
}
