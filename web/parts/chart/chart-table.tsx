// The figures of a chart as a table, newest first, for screen readers and readers who prefer tables.
import { Table } from "@mantine/core";
import { ScrollRegion } from "../page/scroll-region.tsx";
import type { Plotted } from "./chart-data.ts";
import { nameOfTime } from "./chart-time.ts";

interface ChartTableProps extends Pick<Plotted, "times" | "bucket" | "series"> {
  title: string;
  format(value: number): string;
  height: number;
}

/** Maximum number of rows of the table; the page Usage can export all. */
const maxRows = 400;

export function ChartTable({ title, times, bucket, series, format, height }: ChartTableProps) {
  const rows = [...times.keys()].reverse().slice(0, maxRows);
  return (
    <ScrollRegion style={{ maxHeight: height, overflow: "auto" }} label={`${title}, figures`}>
      <Table stickyHeader verticalSpacing={4} fz="xs">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Time</Table.Th>
            {series.map(({ label }) => (
              <Table.Th key={label} ta="right">
                {label}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map((index) => (
            <Table.Tr key={times[index]}>
              <Table.Td className="numeric">{nameOfTime(times[index] ?? 0, bucket)}</Table.Td>
              {series.map(({ label, values }) => {
                const value = values[index];
                return (
                  <Table.Td key={label} ta="right" className="numeric">
                    {value === null || value === undefined ? "–" : format(value)}
                  </Table.Td>
                );
              })}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </ScrollRegion>
  );
}
