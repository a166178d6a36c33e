// The table of a statement: its lines, the remainder without a line, and the total. All rows are rendered, so that it
// prints.
import { Table, Text } from "@mantine/core";
import type { Statement, StatementLine } from "../../api/types.ts";
import { ScrollRegion } from "../../parts/page/scroll-region.tsx";
import { count, usdColumn } from "../../parts/words/figures.ts";

export type Sums = Statement["total"];
export type Line = Sums & Partial<StatementLine> & { account?: string; account_name?: string };

interface StatementTableProps {
  columns: readonly string[];
  lines: readonly Line[];
  others: (Sums & { lines: number | null }) | null;
  total: Sums;
}

interface Figure {
  head: string;
  text(sums: Sums, usd: (cost: string) => string): string;
  /** If set, the column is shown only if the total of this member is above 0. */
  of?: keyof Sums;
}

const figures: readonly Figure[] = [
  { head: "Requests", text: ({ requests }) => count(requests) },
  { head: "Input", text: (sums) => count(sums.prompt_tokens) },
  { head: "cached input", text: (sums) => count(sums.cached_tokens), of: "cached_tokens" },
  { head: "written", text: (sums) => count(sums.cache_write_tokens), of: "cache_write_tokens" },
  { head: "Output", text: (sums) => count(sums.completion_tokens) },
  { head: "reasoning output", text: (sums) => count(sums.reasoning_tokens), of: "reasoning_tokens" },
  { head: "No price", text: (sums) => count(sums.unpriced_requests), of: "unpriced_requests" },
  { head: "USD", text: ({ cost }, usd) => usd(cost) },
];

const heads: Readonly<Record<string, string>> = {
  ...{ account: "Account", key: "Key", person: "Person", model: "Model", app: "App", tag: "Tag" },
};

export function StatementTable({ columns, lines, others, total }: StatementTableProps) {
  const shown = figures.filter(({ of }) => of === undefined || Number(total[of]) > 0);
  const usd = usdColumn([...lines, ...(others ? [others] : []), total].map(({ cost }) => cost));
  const cells = (sums: Sums) =>
    shown.map(({ head, text }) => (
      <Table.Td key={head} className="numeric" ta="right">
        {text(sums, usd)}
      </Table.Td>
    ));
  return (
    <ScrollRegion label="Lines of the statement" className="statement-lines">
      <Table className="statement-table" verticalSpacing={6}>
        <Table.Thead>
          <Table.Tr>
            {columns.map((name) => (
              <Table.Th key={name}>{heads[name]}</Table.Th>
            ))}
            {columns.length === 0 && <Table.Th>Of all</Table.Th>}
            {shown.map(({ head }) => (
              <Table.Th key={head} className="numeric" ta="right">
                {head}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {lines.map((line) => (
            <Table.Tr key={JSON.stringify(columns.map((name) => line[name as keyof Line]))}>
              {columns.map((name) => (
                <Table.Td key={name}>
                  <Name {...nameOf(line, name)} />
                </Table.Td>
              ))}
              {cells(line)}
            </Table.Tr>
          ))}
          {others && (
            <Table.Tr>
              <Table.Td colSpan={Math.max(1, columns.length)}>
                {others.lines === null ? "All others" : `Others: ${count(others.lines)}`}
              </Table.Td>
              {cells(others)}
            </Table.Tr>
          )}
        </Table.Tbody>
        <Table.Tfoot>
          <Table.Tr>
            <Table.Th colSpan={Math.max(1, columns.length)}>Total</Table.Th>
            {cells(total)}
          </Table.Tr>
        </Table.Tfoot>
      </Table>
    </ScrollRegion>
  );
}

function Name({ name, id }: { name: string; id: string | undefined }) {
  return (
    <>
      <Text size="sm" style={{ overflowWrap: "anywhere" }}>
        {name}
      </Text>
      {id !== undefined && (
        <Text size="xs" c="dimmed" style={{ overflowWrap: "anywhere" }}>
          {id}
        </Text>
      )}
    </>
  );
}

const noneOf: Readonly<Record<string, string>> = { person: "Keys of the account", app: "No app", tag: "No tag" };

/** Returns the name of a line and its id, which stands below the name because two keys may have the same name. */
export function nameOf(
  line: Readonly<Record<string, unknown>>,
  column: string,
): { name: string; id: string | undefined } {
  const id = line[column];
  if (typeof id !== "string") return { name: noneOf[column] ?? "-", id: undefined };
  const name = line[`${column}_name`];
  return typeof name === "string" ? { name, id } : { name: id, id: undefined };
}
