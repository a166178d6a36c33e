// One row of a long table, memoized so that scrolling does not render it again.
import { memo } from "react";
import { type Column, hidingClass } from "./column.ts";

interface TableRowProps<Row> {
  row: Row;
  /** The row's index, from 0. */
  index: number;
  /** Rows are not rendered again while the page passes the same array. */
  columns: readonly Column<Row>[];
  height: number;
  choose: ((row: Row) => void) | undefined;
}

function PlainRow<Row>({ row, index, columns, height, choose }: TableRowProps<Row>) {
  return (
    // Plain elements, because the library's rows are so slow that a long table would block the page.
    <tr
      aria-rowindex={index + 2}
      style={{ height, ...(choose ? { cursor: "pointer" } : {}) }}
      data-chosen-by-click={choose && ""}
      onClick={choose && (({ target }) => isPlain(target) && choose(row))}
    >
      {columns.map(({ name, cell, numeric, wideOnly }) => (
        <td key={name} className={classOf(numeric, wideOnly)}>
          {cell(row)}
        </td>
      ))}
    </tr>
  );
}

export const TableRow = memo(PlainRow) as typeof PlainRow;

function classOf(numeric = false, wideOnly: Column<never>["wideOnly"] = false): string | undefined {
  const names = [numeric ? "numeric number-cell" : "", hidingClass(wideOnly)].filter((name) => name !== "");
  return names.length === 0 ? undefined : names.join(" ");
}

/** Returns false within an interactive element, which handles the click itself. */
function isPlain(target: EventTarget): boolean {
  return target instanceof Element && !target.closest("a, button, input, label, [role=dialog]");
}
