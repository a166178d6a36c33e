// A column of a long table.
import type { ReactNode } from "react";

export interface Column<Row> {
  name: string;
  head: ReactNode;
  cell(row: Row): ReactNode;
  /** True if the column has numbers. Numbers are right-aligned, so that their digits line up. */
  numeric?: boolean;
  /** CSS width in rem; columns without one share the rest. */
  width?: string;
  /**
   * If true, the column is hidden while the table is too narrow for all columns. A `middle` column stays visible down
   * to a width of 40 rem.
   */
  wideOnly?: boolean | "middle";
  /** The current sorting of a sortable column; `head` has the button. */
  sort?: "ascending" | "descending" | "none";
}

/** The least width, in rem, of a column without a set width. */
const least = { first: 7, others: 6 };
/** Widths, in rem, at which a table may show every column: the container rules of parts.css. */
const steps = [40, 48, 56, 60];

/** Returns the width in rem that the narrow and the full table need, and the step from which all columns show. */
export function roomOf(columns: readonly Pick<Column<never>, "width" | "wideOnly">[]) {
  const widths = columns.map(({ width }, index) =>
    width === undefined ? (index === 0 ? least.first : least.others) : Number(width.replace("rem", "")),
  );
  const sum = (all: readonly number[]) => all.reduce((before, width) => before + width, 0);
  const all = sum(widths);
  const narrow = sum(widths.filter((_, index) => !columns[index]?.wideOnly));
  return { narrow, all, wideFrom: steps.find((step) => step >= all) ?? steps.at(-1) };
}

/** Returns the CSS class by which a column is hidden. */
export function hidingClass(wideOnly: Column<never>["wideOnly"]): string {
  if (!wideOnly) return "";
  return wideOnly === "middle" ? "middle-only" : "wide-only";
}
