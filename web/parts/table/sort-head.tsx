// The head of a sortable column: a button that sorts by the column, or turns the order around.
import { UnstyledButton } from "@mantine/core";
import { ChevronDownIcon, ChevronUpIcon } from "@primer/octicons-react";
import type { Column } from "./column.ts";

interface Sortable {
  name: string;
  text: string;
  /** The order in force: the name of its column, with `-` before it if the order is descending. */
  order: string;
  /** The order of the first click. */
  first: "rises" | "falls";
  change(order: string): void;
}

/** Returns the head of a sortable column and its state for screen readers. */
export function sortable({ name, text, order, first, change }: Sortable): Pick<Column<never>, "head" | "sort"> {
  const [rises, falls] = [order === name, order === `-${name}`];
  const next = rises ? `-${name}` : falls ? name : first === "rises" ? name : `-${name}`;
  return {
    sort: rises ? "ascending" : falls ? "descending" : "none",
    head: (
      <UnstyledButton onClick={() => change(next)} fz="sm" fw={700} className="sort-head">
        {text}
        {rises && <ChevronUpIcon size={12} />}
        {falls && <ChevronDownIcon size={12} />}
      </UnstyledButton>
    ),
  };
}
