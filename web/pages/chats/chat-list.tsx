// The stored chats, newest first, with search and deletion of one or many.
import { Button, Group, Paper, Text } from "@mantine/core";
import { TrashIcon } from "@primer/octicons-react";
import { useMemo, useState } from "react";
import { useLocation, useSearch } from "wouter";
import type { Query } from "../../api/client.ts";
import { useList } from "../../api/queries.ts";
import { useSession } from "../../api/session.tsx";
import type { StoredChatCompletion } from "../../api/types.ts";
import { useAddress } from "../../parts/page/address.ts";
import { SmallButton } from "../../parts/page/buttons.tsx";
import { NoneFound, SearchFurther } from "../../parts/page/none-found.tsx";
import { Page } from "../../parts/page/page.tsx";
import { type Patience, usePatience } from "../../parts/page/patience.ts";
import { recordAddress } from "../../parts/page/record-drawer.tsx";
import { LongTable } from "../../parts/table/long-table.tsx";
import { useRoom } from "../../parts/table/room.ts";
import { environmentNames } from "../../parts/words/environments.ts";
import { count, counted } from "../../parts/words/figures.ts";
import { columnsOf, type Selection } from "./chat-columns.tsx";
import { noFilter, queryOf } from "./chat-filter.ts";
import { ChatFilters } from "./chat-filters.tsx";
import { DeleteChats } from "./delete-chats.tsx";
import { HowToStore } from "./how-to-store.tsx";

export function ChatList() {
  const { environment, isManager } = useSession();
  const [filter, change] = useAddress(noFilter);
  const query = useMemo(() => queryOf(filter), [filter]);
  const isFiltered = Object.values(filter).some((value) => value !== "");
  return (
    <Page
      title="Chats"
      about={`Stored chats ${isManager ? "of the account" : "of yours"} in ${environmentNames[environment]}. Each chat is kept until it expires.`}
    >
      <ChatFilters filter={filter} change={change} />
      <Chats key={JSON.stringify(query)} query={query} showAll={isFiltered ? () => change(noFilter) : undefined} />
    </Page>
  );
}

interface ChatsProps {
  query: Query;
  /** Removes all filters; undefined if no filter is active. */
  showAll: (() => void) | undefined;
}

function Chats({ query, showAll }: ChatsProps) {
  const listing = useList<StoredChatCompletion>("/v1/chat/completions", query);
  const patience = usePatience(listing.data?.pages, listing.hasNextPage);
  const selection = useSelection(listing.items);
  const [isDeleting, setDeleting] = useState(false);
  const [, navigate] = useLocation();
  const search = useSearch();
  const room = useRoom();
  const columns = useMemo(() => {
    const hrefOf = (id: string) => recordAddress("/chats", id, search);
    return columnsOf({ selection, room, hrefOf });
  }, [selection, room, search]);
  const { size } = selection.ids;
  return (
    <>
      {size > 0 && (
        <Paper withBorder px="md" py="xs" component="section" aria-label="Selected">
          <Group justify="space-between">
            <Text size="sm" role="status">
              {count(size)} selected
            </Text>
            <Group gap="xs">
              <SmallButton onClick={() => selection.setAll(false)}>Clear selection</SmallButton>
              <Button
                {...{ size: "xs", variant: "light", color: "red" }}
                leftSection={<TrashIcon size={14} />}
                onClick={() => setDeleting(true)}
              >
                Delete {count(size)}
              </Button>
            </Group>
          </Group>
        </Paper>
      )}
      <LongTable
        label="Stored chats"
        listing={{ ...listing, hasNextPage: listing.hasNextPage && !patience.isPaused }}
        columns={columns}
        keyOf={({ id }) => id}
        choose={({ id }) => navigate(recordAddress("/chats", id, search))}
        rowHeight={53}
        fixed
        height="max(22rem, calc(100dvh - 22.5rem))"
        status={<Progress {...{ listing, patience }} isSearch={Boolean(query["search"])} />}
        empty={
          <NoneFound
            what="chat"
            {...{ patience, showAll }}
            filtered="No stored chat in this environment matches the text, model and labels. Labels must match exactly."
          >
            <HowToStore />
          </NoneFound>
        }
      />
      <DeleteChats ids={[...selection.ids]} opened={isDeleting} close={() => setDeleting(false)} />
    </>
  );
}

/** The selected chats among the listed ones; a deleted chat is no longer selected. */
function useSelection(items: readonly StoredChatCompletion[]): Selection {
  const [chosen, choose] = useState<ReadonlySet<string>>(new Set());
  return useMemo(() => {
    const ids = new Set(items.map(({ id }) => id).filter((id) => chosen.has(id)));
    return {
      ids,
      all: ids.size === 0 ? "none" : ids.size === items.length ? "all" : "some",
      set(id, isSelected) {
        const next = new Set(ids);
        if (isSelected) next.add(id);
        else next.delete(id);
        choose(next);
      },
      setAll: (isSelected) => choose(new Set(isSelected ? items.map(({ id }) => id) : [])),
    };
  }, [items, chosen]);
}

interface ProgressProps {
  listing: { items: readonly unknown[]; hasNextPage: boolean };
  patience: Patience;
  isSearch: boolean;
}

function Progress({ listing: { items, hasNextPage }, patience, isSearch }: ProgressProps) {
  const rows = counted(items.length, "chat");
  if (patience.isPaused) {
    return (
      <>
        {rows} found so far. <SearchFurther goOn={patience.goOn} />
      </>
    );
  }
  if (!hasNextPage) return <>{rows} in total</>;
  return <>{isSearch ? `${rows} found so far; older ones are searched` : `${rows} so far; more as you scroll`}</>;
}
