// The explorer's data as a table of any length, with a row per group or per group and bucket.
import { Anchor, Group, Text } from "@mantine/core";
import { useMemo } from "react";
import { costsNothing, type Unpriced } from "../../api/models.ts";
import { type Figures, sumOf, type UsageBucket, type UsageGroup, type UsageRow } from "../../api/usage.ts";
import { nameOfTime } from "../../parts/chart/chart-time.ts";
import type { Column } from "../../parts/table/column.ts";
import { allRows, LongTable } from "../../parts/table/long-table.tsx";
import { sortable } from "../../parts/table/sort-head.tsx";
import { groupOf } from "../../parts/usage/usage-metrics.ts";
import { at, count, duration, money, percent, perSecond } from "../../parts/words/figures.ts";
import { groupTitles } from "./usage-ask.ts";

interface TableRow {
  id: string;
  start: number;
  groups: Partial<Record<UsageGroup, string | null>>;
  sum: Figures;
}

interface UsageTableProps {
  rows: readonly UsageRow[];
  groupBy: readonly UsageGroup[];
  bucket: UsageBucket;
  byTime: boolean;
  unpriced: Unpriced;
  /** A column's name; a leading minus means descending. */
  sort: string;
  nameOf(group: UsageGroup, id: string | null): string;
  changeSort(sort: string): void;
  /** Filters to this group alone. */
  choose(group: UsageGroup, id: string): void;
}

interface Figure {
  name: string;
  head: string;
  value(sum: Figures): number | null;
  text(sum: Figures, model: string | null | undefined, unpriced: Unpriced): string;
  wideOnly?: boolean;
}

/** Formats the spend of a row. `model` is the row's model, if usage is grouped by model. */
function spendText(sum: Figures, model: string | null | undefined, unpriced: Unpriced): string {
  if (sum.cost > 0) return money(sum.cost);
  const isKnown = model && unpriced.names.includes(model);
  const isUnpriced = model ? unpriced.has(model) : unpriced.isAllThatIsFree;
  return isKnown || (costsNothing(sum) && isUnpriced) ? "no price" : money(sum.cost);
}

const figures: readonly Figure[] = [
  { name: "requests", head: "Requests", value: ({ requests }) => requests, text: ({ requests }) => count(requests) },
  {
    name: "prompt",
    head: "Prompt",
    value: (sum) => sum.prompt_tokens,
    text: (sum) => count(sum.prompt_tokens),
    wideOnly: true,
  },
  {
    name: "cached",
    head: "Cached",
    value: (sum) => sum.cached_tokens,
    text: (sum) => count(sum.cached_tokens),
    wideOnly: true,
  },
  {
    name: "completion",
    head: "Completion",
    value: (sum) => sum.completion_tokens,
    text: (sum) => count(sum.completion_tokens),
    wideOnly: true,
  },
  { name: "tokens", head: "Tokens", value: (sum) => sum.total_tokens, text: (sum) => count(sum.total_tokens) },
  { name: "cost", head: "Spend", value: ({ cost }) => cost, text: spendText },
  {
    ...{ name: "errors", head: "Errors", wideOnly: true, value: ({ errors }) => errors },
    text: ({ errors, requests }) => (errors === 0 ? "0" : `${count(errors)} (${percent(errors / requests)})`),
  },
  {
    ...{ name: "wait", head: "First token", wideOnly: true, value: (sum) => sum.first_token_ms },
    text: (sum) => (sum.first_token_ms === null ? "–" : duration(sum.first_token_ms)),
  },
  {
    ...{ name: "p95", head: "p95", wideOnly: true, value: (sum) => sum.percentiles?.first_token_ms?.p95 ?? null },
    text: ({ percentiles }) => (percentiles?.first_token_ms ? duration(percentiles.first_token_ms.p95) : "–"),
  },
  {
    ...{ name: "speed", head: "Tokens/s", wideOnly: true, value: (sum) => sum.tokens_per_second },
    text: (sum) => (sum.tokens_per_second === null ? "–" : perSecond(sum.tokens_per_second)),
  },
];

export function UsageTable(props: UsageTableProps) {
  const { rows, groupBy, bucket, byTime, unpriced, sort, nameOf, changeSort, choose } = props;
  const all = useMemo(() => tableRows(rows, groupBy, byTime), [rows, groupBy, byTime]);
  const falls = sort.startsWith("-");
  const by = falls ? sort.slice(1) : sort;
  // biome-ignore lint/correctness/useExhaustiveDependencies: loaded names do not sort ten thousand rows again
  const items = useMemo(() => sorted(all, by, falls, nameOf), [all, by, falls]);
  const head = (name: string, text: string) => {
    const isFigure = figures.some((one) => one.name === name) || name === "time";
    return sortable({ name, text, order: sort, first: isFigure ? "falls" : "rises", change: changeSort });
  };
  const columns: Column<TableRow>[] = [
    ...(byTime
      ? [
          {
            name: "time",
            ...head("time", "Time"),
            cell: ({ start }: TableRow) => (
              <span className="numeric">{bucket === "hour" ? at(start) : nameOfTime(start, bucket)}</span>
            ),
          } as const,
        ]
      : []),
    ...groupBy.map((group) => ({
      name: group,
      ...head(group, groupTitles[group]),
      cell: ({ groups }: TableRow) => <GroupCell {...{ group, id: groups[group] ?? null, nameOf, choose }} />,
    })),
    ...figures.map(({ name, head: text, text: write, wideOnly }) => ({
      ...{ name, ...head(name, text), numeric: true },
      cell: ({ sum, groups }: TableRow) => write(sum, groups.model, unpriced),
      ...(wideOnly ? { wideOnly } : {}),
    })),
  ];
  return (
    <LongTable
      label="Usage"
      listing={allRows(items)}
      columns={columns}
      keyOf={({ id }) => id}
      empty={<Text c="dimmed">No usage in this time.</Text>}
      rowHeight={38}
    />
  );
}

interface GroupCellProps {
  group: UsageGroup;
  id: string | null;
  nameOf(group: UsageGroup, id: string | null): string;
  choose(group: UsageGroup, id: string): void;
}

function GroupCell({ group, id, nameOf, choose }: GroupCellProps) {
  const name = nameOf(group, id);
  if (id === null || group === "environment") return <Text size="sm">{name}</Text>;
  return (
    <Group gap={4} wrap="nowrap">
      <Anchor
        component="button"
        type="button"
        size="sm"
        ta="left"
        title={`Show only ${name}`}
        onClick={() => choose(group, id)}
      >
        {name}
      </Anchor>
    </Group>
  );
}

function tableRows(rows: readonly UsageRow[], groupBy: readonly UsageGroup[], byTime: boolean): TableRow[] {
  const groups = Map.groupBy(rows, (row) => `${byTime ? row.start : ""}\n${groupOf(row, groupBy)}`);
  return [...groups].flatMap(([id, same]) => {
    const [row] = same;
    if (!row) return [];
    const values = Object.fromEntries(groupBy.map((group) => [group, row[group] ?? null]));
    return [{ id, start: row.start, groups: values, sum: same.length === 1 ? row : sumOf(same) }];
  });
}

function sorted(rows: readonly TableRow[], by: string, falls: boolean, nameOf: UsageTableProps["nameOf"]): TableRow[] {
  const way = falls ? -1 : 1;
  const figure = figures.find(({ name }) => name === by);
  if (figure) return rows.toSorted((a, b) => way * ((figure.value(a.sum) ?? -1) - (figure.value(b.sum) ?? -1)));
  if (by === "time") return rows.toSorted((a, b) => way * (a.start - b.start));
  const group = by as UsageGroup;
  const named = rows.map((row) => ({ row, name: nameOf(group, row.groups[group] ?? null) }));
  return named.sort((a, b) => way * (a.name < b.name ? -1 : a.name > b.name ? 1 : 0)).map(({ row }) => row);
}
