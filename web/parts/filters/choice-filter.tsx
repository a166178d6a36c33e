// The choice of one among many by its name, or of all.
import type { SelectProps } from "@mantine/core";
import { Choice } from "../editing/choice.tsx";
import { replaceOnTyping } from "./replace-on-typing.ts";

interface ChoiceFilterProps extends Pick<SelectProps, "data" | "filter" | "onSearchChange"> {
  label: string;
  /** Empty: all. */
  value: string;
  choose(value: string): void;
  /** What is chosen where nothing is, and what the button is called that leads back to it. */
  all: { short: string; long: string };
  /** Where nothing has the name that was typed. */
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
