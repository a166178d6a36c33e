// A filter that selects one of many entries by name, or all.
import type { SelectProps } from "@mantine/core";
import { Choice } from "../editing/choice.tsx";
import { replaceOnTyping } from "./replace-on-typing.ts";

interface ChoiceFilterProps extends Pick<SelectProps, "data" | "filter" | "onSearchChange"> {
  label: string;
  /** The chosen entry; empty means all. */
  value: string;
  choose(value: string): void;
  /** The placeholder for all, and the label of the button that returns to all. */
  all: { short: string; long: string };
  /** The text if no entry matches. */
  nothing: string;
}

export function ChoiceFilter({ value, choose, all, nothing, ...select }: ChoiceFilterProps) {
  return (
    <Choice
      {...select}
      {...{ size: "xs", clearable: true, searchable: true, limit: 100 }}
      {...replaceOnTyping}
      placeholder={all.short}
      value={value || null}
      onChange={(chosen) => choose(chosen ?? "")}
      clearButtonProps={{ "aria-label": all.long }}
      nothingFoundMessage={nothing}
    />
  );
}
