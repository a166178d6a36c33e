// One row of a long table, drawn again only when something of its own changed, and not for each step of scrolling.
import { Table } from "@mantine/core";
import { memo } from "react";
import type { Column } from "./long-table.tsx";

interface TableRowProps<Row> {
  row: Row;
  /** From 0. */
  index: number;
  /** As long as a page gives the same array, rows that are drawn stay as they are. */
  columns: readonly Column<Row>[];
  height: number;
  choose: ((row: Row) => void) | undefined;
}

function PlainRow<Row>({ row, index, columns, height, choose }: TableRowProps<Row>) {
  return (
    <Table.Tr
      aria-rowindex={index + 2}
      style={{ height, ...(choose ? { cursor: "pointer" } : {}) }}
      {...(choose ? { onClick: (event) => isPlain(event.target) && choose(row) } : {})}
    >
      {columns.map(({ name, cell, numeric, wideOnly }) => (
        <Table.Td
          key={name}
          ta={numeric ? "right" : "left"}
          className={numeric ? "numeric" : undefined}
          {...(wideOnly ? { visibleFrom: "sm" } : {})}
        >
          {cell(row)}
        </Table.Td>
      ))}
    </Table.Tr>
  );
}

export const TableRow = memo(PlainRow) as typeof PlainRow;

/** Not within something that does what it says itself. */
function isPlain(target: EventTarget): boolean {
  return target instanceof Element && !target.closest("a, button, input, label, [role=dialog]");
}
