// A column with a timestamp, hidden on narrow screens.
import { Ago } from "../words/ago.tsx";
import type { Column } from "./column.ts";

interface TimeColumn<Row> extends Pick<Column<Row>, "name" | "head" | "width" | "sort" | "wideOnly"> {
  /** Returns Unix seconds; null shows `never`. */
  at(row: Row): number | null;
  never?: string;
}

export function timeColumn<Row>({ at, never = "never", ...column }: TimeColumn<Row>): Column<Row> {
  return { wideOnly: true, ...column, cell: (row) => <Ago seconds={at(row)} never={never} /> };
}
