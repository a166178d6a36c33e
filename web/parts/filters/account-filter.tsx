// The filter by account, for operators.
import { useDebouncedValue } from "@mantine/hooks";
import { useState } from "react";
import { useRead } from "../../api/queries.ts";
import type { AccountList } from "../../api/types.ts";
import { ChoiceFilter } from "./choice-filter.tsx";

/** Selects one account, or all; the server searches while the operator types. */
export function AccountFilter({ value, choose }: { value: string; choose(value: string): void }) {
  const [text, setText] = useState("");
  const [search] = useDebouncedValue(text.trim(), 250);
  const chosen = useRead<AccountList>("/v1/admin/accounts", { search: value, limit: 1 }, { enabled: value !== "" });
  const chosenName = value === "" ? undefined : chosen.data?.data[0]?.name;
  const asked = search === (chosenName ?? value) ? "" : search;
  const found = useRead<AccountList>("/v1/admin/accounts", { search: asked, limit: 50 }, { keep: true });
  const names = new Map(found.data?.data.map(({ id, name }) => [id, name]));
  if (chosenName !== undefined) names.set(value, chosenName);
  return (
    <ChoiceFilter
      {...{ label: "Account", value, choose }}
      data={withChosen(
        value,
        [...names].map(([id, label]) => ({ value: id, label })),
      )}
      all={{ short: "All", long: "All accounts" }}
      nothing="No matching account"
      // The server has already filtered, also by the id, which the label does not show.
      filter={({ options }) => options}
      onSearchChange={setText}
    />
  );
}

/** Returns the entries. If the chosen entry is not among them, it is added first. */
export function withChosen(value: string, entries: readonly { value: string; label: string }[] = []) {
  const isKnown = value === "" || entries.some((entry) => entry.value === value);
  return isKnown ? [...entries] : [{ value, label: value }, ...entries];
}
