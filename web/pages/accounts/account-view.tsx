// The operators' view of an account: settings, members and keys.
import { Group, Skeleton, Stack, Tabs, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { useSearchParams } from "wouter";
import { useRead } from "../../api/queries.ts";
import type { AccountDetails } from "../../api/types.ts";
import { BackLink } from "../../parts/page/back-link.tsx";
import { Failure } from "../../parts/page/failure.tsx";
import { PlainLink } from "../../parts/page/links.tsx";
import { Page } from "../../parts/page/page.tsx";
import { CopyAction } from "../../parts/secrets/copy.tsx";
import { day } from "../../parts/words/figures.ts";
import { Note } from "../../parts/words/note.tsx";
import { AccountKeys } from "./account-keys.tsx";
import { AccountMembers } from "./account-members.tsx";
import { AccountSettings } from "./account-settings.tsx";
import { AccountState } from "./account-state.tsx";
import { Suspension } from "./suspension.tsx";

export function AccountView({ id }: { id: string }) {
  const [search, setSearch] = useSearchParams();
  const { data: account, error, refetch } = useRead<AccountDetails>(`/v1/admin/accounts/${encodeURIComponent(id)}`);
  const tab = search.get("tab") ?? "settings";
  const back = <BackLink href="/admin/accounts">All accounts</BackLink>;
  if (!account) {
    return (
      <Page title="Account" about={back}>
        {error ? <Failure error={error} retry={error.status === 404 ? undefined : refetch} /> : <Waiting />}
      </Page>
    );
  }
  return (
    <Page title={account.name} about={back} actions={<Suspension account={account} />}>
      <Group gap="md">
        <AccountState account={account} />
        <Text size="sm">Tier {account.tier}</Text>
        <Note>Created {day(account.created_at)}</Note>
        <Group gap={2} wrap="nowrap">
          <Note style={{ overflowWrap: "anywhere" }}>{account.id}</Note>
          <CopyAction value={account.id} label="Copy the id of the account" />
        </Group>
        <PlainLink href={`/statements?account=${account.id}`}>Statements</PlainLink>
      </Group>
      <Tabs
        value={tab}
        onChange={(value) => setSearch(value === null || value === "settings" ? {} : { tab: value })}
        keepMounted={false}
      >
        <Tabs.List aria-label="Account details">
          <Tabs.Tab value="settings">Limits and settings</Tabs.Tab>
          <Tabs.Tab value="members">Members</Tabs.Tab>
          <Tabs.Tab value="keys">API keys</Tabs.Tab>
        </Tabs.List>
        <Panel value="settings">
          <AccountSettings account={account} />
        </Panel>
        <Panel value="members">
          <AccountMembers account={account} />
        </Panel>
        <Panel value="keys">
          <AccountKeys account={account} />
        </Panel>
      </Tabs>
    </Page>
  );
}

function Panel({ value, children }: { value: string; children: ReactNode }) {
  return (
    <Tabs.Panel value={value} pt="lg">
      {children}
    </Tabs.Panel>
  );
}

function Waiting() {
  return (
    <Stack aria-busy="true">
      <Skeleton height={28} width="20rem" maw="100%" />
      <Skeleton height={220} />
    </Stack>
  );
}
