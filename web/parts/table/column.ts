// A column of a long table.
import type { ReactNode } from "react";

export interface Column<Row> {
  name: string;
  head: ReactNode;
  cell(row: Row): ReactNode;
  /** Whether it has numbers, which are compared by their last digit. */
  numeric?: boolean;
  /** CSS width in rem; columns without one share the rest. */
  width?: string;
  /** Left out where the table has no room for all of its columns. */
  wideOnly?: boolean;
  /** How it is sorted now, where it can be; `head` has the button. */
  sort?: "ascending" | "descending" | "none";
}

/** Rem that a column without a width keeps at least. */
const least = { first: 7, others: 6 };
/** Rem from which on a table may show every column: the container rules of parts.css. */
const steps = [40, 48, 56];

/** Rem that a table needs for its narrow and for all of its columns, and the step from which on it shows all. */
export function roomOf(columns: readonly Pick<Column<never>, "width" | "wideOnly">[]) {
  const widths = columns.map(({ width }, index) =>
    width === undefined ? (index === 0 ? least.first : least.others) : Number(width.replace("rem", "")),
  );
  const sum = (all: readonly number[]) => all.reduce((before, width) => before + width, 0);
  const all = sum(widths);
  const narrow = sum(widths.filter((_, index) => !columns[index]?.wideOnly));
  return { narrow, all, wideFrom: steps.find((step) => step >= all) ?? steps.at(-1) };
}
