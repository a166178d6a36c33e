// The key figures of a time range, each with its change from the range before.
import { Group, Paper, SimpleGrid, Skeleton, Text, VisuallyHidden } from "@mantine/core";
import { ArrowDownIcon, ArrowUpIcon, DashIcon } from "@primer/octicons-react";
import { costsNothing, useUnpriced } from "../../api/models.ts";
import type { Times } from "../../api/percentiles.ts";
import type { Overview } from "../../api/types.ts";
import { percentileText } from "../../parts/usage/percentile-text.ts";
import { count, duration, money, percent, perSecond, short } from "../../parts/words/figures.ts";
import { SmallNote } from "../../parts/words/note.tsx";

type Figures = Overview["usage"]["before"];

interface Tile {
  title: string;
  of(figures: Figures): number | null;
  format(value: number): string;
  /** Formats the value with all digits, if `format` rounds. */
  exact?: (value: number) => string;
  /** Tells whether an increase is good or bad; null means neither. */
  more: "good" | "bad" | null;
  /** If true, the change is shown as a difference in percentage points, not as a percentage of the earlier value. */
  points?: boolean;
}

const tiles: readonly Tile[] = [
  { title: "Requests", of: ({ requests }) => requests, format: short, exact: count, more: null },
  { title: "Tokens", of: (figures) => figures.total_tokens, format: short, exact: count, more: null },
  {
    title: "Spend",
    of: ({ cost }) => cost,
    format: (usd) => money(usd >= 1 ? Math.round(usd * 100) / 100 : usd),
    more: null,
  },
  {
    ...{ title: "Error rate", format: percent, more: "bad", points: true },
    of: ({ requests, errors }) => (requests === 0 ? null : errors / requests),
  },
  { title: "Time to first token", of: (figures) => figures.first_token_ms, format: duration, more: "bad" },
  {
    ...{ title: "Tokens per second", more: "good", format: perSecond },
    of: (figures) => figures.tokens_per_second,
  },
];

interface TilesProps {
  sum: Figures;
  before: Figures;
  /** The range in words, such as "24 hours". */
  length: string;
}

export function Tiles({ sum, before, length }: TilesProps) {
  const { isAllThatIsFree } = useUnpriced(costsNothing(sum));
  return (
    <SimpleGrid cols={{ base: 2, sm: 3, lg: 6 }} spacing="xs">
      {tiles.map((tile) => {
        const value = tile.of(sum);
        const exact = value === null ? undefined : tile.exact?.(value);
        const isUnpriced = tile.title === "Spend" && costsNothing(sum) && isAllThatIsFree;
        const shown = value === null ? "–" : isUnpriced ? "No price" : tile.format(value);
        return (
          <Paper key={tile.title} withBorder p="sm" component="section" aria-label={tile.title}>
            <SmallNote>{tile.title}</SmallNote>
            <Text fz={24} fw={650} lh={1.3} className="numeric" {...(exact && exact !== shown ? { title: exact } : {})}>
              {shown}
            </Text>
            <Change tile={tile} value={value} before={tile.of(before)} length={length} />
          </Paper>
        );
      })}
    </SimpleGrid>
  );
}

interface ChangeProps {
  tile: Tile;
  value: number | null;
  before: number | null;
  length: string;
}

function Change({ tile, value, before, length }: ChangeProps) {
  if (value === null || before === null || (before === 0 && !tile.points)) {
    return <SmallNote>{value === null ? "no data" : "no earlier data"}</SmallNote>;
  }
  const change = tile.points ? value - before : value / before - 1;
  const isSame = Math.abs(change) < (tile.points ? 0.0005 : 0.005);
  const Arrow = isSame ? DashIcon : change > 0 ? ArrowUpIcon : ArrowDownIcon;
  const isGood = tile.more === null || isSame ? null : (tile.more === "good") === change > 0;
  const amount = tile.points
    ? `${(Math.abs(change) * 100).toFixed(1)} pts`
    : Math.abs(change) >= 10
      ? `${Math.round(Math.abs(change) + 1)}×`
      : percent(Math.abs(change));
  const words = isSame
    ? "no change"
    : `${amount} ${change > 0 ? "more" : "less"}${isGood === null ? "" : isGood ? ", better" : ", worse"}`;
  return (
    <Group
      gap={4}
      wrap="nowrap"
      w="fit-content"
      c={isGood === null ? "dimmed" : isGood ? "var(--good)" : "var(--mantine-color-error)"}
      data-hint={`${tile.format(before)} in the ${length} before`}
    >
      <Arrow size={14} />
      <Text size="xs" className="numeric" component="span" aria-hidden="true">
        {isSame ? "no change" : amount}
      </Text>
      <VisuallyHidden>{`${words}; ${tile.format(before)} in the ${length} before`}</VisuallyHidden>
    </Group>
  );
}

/** The percentiles of the times of answers, if they were counted. */
export function ResponseTimes({ times }: { times: Times }) {
  const lines = [
    ["First token", percentileText(times?.first_token_ms)],
    ["Whole answer", percentileText(times?.total_ms)],
  ] as const;
  if (lines.every(([, text]) => text === undefined)) return null;
  return (
    <Group component="section" aria-label="Response times" gap="lg">
      {lines.map(([title, text]) => (
        <Text key={title} size="sm" component="span">
          {title}:{" "}
          <Text span inherit className="numeric">
            {text ?? "no streams"}
          </Text>
        </Text>
      ))}
    </Group>
  );
}

export function WaitingTiles() {
  return (
    <SimpleGrid cols={{ base: 2, sm: 3, lg: 6 }} spacing="xs" aria-busy="true">
      {tiles.map(({ title }) => (
        <Skeleton key={title} height={104} />
      ))}
    </SimpleGrid>
  );
}
