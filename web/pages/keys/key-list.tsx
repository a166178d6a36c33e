// Lists the keys of an environment, with search, sorting, the creation of a key and the revocation of several.
import { Button, Checkbox, Code, Group, NativeSelect, Stack } from "@mantine/core";
import { SearchIcon } from "@primer/octicons-react";
import { useCallback, useState } from "react";
import { useLocation } from "wouter";
import { useList, useRead } from "../../api/queries.ts";
import { useSession } from "../../api/session.tsx";
import type { ApiKey, Member, MemberList } from "../../api/types.ts";
import { Sparkline } from "../../parts/chart/sparkline.tsx";
import { SearchField } from "../../parts/filters/search-field.tsx";
import { useAddress } from "../../parts/page/address.ts";
import { AddButton, PlainButton } from "../../parts/page/buttons.tsx";
import { Empty } from "../../parts/page/empty.tsx";
import { PlainLink } from "../../parts/page/links.tsx";
import { NoneFound } from "../../parts/page/none-found.tsx";
import { Page } from "../../parts/page/page.tsx";
import type { Column } from "../../parts/table/column.ts";
import { LongTable } from "../../parts/table/long-table.tsx";
import { sortable } from "../../parts/table/sort-head.tsx";
import { timeColumn } from "../../parts/table/time-column.tsx";
import { type SortValue, useWholeList } from "../../parts/table/whole-list.ts";
import { Ago } from "../../parts/words/ago.tsx";
import { environmentNames } from "../../parts/words/environments.ts";
import { count, counted, money, short } from "../../parts/words/figures.ts";
import { KeyStatus, shownKey } from "../../parts/words/key-status.tsx";
import { SmallNote } from "../../parts/words/note.tsx";
import { CreateKey } from "./create-key.tsx";
import { type SpendByKey, type UsageByKey, usageDays, useSpendByKey, useUsageByKey } from "./key-usage.ts";
import { useRevokeKeys } from "./revoke-keys.tsx";
import { RotationSchedule } from "./rotation-schedule.tsx";

const path = "/settings/api-keys";
/** The parameters of the page's address. `create` tells whether the dialog for a new key is open. */
const asked = { search: "", status: "", create: "", sort: "" };
const none: ReadonlyMap<string, ApiKey> = new Map();

export function KeyList() {
  const { environment, isManager } = useSession();
  const [, navigate] = useLocation();
  const [{ search, status, create: making, sort }, change] = useAddress(asked);
  const newest = useList<ApiKey>("/v1/keys", { search, status, limit: 100 });
  const spend = useSpendByKey();
  const orderOf = useCallback((name: string) => sortValueOf(name, spend.data), [spend.data]);
  const sorted = useWholeList<ApiKey>("/v1/keys", { search, status }, sort, orderOf);
  const listing = sort === "" ? newest : sorted.listing;
  const usage = useUsageByKey();
  const members = useRead<MemberList>("/v1/members", { limit: 100 }, { enabled: isManager });
  const filter = `${search}\n${status}`;
  const [selection, setSelection] = useState({ filter, keys: none });
  // A key that the filter may hide must not be revoked with the others.
  const selected = selection.filter === filter ? selection.keys : none;
  const select = (keys: ReadonlyMap<string, ApiKey>) => setSelection({ filter, keys });
  const revocation = useRevokeKeys(() => select(none));
  const columns = columnsOf({
    ...{ usage: usage.data, isWaiting: usage.isPending, spend: spend.data, sort, selected, select },
    ...{ changeSort: (order: string) => change({ sort: order }), listed: listing.items },
    ...(isManager ? { members: members.data?.data ?? [] } : {}),
  });
  const create = <AddButton onClick={() => change({ create: "1" })}>Create API key</AddButton>;
  const isFiltered = search !== "" || status !== "";
  return (
    <Page
      title="API Keys"
      about={`Programs authenticate with an API key. ${isManager ? "The list shows all keys of the account" : "The list shows your keys"} in ${environmentNames[environment]}.`}
      actions={create}
    >
      {(isFiltered || listing.isPending || listing.items.length > 0) && (
        <Group gap="sm" align="end">
          <SearchField
            aria-label="Search keys"
            placeholder="Name, id or last 4 characters"
            leftSection={<SearchIcon />}
            value={search}
            maxLength={100}
            cleaned={withoutSecret}
            change={(text) => change({ search: text })}
            w={{ base: "100%", xs: "18rem" }}
          />
          <NativeSelect
            aria-label="State"
            value={status}
            onChange={(event) => change({ status: event.currentTarget.value })}
            data={[
              { value: "", label: "All states" },
              { value: "active", label: "Active" },
              { value: "suspended", label: "Suspended" },
              { value: "expired", label: "Expired" },
              { value: "revoked", label: "Revoked" },
            ]}
          />
          {selected.size > 0 && (
            <>
              <Button variant="light" color="red" onClick={() => revocation.ask([...selected.values()])}>
                Revoke {counted(selected.size, "key")}
              </Button>
              <PlainButton onClick={() => select(none)}>Clear selection</PlainButton>
            </>
          )}
        </Group>
      )}
      <LongTable
        label="API keys"
        listing={listing}
        columns={columns}
        keyOf={({ id }) => id}
        rowHeight={60}
        choose={({ id }) => navigate(`${path}/${id}`)}
        status={
          sorted.isAll
            ? undefined
            : `The newest ${count(listing.items.length)} keys, sorted. Search to find older keys.`
        }
        below={
          isManager && (
            <RotationSchedule
              path="/v1/account/key-rotation"
              about="Applies to the keys of all environments, except operators' keys. A key can have a schedule of its own."
            />
          )
        }
        empty={
          <NoneFound
            what="key"
            showAll={isFiltered ? () => change(asked) : undefined}
            filtered="No key in this environment matches the search and the state."
          >
            <Empty title="Create the first API key" action={create}>
              A program needs a key to use the models of this server. After you create one, you get a first request to
              copy and run. From a terminal: <Code>npx headrace keys create my-program</Code>
            </Empty>
          </NoneFound>
        }
      />
      {revocation.view}
      <CreateKey opened={making !== ""} close={() => change({ create: "" })} />
    </Page>
  );
}

/**
 * Cuts a pasted key to its last characters, which suffice to find it; the secret must not enter the address and the
 * browser's history.
 */
function withoutSecret(text: string): string {
  return text.replace(/sk_[a-z]+_\w{12,}/g, (key) => key.slice(-4));
}

function sortValueOf(name: string, spend: SpendByKey | undefined): SortValue<ApiKey> {
  if (name === "name") return (key) => key.name;
  if (name === "spend") return ({ id }) => spend?.get(id) ?? 0;
  return name === "used" ? (key) => key.last_used_at ?? 0 : (key) => key.created_at;
}

interface ColumnsAsked {
  usage: UsageByKey | null | undefined;
  isWaiting: boolean;
  spend: SpendByKey | undefined;
  /** The members of the account; absent for a user who sees only own keys. */
  members?: readonly Member[];
  sort: string;
  changeSort(order: string): void;
  selected: ReadonlyMap<string, ApiKey>;
  select(keys: ReadonlyMap<string, ApiKey>): void;
  listed: readonly ApiKey[];
}

function columnsOf(asked: ColumnsAsked): Column<ApiKey>[] {
  const { usage, isWaiting, spend, members, sort, changeSort, selected, select, listed } = asked;
  const head = (name: string, text: string, first: "rises" | "falls" = "falls") =>
    sortable({ name, text, order: sort, first, change: changeSort });
  const active = listed.filter(isActive);
  const isAll = selected.size > 0 && active.every(({ id }) => selected.has(id));
  const name = head("name", "Key", "rises");
  const names = members && new Map(members.map((member) => [member.person_id, member.name || member.email]));
  return [
    {
      name: "name",
      width: "12rem",
      ...name,
      head: (
        <Group gap="xs" wrap="nowrap">
          <Checkbox
            size="xs"
            aria-label="Select all listed keys"
            checked={isAll}
            indeterminate={!isAll && selected.size > 0}
            disabled={active.length === 0}
            onChange={() => select(isAll ? none : new Map(active.map((key) => [key.id, key])))}
          />
          {name.head}
        </Group>
      ),
      cell: (key) => (
        <Group gap="xs" wrap="nowrap">
          <Checkbox
            size="xs"
            aria-label={`Select ${key.name}`}
            checked={selected.has(key.id)}
            disabled={!isActive(key)}
            onChange={() => select(toggled(selected, key))}
          />
          <Stack gap={0} miw={0}>
            <PlainLink href={`${path}/${key.id}`} fw={600} lineClamp={1}>
              {key.name}
            </PlainLink>
            <SmallNote ff="monospace" truncate>
              {[shownKey(key), ...key.tags].join(" · ")}
            </SmallNote>
          </Stack>
        </Group>
      ),
    },
    { name: "status", head: "State", cell: (key) => <KeyStatus record={key} />, width: "10.5rem" },
    {
      name: "created",
      ...head("created", "Created"),
      cell: (key) => (
        <>
          <div className="cell-line">
            <Ago seconds={key.created_at} />
          </div>
          {names && <div className="cell-note">by {ownerOf(key, names)}</div>}
        </>
      ),
      wideOnly: true,
      width: "9rem",
    },
    timeColumn({
      ...{ name: "used", ...head("used", "Last used"), width: "8rem", wideOnly: "middle" },
      at: ({ last_used_at }) => last_used_at,
    }),
    {
      name: "spend",
      ...head("spend", "Spend, month"),
      cell: ({ id }) => (spend ? money(spend.get(id) ?? 0) : ""),
      wideOnly: "middle",
      width: "8.5rem",
      numeric: true,
    },
    {
      name: "usage",
      head: `Requests, ${usageDays} days`,
      cell: ({ id }) => <Usage values={usage?.get(id)} isKnown={usage !== null && !isWaiting} />,
      wideOnly: true,
      width: "9rem",
      numeric: true,
    },
  ];
}

function isActive({ status }: ApiKey): boolean {
  return status === "active";
}

function toggled(selected: ReadonlyMap<string, ApiKey>, key: ApiKey): ReadonlyMap<string, ApiKey> {
  const next = new Map(selected);
  if (!next.delete(key.id)) next.set(key.id, key);
  return next;
}

function ownerOf({ created_by: id }: ApiKey, names: ReadonlyMap<string, string>): string {
  if (id === null) return "the server";
  return names.get(id) ?? (id.startsWith("key_") ? "another key" : "a former member");
}

function Usage({ values, isKnown }: { values: readonly number[] | undefined; isKnown: boolean }) {
  if (!isKnown) return "";
  const sum = values?.reduce((all, one) => all + one, 0) ?? 0;
  return (
    <Group gap="xs" wrap="nowrap" justify="end">
      {values && sum > 0 && <Sparkline values={values} />}
      <span className="numeric">{short(sum)}</span>
    </Group>
  );
}
