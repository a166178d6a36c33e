// All accounts of the installation, oldest first.
import { Modal, Stack, Tabs, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useLocation, useSearchParams } from "wouter";
import { useList } from "../../api/queries.ts";
import { useSession } from "../../api/session.tsx";
import type { Account } from "../../api/types.ts";
import { AddButton } from "../../parts/page/buttons.tsx";
import { Empty } from "../../parts/page/empty.tsx";
import { PlainLink } from "../../parts/page/links.tsx";
import { Page } from "../../parts/page/page.tsx";
import { LimitRequests } from "../../parts/quotas/limit-requests.tsx";
import type { Column } from "../../parts/table/column.ts";
import { LongTable } from "../../parts/table/long-table.tsx";
import { day } from "../../parts/words/figures.ts";
import { AccountState } from "./account-state.tsx";
import { CreateAccount } from "./create-account.tsx";
import { overrideText } from "./limit-text.ts";
import { Organizations } from "./organizations.tsx";

export function AccountList() {
  const [, navigate] = useLocation();
  const [search, setSearch] = useSearchParams();
  const isOrganizations = search.get("tab") === "organizations";
  const [adding, { open, close }] = useDisclosure();
  const listing = useList<Account>("/v1/admin/accounts", { limit: 100 });
  const { account: own } = useSession().session;
  const columns: Column<Account>[] = [
    {
      name: "name",
      head: "Name",
      cell: ({ id, name }) => (
        <>
          <PlainLink href={`/admin/accounts/${id}`} fw={500}>
            {name}
          </PlainLink>
          {id === own.id && (
            <Text span size="xs" c="dimmed">
              {" "}
              (yours)
            </Text>
          )}
        </>
      ),
    },
    { name: "tier", head: "Tier", cell: ({ tier }) => tier },
    { name: "status", head: "State", cell: (account) => <AccountState account={account} /> },
    {
      name: "quota",
      head: "Own limits",
      wideOnly: true,
      cell(account) {
        const own = overrideText(account);
        return (
          <Text span size="sm" c={own ? "" : "dimmed"}>
            {own ?? "same as the tier"}
          </Text>
        );
      },
    },
    { name: "created", head: "Created", wideOnly: true, cell: ({ created_at }) => day(created_at) },
  ];
  const add = <AddButton onClick={open}>Create account</AddButton>;
  return (
    <Page
      title="Accounts"
      about="Each account has its own keys, members, quotas and stored chats. The tier of an account sets its limits."
      actions={isOrganizations ? undefined : add}
    >
      <Tabs
        value={isOrganizations ? "organizations" : "accounts"}
        onChange={(value) => setSearch(value === "organizations" ? { tab: value } : {})}
        keepMounted={false}
      >
        <Tabs.List aria-label="Accounts and organizations">
          <Tabs.Tab value="accounts">Accounts</Tabs.Tab>
          <Tabs.Tab value="organizations">Organizations</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="organizations" pt="lg">
          <Organizations />
        </Tabs.Panel>
        <Tabs.Panel value="accounts" pt="lg">
          <Stack>
            <LimitRequests path="/v1/admin/limit-requests" mayDecide={() => true} />
            <LongTable
              label="Accounts"
              listing={listing}
              columns={columns}
              keyOf={({ id }) => id}
              choose={({ id }) => navigate(`/admin/accounts/${id}`)}
              empty={
                <Empty title="No accounts yet" action={add}>
                  Create an account, then invite its owner or create its first API key.
                </Empty>
              }
            />
          </Stack>
        </Tabs.Panel>
      </Tabs>
      <Modal opened={adding} onClose={close} title="Create account">
        <CreateAccount close={close} done={({ id }) => navigate(`/admin/accounts/${id}?tab=members`)} />
      </Modal>
    </Page>
  );
}
