// The list of requests, newest first, filtered; in live mode new requests appear by themselves.
import { Button, Switch } from "@mantine/core";
import { useMemo, useState } from "react";
import { useLocation, useSearch } from "wouter";
import type { Query } from "../../api/client.ts";
import { type Names, useNames } from "../../api/names.ts";
import { nowSeconds } from "../../api/server-time.ts";
import { useSession } from "../../api/session.tsx";
import { AccountScope, useAllAccounts } from "../../parts/filters/account-scope.tsx";
import { SavedFilters } from "../../parts/filters/saved-filters.tsx";
import { useSpan } from "../../parts/filters/time-range.tsx";
import { useAddress } from "../../parts/page/address.ts";
import { Empty } from "../../parts/page/empty.tsx";
import { LinkButton, TextLink } from "../../parts/page/links.tsx";
import { NoneFound, SearchFurther } from "../../parts/page/none-found.tsx";
import { Page } from "../../parts/page/page.tsx";
import { recordAddress } from "../../parts/page/record-drawer.tsx";
import { LongTable } from "../../parts/table/long-table.tsx";
import { useRoom } from "../../parts/table/room.ts";
import { environmentNames } from "../../parts/words/environments.ts";
import { counted } from "../../parts/words/figures.ts";
import { momentText } from "../../parts/words/moment.tsx";
import { Note } from "../../parts/words/note.tsx";
import { columnsOf } from "./request-columns.tsx";
import { RequestExport } from "./request-export.tsx";
import { noFilter, queryOf, RequestFilters } from "./request-filters.tsx";
import { pathOfRequests, type RequestLog, useRequestLog } from "./request-log.ts";
import { RequestSearch } from "./request-search.tsx";

const remembered = "headrace-logs-live";

export function RequestList() {
  const { environment } = useSession();
  const [filter, change] = useAddress(noFilter);
  const names = useNames(true);
  const span = useSpan(filter);
  const isAll = useAllAccounts(filter.of);
  const query = useMemo(() => queryOf(filter, span, isAll), [filter, span, isAll]);
  const [isLive, setLive] = useState(() => localStorage.getItem(remembered) !== "off");
  const hasEnded = span.end !== undefined && span.end < nowSeconds();
  return (
    <Page
      title="Logs"
      about={`Finished and refused requests of ${isAll ? "all accounts" : "the account"} in ${environmentNames[environment]}, newest first. Metadata only, no content.`}
      actions={
        <>
          <AccountScope isAll={isAll} choose={(of) => change({ ...noFilter, of })} />
          <RequestSearch />
          <SavedFilters path="/requests" />
          <RequestExport path={pathOfRequests(isAll)} query={query} />
          <Switch
            label="Auto-refresh"
            checked={isLive && !hasEnded}
            disabled={hasEnded}
            onChange={({ currentTarget: { checked } }) => {
              localStorage.setItem(remembered, checked ? "on" : "off");
              setLive(checked);
            }}
          />
        </>
      }
    >
      <RequestFilters {...{ filter, change, names, isAll }} />
      <Log
        key={JSON.stringify([isAll, query])}
        {...{ query, names, isAll }}
        isLive={isLive && !hasEnded}
        showAll={
          Object.values(query).some((value) => value !== "") ? () => change({ ...noFilter, of: filter.of }) : undefined
        }
      />
    </Page>
  );
}

interface LogProps {
  query: Query;
  names: ReturnType<typeof useNames>;
  isLive: boolean;
  /** True if the page shows all accounts. */
  isAll: boolean;
  /** Removes all filters; undefined if no filter is active. */
  showAll: (() => void) | undefined;
}

function Log({ query, names, isLive, isAll, showAll }: LogProps) {
  const log = useRequestLog(pathOfRequests(isAll), query, isLive);
  const [, navigate] = useLocation();
  const search = useSearch();
  const room = useRoom();
  const columns = useMemo(() => {
    const hrefOf = (id: string) => recordAddress("/requests", id, search);
    const found = log.names;
    const ofAll: Names = { ...names, key: (id) => found[id] ?? names.key(id) };
    const accountOf = isAll ? (id: string) => found[id] ?? id : undefined;
    return columnsOf({ names: ofAll, room, hrefOf, accountOf });
  }, [names, room, search, log.names, isAll]);
  return (
    <LongTable
      label="Requests"
      listing={log}
      columns={columns}
      keyOf={({ id }) => id}
      choose={({ id }) => navigate(recordAddress("/requests", id, search))}
      rowHeight={53}
      fixed
      height="max(22rem, calc(100dvh - 22.5rem))"
      newer={log.newer}
      status={<Progress log={log} isLive={isLive} />}
      empty={<Nothing log={log} showAll={showAll} />}
    />
  );
}

function Progress({ log, isLive }: { log: RequestLog; isLive: boolean }) {
  const { items, hasNextPage, isPaused, searchedTo, liveError } = log;
  const rows = counted(items.length, "request");
  const back = searchedTo === null ? "" : `, searched back to ${momentText(searchedTo)}`;
  if (isPaused) {
    return (
      <>
        {rows}
        {back}. <SearchFurther goOn={log.goOn} />
      </>
    );
  }
  const far = hasNextPage ? `${rows} so far${back}; more as you scroll` : `${rows} in total`;
  const newer = liveError ? ". Newer requests cannot be loaded at the moment" : ". New requests appear automatically";
  return <>{`${far}${isLive ? newer : ""}`}</>;
}

function Nothing({ log, showAll }: { log: RequestLog; showAll: (() => void) | undefined }) {
  if (log.isPaused && log.searchedTo !== null) {
    return (
      <Empty
        title={`Nothing found back to ${momentText(log.searchedTo)}`}
        action={<Button onClick={log.goOn}>Search further back</Button>}
      >
        Matching requests are rare. Choose a time range to shorten the search.
      </Empty>
    );
  }
  return (
    <NoneFound
      what="request"
      showAll={showAll}
      filtered="No request in this environment matches the filters. Requests appear here when they have ended."
    >
      <Empty title="No requests yet" action={<LinkButton href="/playground">Try a model in the playground</LinkButton>}>
        <Note>
          Requests from programs, apps and the playground appear here when they have ended, with tokens, cost and times.
          The <TextLink href="/">overview</TextLink> shows how to make the first call.
        </Note>
      </Empty>
    </NoneFound>
  );
}
