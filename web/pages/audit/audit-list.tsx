// The audit events, newest first, filtered by the page's address.
import { Anchor, Skeleton, Stack, Text } from "@mantine/core";
import { useMemo, useState } from "react";
import type { Query } from "../../api/client.ts";
import { useList } from "../../api/queries.ts";
import type { AuditEvent } from "../../api/types.ts";
import { FormDrawer } from "../../parts/editing/form-drawer.tsx";
import { useSpan } from "../../parts/filters/time-range.tsx";
import { useAddress } from "../../parts/page/address.ts";
import { Empty } from "../../parts/page/empty.tsx";
import { NoneFound, SearchFurther } from "../../parts/page/none-found.tsx";
import { usePatience } from "../../parts/page/patience.ts";
import type { Column } from "../../parts/table/column.ts";
import { LongTable } from "../../parts/table/long-table.tsx";
import { type Room, useRoom } from "../../parts/table/room.ts";
import { counted } from "../../parts/words/figures.ts";
import { Moment, MomentLines } from "../../parts/words/moment.tsx";
import { Note, SmallNote } from "../../parts/words/note.tsx";
import { actionName, isAction } from "./action-names.ts";
import { AuditFilters, noFilter } from "./audit-filters.tsx";
import { type AuditNames, useAuditNames } from "./audit-names.ts";
import { textOf } from "./audit-text.ts";
import { EventView } from "./event-view.tsx";

export function AuditList({ path, isOfAll = false }: { path: "/v1/audit" | "/v1/admin/audit"; isOfAll?: boolean }) {
  const [filter, change] = useAddress(noFilter);
  const span = useSpan(filter);
  const names = useAuditNames(isOfAll);
  const { action, target, account } = filter;
  const query: Query = {
    ...{ limit: 100, target, ...span },
    action: isAction(action) ? action : "",
    ...(isOfAll ? { account } : {}),
  };
  const isFiltered = Object.values(filter).some((value) => value !== "");
  return (
    <>
      <AuditFilters {...{ filter, change, names, isOfAll }} />
      <Events
        key={JSON.stringify(query)}
        {...{ path, query, names, isOfAll, change }}
        showAll={isFiltered ? () => change(noFilter) : undefined}
      />
    </>
  );
}

interface EventsProps {
  path: string;
  query: Query;
  names: AuditNames;
  isOfAll: boolean;
  change(changes: Partial<typeof noFilter>): void;
  /** Removes all filters; undefined if no filter is active. */
  showAll: (() => void) | undefined;
}

function Events({ path, query, names, isOfAll, change, showAll }: EventsProps) {
  const listing = useList<AuditEvent>(path, query);
  const patience = usePatience(listing.data?.pages, listing.hasNextPage);
  const [opened, open] = useState<AuditEvent>();
  const room = useRoom();
  const isNarrow = room === "narrow";
  const columns = useMemo(() => columnsOf({ names, isOfAll, room, open }), [names, isOfAll, room]);
  return (
    <>
      <LongTable
        label="Events"
        listing={{ ...listing, hasNextPage: listing.hasNextPage && !patience.isPaused }}
        columns={columns}
        keyOf={({ id }) => id}
        choose={open}
        rowHeight={isNarrow ? 80 : 53}
        fixed
        height="max(22rem, calc(100dvh - 22.5rem))"
        status={
          patience.isPaused ? (
            <>
              {counted(listing.items.length, "event")} found so far. <SearchFurther goOn={patience.goOn} />
            </>
          ) : undefined
        }
        empty={
          <NoneFound
            what="event"
            {...{ patience, showAll }}
            filtered="No stored event matches the filters. The field Object needs a full id."
          >
            <Empty title="No events yet">Changes to keys, members and apps appear here.</Empty>
          </NoneFound>
        }
      />
      <FormDrawer of={opened} title={({ action }) => actionName(action)} size="32rem" close={() => open(undefined)}>
        {(event) => (
          <EventView
            key={event.id}
            {...{ event, names }}
            only={(target) => {
              open(undefined);
              change({ target });
            }}
          />
        )}
      </FormDrawer>
    </>
  );
}

interface ColumnOptions {
  names: AuditNames;
  isOfAll: boolean;
  room: Room;
  open(event: AuditEvent): void;
}

function columnsOf({ names, isOfAll, room, open }: ColumnOptions): Column<AuditEvent>[] {
  const isNarrow = room === "narrow";
  const what: Column<AuditEvent> = {
    name: "event",
    head: "Event",
    cell: (event) => {
      // The sentence waits for the names, because a name that replaces an id later would move the text.
      if (names.isPending) return <Skeleton height={16} />;
      const { who, did, more } = textOf(event, names);
      return (
        <Stack gap={0}>
          <Anchor
            {...{ component: "button", type: "button", size: "sm", ta: "left" }}
            onClick={() => open(event)}
            lineClamp={isNarrow ? 2 : 1}
          >
            <b>{who}</b> {did}
          </Anchor>
          <SmallNote truncate title={more}>
            {isNarrow ? <Moment seconds={event.at} /> : more}
          </SmallNote>
        </Stack>
      );
    },
  };
  if (isNarrow) return [what];
  return [
    { name: "time", head: "Time", width: "6.75rem", cell: ({ at }) => <MomentLines seconds={at} /> },
    what,
    ...(isOfAll
      ? [
          {
            ...{ name: "account", head: "Account", width: "11rem" },
            cell: ({ account_id }: AuditEvent) => (
              <Text size="sm" truncate>
                {account_id === null ? "" : names.account(account_id)}
              </Text>
            ),
          },
        ]
      : []),
    ...(room === "wide" || !isOfAll
      ? [
          {
            ...{ name: "address", head: "From", width: "9.5rem" },
            cell: ({ client_address }: AuditEvent) => (
              <Note truncate className="numeric">
                {client_address ?? ""}
              </Note>
            ),
          },
        ]
      : []),
  ];
}
