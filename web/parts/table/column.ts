// A column of a long table.
import type { ReactNode } from "react";

export interface Column<Row> {
  name: string;
  head: ReactNode;
  cell(row: Row): ReactNode;
  /** Whether it has numbers, which are compared by their last digit. */
  numeric?: boolean;
  /** CSS width; the rest is shared. */
  width?: string;
  /** Left out on a narrow screen. */
  wideOnly?: boolean;
  /** How it is sorted now, where it can be; `head` has the button. */
  sort?: "ascending" | "descending" | "none";
}
