// One row of a long table, drawn again only when something of its own changed, and not for each step of scrolling.
import { memo } from "react";
import type { Column } from "./column.ts";

interface TableRowProps<Row> {
  row: Row;
  /** Counted from 0. */
  index: number;
  /** Rows that are drawn stay as they are while a page gives the same array. */
  columns: readonly Column<Row>[];
  height: number;
  choose: ((row: Row) => void) | undefined;
}

function PlainRow<Row>({ row, index, columns, height, choose }: TableRowProps<Row>) {
  return (
    // Plain elements: those of the library cost so much that a table of many rows held the page up.
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

function classOf(numeric = false, wideOnly = false): string | undefined {
  const names = [numeric ? "numeric number-cell" : "", wideOnly ? "wide-only" : ""].filter((name) => name !== "");
  return names.length === 0 ? undefined : names.join(" ");
}

/** False within something that does what it says itself. */
function isPlain(target: EventTarget): boolean {
  return target instanceof Element && !target.closest("a, button, input, label, [role=dialog]");
}
