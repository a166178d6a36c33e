// A table of any length: only the rows in view are drawn, and further ones are asked for as the end comes near.
import { Button, Group, Loader, Paper, Stack, Table, Text } from "@mantine/core";
import { useCallbackRef } from "@mantine/hooks";
import { ArrowUpIcon } from "@primer/octicons-react";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useDeferredValue, useEffect, useRef, useState } from "react";
import type { Listing } from "../../api/queries.ts";
import { Failure } from "../page/failure.tsx";
import { ScrollRegion } from "../page/scroll-region.tsx";
import { Waiting } from "../page/waiting.tsx";
import { count } from "../words/figures.ts";
import { type Column, roomOf } from "./column.ts";
import { keepOffset, keptOffset } from "./kept-place.ts";
import { useStaged } from "./staged.ts";
import { TableRow } from "./table-row.tsx";

/** What the table uses of a listing, which a page that has all its rows already can give as well. */
export type Rows<Row> = Pick<
  Listing<Row>,
  "items" | "error" | "isPending" | "hasNextPage" | "isFetchingNextPage" | "fetchNextPage" | "refetch"
>;

/** The rows of a page that has all of them already. */
export function allRows<Row>(items: Row[]): Rows<Row> {
  const nothing = async () => undefined as never;
  return {
    ...{ items, error: null, isPending: false, hasNextPage: false, isFetchingNextPage: false },
    ...{ fetchNextPage: nothing, refetch: nothing },
  };
}

/** What arrived at the top meanwhile, held back until somebody asks for it or is at the top. */
export interface Newer {
  count: number;
  show(): void;
}

interface LongTableProps<Row> {
  /** What the rows are, for who hears it: "API keys". */
  label: string;
  listing: Rows<Row>;
  columns: readonly Column<Row>[];
  keyOf(row: Row): string;
  /** Shown where there is no row. */
  empty: ReactNode;
  /** CSS height of the part that scrolls. */
  height?: string;
  rowHeight?: number;
  /** Called when somebody chooses a row; a cell should hold a link or button of its own for the keyboard. */
  choose?: (row: Row) => void;
  /** Columns are as wide as they say, whatever is in the rows in view; one without a width has the rest. */
  fixed?: boolean;
  /** Where a list grows at its top while it is looked at. */
  newer?: Newer;
  /** How far it goes, in place of how many there are. */
  status?: ReactNode;
  /** Shown with the rows: where it is depends on how many there are, and what is read already must not move. */
  below?: ReactNode;
}

/** Rows. */
const stage = 3;

export function LongTable<Row>(props: LongTableProps<Row>) {
  const { label, listing, columns, keyOf, empty, height = "min(70vh, 48rem)", rowHeight = 45, choose } = props;
  const { fixed = false, newer, status, below } = props;
  const { error, hasNextPage, isFetchingNextPage, fetchNextPage, refetch } = listing;
  // Rows are drawn in slices, between which the browser answers.
  const items = useDeferredValue(listing.items);
  const isPending = useDeferredValue(listing.isPending, true);
  const scrolling = useRef<HTMLDivElement>(null);
  // Where the rows are no longer kept it begins anew: loading all of them for it would take long.
  const [firstOffset] = useState(() => {
    const kept = keptOffset(label);
    return kept < items.length * rowHeight ? kept : 0;
  });
  const rows = useVirtualizer({
    count: items.length,
    getScrollElement: () => scrolling.current,
    estimateSize: () => rowHeight,
    overscan: 5,
    useFlushSync: false,
    initialOffset: firstOffset,
  });
  const latest = useCallbackRef(choose);
  const chosen = choose && latest;
  const visible = rows.getVirtualItems();
  const last = visible.at(-1)?.index ?? 0;
  // The first ones come in stages. Columns that are as wide as what is in them would move with each.
  const drawn = useStaged(isPending ? undefined : visible.length, stage);
  const inView = fixed ? visible.slice(0, drawn) : visible;
  const isDrawn = items === listing.items;
  useEffect(() => {
    // What is here and not drawn yet is no end that somebody came near to.
    if (!isDrawn) return;
    if (hasNextPage && !isFetchingNextPage && !error && last >= items.length - 20) void fetchNextPage();
  }, [isDrawn, hasNextPage, isFetchingNextPage, error, last, items.length, fetchNextPage]);
  const showNewerAtTop = () => {
    if (newer && newer.count > 0 && isAtTop(scrolling.current)) newer.show();
  };
  useEffect(showNewerAtTop);
  const waiting = <Waiting heights={[36, 36, 36, 36, 36]} gap="xs" />;
  if (isPending) return waiting;
  const withBelow = (shown: ReactNode) => (
    <>
      {shown}
      {below}
    </>
  );
  if (error && items.length === 0) return withBelow(<Failure error={error} retry={refetch} />);
  if (items.length === 0 && !hasNextPage) return withBelow(empty);
  if (items.length === 0) {
    return (
      <Stack gap="xs">
        {waiting}
        <Status>{status ?? "Searching…"}</Status>
      </Stack>
    );
  }
  const room = roomOf(columns);
  const before = inView[0]?.start ?? 0;
  const behind = rows.getTotalSize() - (inView.at(-1)?.end ?? 0);
  return withBelow(
    <Stack gap="xs">
      <Paper withBorder pos="relative">
        {newer && newer.count > 0 && (
          <Button
            className="newer"
            size="compact-sm"
            leftSection={<ArrowUpIcon />}
            onClick={() => {
              newer.show();
              scrolling.current?.scrollTo({ top: 0 });
              // The button ends, and the keyboard must be somewhere.
              scrolling.current?.focus({ preventScroll: true });
            }}
          >
            {newer.count} new
          </Button>
        )}
        <ScrollRegion
          ref={scrolling}
          className="long-table"
          style={{ maxHeight: height }}
          label={label}
          onScroll={(event) => {
            keepOffset(label, event.currentTarget.scrollTop);
            showNewerAtTop();
          }}
        >
          <Table
            layout={fixed ? "fixed" : "auto"}
            data-wide-from={room.wideFrom}
            // In a fixed layout, columns without a width would shrink to nothing.
            {...(fixed
              ? { __vars: { "--table-least": `${room.narrow}rem`, "--table-least-wide": `${room.all}rem` } }
              : {})}
            aria-rowcount={hasNextPage ? -1 : items.length + 1}
            highlightOnHover={choose !== undefined}
            stickyHeader
          >
            <Table.Thead>
              <Table.Tr aria-rowindex={1}>
                {columns.map(({ name, head, numeric, width, wideOnly, sort }) => (
                  <Table.Th
                    key={name}
                    ta={numeric ? "right" : "left"}
                    style={width === undefined ? {} : { width }}
                    {...(wideOnly ? { className: "wide-only" } : {})}
                    {...(sort ? { "aria-sort": sort } : {})}
                  >
                    {head}
                  </Table.Th>
                ))}
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {before > 0 && <Space height={before} />}
              {inView.map(({ index }) => {
                const row = items[index] as Row;
                return <TableRow key={keyOf(row)} {...{ row, index, columns, height: rowHeight, choose: chosen }} />;
              })}
              {/* Another one after each stage: nothing that is in view moves. */}
              {behind > 0 && <Space key={`behind ${drawn}`} height={behind} />}
            </Table.Tbody>
          </Table>
        </ScrollRegion>
      </Paper>
      {error && <Failure error={error} retry={hasNextPage ? fetchNextPage : refetch} />}
      <Group gap="xs">
        <Status>
          {status ??
            (hasNextPage ? `${count(items.length)} so far; more as you scroll` : `${count(items.length)} in total`)}
        </Status>
        {isFetchingNextPage && <Loader size={14} aria-label="Loading more" />}
      </Group>
    </Stack>,
  );
}

function Status({ children }: { children: ReactNode }) {
  return (
    <Text size="xs" c="dimmed" aria-live="polite" component="div">
      {children}
    </Text>
  );
}

/** Also that nobody is at one of its rows by keyboard, which would move on under them. */
function isAtTop(element: HTMLElement | null): boolean {
  if (!element) return true;
  return element.scrollTop <= 4 && !element.querySelector("tbody :focus-visible");
}

function Space({ height }: { height: number }) {
  return (
    <tr>
      <td aria-hidden="true" style={{ height, padding: 0 }} />
    </tr>
  );
}
