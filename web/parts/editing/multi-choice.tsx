// A multi-select field. When it loses the focus, the typed text is added, or refused with a message; it is never lost.
import { MultiSelect, type MultiSelectProps } from "@mantine/core";
import { useRef, useState } from "react";

interface MultiChoiceProps extends Omit<MultiSelectProps, "value" | "onChange" | "data" | "searchable"> {
  data: readonly { value: string; label: string }[];
  value: readonly string[];
  onChange(value: string[]): void;
}

export function MultiChoice({ data, value, onChange, error, maxValues, ...rest }: MultiChoiceProps) {
  const [search, setSearch] = useState("");
  const [isRefused, setRefused] = useState(false);
  const isLeaving = useRef(false);
  const input = useRef<HTMLInputElement>(null);
  const typed = search.trim();
  const isFull = maxValues !== undefined && value.length >= maxValues;
  const problem = typed === "" ? "" : notAdded(typed, isFull ? maxValues : undefined);
  // The browser does not submit a form while this field is invalid.
  input.current?.setCustomValidity(problem);
  const leave = () => {
    setRefused(true);
    isLeaving.current = true;
    const found = entryNamed(typed, data);
    if (!found || isFull) return;
    setSearch("");
    input.current?.setCustomValidity("");
    if (!value.includes(found.value)) onChange([...value, found.value]);
  };
  return (
    <MultiSelect
      {...rest}
      {...(maxValues === undefined ? {} : { maxValues })}
      data={[...data]}
      value={[...value]}
      onChange={onChange}
      searchable
      searchValue={search}
      // Mantine clears the text when the field loses focus.
      onSearchChange={(text) => {
        if (isLeaving.current) return;
        setSearch(text);
        setRefused(false);
      }}
      onFocus={(event) => {
        input.current = event.currentTarget;
        isLeaving.current = false;
      }}
      onBlur={leave}
      error={error ?? (isRefused && problem !== "" ? problem : undefined)}
    />
  );
}

/** Finds an entry by its exact name; otherwise the only one whose name differs in case alone. */
function entryNamed<Entry extends { value: string; label: string }>(
  name: string,
  entries: readonly Entry[],
): Entry | undefined {
  const exact = entries.find(({ value, label }) => value === name || label === name);
  if (exact) return exact;
  const wanted = name.toLowerCase();
  const close = entries.filter(({ value, label }) => [value, label].some((other) => other.toLowerCase() === wanted));
  return close.length === 1 ? close[0] : undefined;
}

function notAdded(text: string, most: number | undefined): string {
  if (most !== undefined)
    return `"${text}" was not added: the list may have at most ${most} entries. Remove an entry, or clear the field.`;
  return `"${text}" was not added: it is not in the list. Choose an entry from the list, or clear the field.`;
}
