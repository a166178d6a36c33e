// All keys of an environment, with search, a status filter and the creation of a key.
import { Code, Group, NativeSelect, Stack, Text } from "@mantine/core";
import { SearchIcon } from "@primer/octicons-react";
import { useMemo } from "react";
import { useLocation } from "wouter";
import { useList } from "../../api/queries.ts";
import { useSession } from "../../api/session.tsx";
import type { ApiKey } from "../../api/types.ts";
import { Sparkline } from "../../parts/chart/sparkline.tsx";
import { SearchField } from "../../parts/filters/search-field.tsx";
import { useAddress } from "../../parts/page/address.ts";
import { AddButton } from "../../parts/page/buttons.tsx";
import { Empty } from "../../parts/page/empty.tsx";
import { PlainLink } from "../../parts/page/links.tsx";
import { NoneFound } from "../../parts/page/none-found.tsx";
import { Page } from "../../parts/page/page.tsx";
import type { Column } from "../../parts/table/column.ts";
import { LongTable } from "../../parts/table/long-table.tsx";
import { timeColumn } from "../../parts/table/time-column.tsx";
import { environmentNames } from "../../parts/words/environments.ts";
import { short } from "../../parts/words/figures.ts";
import { KeyStatus, shownKey } from "../../parts/words/key-status.tsx";
import { SmallNote } from "../../parts/words/note.tsx";
import { CreateKey } from "./create-key.tsx";
import { type UsageByKey, usageDays, useUsageByKey } from "./key-usage.ts";

const path = "/settings/api-keys";
/** The parameters of the page's address. `create` tells whether the dialog for a new key is open. */
const asked = { search: "", status: "", create: "" };

export function KeyList() {
  const { environment, isManager } = useSession();
  const [, navigate] = useLocation();
  const [{ search, status, create: making }, change] = useAddress(asked);
  const listing = useList<ApiKey>("/v1/keys", { search, status, limit: 100 });
  const usage = useUsageByKey();
  const columns = useMemo(() => columnsOf(usage.data, usage.isPending), [usage.data, usage.isPending]);
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
              { value: "expired", label: "Expired" },
              { value: "revoked", label: "Revoked" },
            ]}
          />
        </Group>
      )}
      <LongTable
        label="API keys"
        listing={listing}
        columns={columns}
        keyOf={({ id }) => id}
        rowHeight={60}
        choose={({ id }) => navigate(`${path}/${id}`)}
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

function columnsOf(usage: UsageByKey | null | undefined, isWaiting: boolean): Column<ApiKey>[] {
  return [
    {
      name: "name",
      head: "Key",
      cell: (key) => (
        <Stack gap={0}>
          <PlainLink href={`${path}/${key.id}`} fw={600} lineClamp={1}>
            {key.name}
          </PlainLink>
          <SmallNote ff="monospace" truncate>
            {[shownKey(key), ...key.tags].join(" · ")}
          </SmallNote>
        </Stack>
      ),
    },
    { name: "status", head: "State", cell: (key) => <KeyStatus record={key} />, width: "10.5rem" },
    {
      name: "scopes",
      head: "Permissions",
      cell: ({ scopes }) => (
        <Text size="xs" lineClamp={2}>
          {scopes.join(", ")}
        </Text>
      ),
      wideOnly: true,
      width: "13rem",
    },
    timeColumn({ name: "created", head: "Created", width: "7.5rem", at: ({ created_at }) => created_at }),
    timeColumn({ name: "used", head: "Last used", width: "7.5rem", at: ({ last_used_at }) => last_used_at }),
    {
      name: "usage",
      head: `Requests, ${usageDays} days`,
      cell: ({ id }) => <Usage values={usage?.get(id)} isKnown={usage !== null && !isWaiting} />,
      wideOnly: true,
      width: "10.5rem",
      numeric: true,
    },
  ];
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
