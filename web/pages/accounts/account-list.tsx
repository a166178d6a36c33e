// All accounts of the installation, oldest first.
import { Modal, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useLocation } from "wouter";
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

export function AccountList() {
  const [, navigate] = useLocation();
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
      actions={add}
    >
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
      <Modal opened={adding} onClose={close} title="Create account">
        <CreateAccount close={close} done={({ id }) => navigate(`/admin/accounts/${id}?tab=members`)} />
      </Modal>
    </Page>
  );
}
