// A table of any length: it renders only visible rows, and loads more as the end comes near.
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
import { type Column, hidingClass, roomOf } from "./column.ts";
import { keepOffset, keptOffset } from "./scroll-offsets.ts";
import { useStaged } from "./staged.ts";
import { TableRow } from "./table-row.tsx";

/** The members of a listing that the table uses. A page with complete data can provide them too. */
export type Rows<Row> = Pick<
  Listing<Row>,
  "items" | "error" | "isPending" | "hasNextPage" | "isFetchingNextPage" | "fetchNextPage" | "refetch"
>;

/** Wraps complete rows as a listing. */
export function allRows<Row>(items: Row[]): Rows<Row> {
  const nothing = async () => undefined as never;
  return {
    ...{ items, error: null, isPending: false, hasNextPage: false, isFetchingNextPage: false },
    ...{ fetchNextPage: nothing, refetch: nothing },
  };
}

/** Rows that arrived at the top and are held back until the user asks for them or scrolls to the top. */
export interface Newer {
  count: number;
  show(): void;
}

interface LongTableProps<Row> {
  /** The name of the table for screen readers, such as "API keys". */
  label: string;
  listing: Rows<Row>;
  columns: readonly Column<Row>[];
  keyOf(row: Row): string;
  /** Shown if there is no row. */
  empty: ReactNode;
  /** The CSS height of the scrolling part. */
  height?: string;
  rowHeight?: number;
  /** Called when the user clicks a row; a cell should also hold a link or button for the keyboard. */
  choose?: (row: Row) => void;
  /** If true, column widths do not depend on the visible rows; a column without a width gets the rest. */
  fixed?: boolean;
  /** Set if new rows arrive at the top while the list is open. */
  newer?: Newer;
  /** A text about how far the list reaches, instead of the number of rows. */
  status?: ReactNode;
  /** Content below the table, rendered together with the rows, so that it does not move. */
  below?: ReactNode;
}

/** Number of rows that are added at a time. */
const stage = 3;

export function LongTable<Row>(props: LongTableProps<Row>) {
  const { label, listing, columns, keyOf, empty, height = "min(70vh, 48rem)", rowHeight = 45, choose } = props;
  const { fixed = false, newer, status, below } = props;
  const { error, hasNextPage, isFetchingNextPage, fetchNextPage, refetch } = listing;
  // Rows are rendered in slices to keep the browser responsive.
  const items = useDeferredValue(listing.items);
  const isPending = useDeferredValue(listing.isPending, true);
  const scrolling = useRef<HTMLDivElement>(null);
  // If the earlier rows are no longer cached, the list starts at the top, because loading all of them would take long.
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
  // In a fixed layout the first rows are rendered in stages: columns sized by content would change with each stage.
  const drawn = useStaged(isPending ? undefined : visible.length, stage);
  const inView = fixed ? visible.slice(0, drawn) : visible;
  const isDrawn = items === listing.items;
  useEffect(() => {
    // Rows that are loaded but not rendered yet do not count as reaching the end.
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
              // The button disappears, so the table gets the focus.
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
                    {...(wideOnly ? { className: hidingClass(wideOnly) } : {})}
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
              {/* The key changes with each stage, so that React replaces the spacer and visible rows do not move. */}
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

/** Reports whether the list is at its top and no row has the keyboard focus, because new rows would move that row. */
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
