// The API keys of an account, which an operator can create and revoke.
import { Code, Group, NativeSelect, Stack, Text, Title } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useSearchParams } from "wouter";
import { call } from "../../api/client.ts";
import { useList } from "../../api/queries.ts";
import type { Account, ApiKey } from "../../api/types.ts";
import { Confirm } from "../../parts/editing/confirm.tsx";
import { useQuestion } from "../../parts/editing/question.ts";
import { AddButton, SmallButton } from "../../parts/page/buttons.tsx";
import { Empty } from "../../parts/page/empty.tsx";
import type { Column } from "../../parts/table/column.ts";
import { LongTable } from "../../parts/table/long-table.tsx";
import { Ago } from "../../parts/words/ago.tsx";
import { allEnvironments, environmentChoices, environmentNames } from "../../parts/words/environments.ts";
import { KeyStatus, shownKey } from "../../parts/words/key-status.tsx";
import { CreateAccountKey } from "./create-account-key.tsx";

const environments = [{ value: "", label: "All environments" }, ...environmentChoices(allEnvironments)];

export function AccountKeys({ account }: { account: Account }) {
  const path = `/v1/admin/accounts/${account.id}/keys`;
  const [search, setSearch] = useSearchParams();
  const environment = search.get("environment") ?? "";
  const [adding, { open, close }] = useDisclosure();
  const listing = useList<ApiKey>(path, { limit: 100, environment });
  const revocation = useQuestion(({ id }: ApiKey) => call<ApiKey>("DELETE", `/v1/admin/keys/${id}`), {
    stale: [path],
    said: (_answer, { name }) => `The key “${name}” was revoked.`,
  });
  const columns: Column<ApiKey>[] = [
    {
      name: "name",
      head: "Name",
      cell: (key) => (
        <>
          <Text size="sm">{key.name}</Text>
          <Code>{shownKey(key)}</Code>
        </>
      ),
    },
    { name: "environment", head: "Environment", wideOnly: true, cell: (key) => environmentNames[key.environment] },
    { name: "status", head: "State", cell: (key) => <KeyStatus record={key} /> },
    { name: "used", head: "Last used", wideOnly: true, cell: ({ last_used_at }) => <Ago seconds={last_used_at} /> },
    { name: "ends", head: "Expires", wideOnly: true, cell: ({ expires_at }) => <Ago seconds={expires_at} /> },
    {
      name: "revoke",
      head: "Action",
      numeric: true,
      cell: (key) =>
        key.status === "active" && (
          <SmallButton onClick={() => revocation.ask(key)} aria-label={`Revoke ${key.name}`}>
            Revoke
          </SmallButton>
        ),
    },
  ];
  const add = <AddButton onClick={open}>Create API key</AddButton>;
  const isFiltered = environment !== "";
  return (
    <Stack>
      <Group justify="space-between" align="end">
        <Title order={2}>API keys</Title>
        <Group gap="xs" align="end">
          <NativeSelect
            label="Environment"
            data={environments}
            value={environment}
            onChange={(event) => {
              const { value } = event.currentTarget;
              setSearch(value === "" ? { tab: "keys" } : { tab: "keys", environment: value });
            }}
          />
          {add}
        </Group>
      </Group>
      <LongTable
        label={`API keys of ${account.name}`}
        listing={listing}
        columns={columns}
        keyOf={({ id }) => id}
        rowHeight={64}
        empty={
          <Empty
            title={isFiltered ? "No keys in this environment" : "No keys yet"}
            {...(isFiltered ? {} : { action: add })}
          >
            {isFiltered
              ? "Choose another environment to see its keys."
              : "Members create their own keys. Create a key here for an account without members, or for a first call."}
          </Empty>
        }
      />
      <CreateAccountKey opened={adding} close={close} account={account} />
      <Confirm {...revocation.dialog} title={`Revoke “${revocation.about?.name ?? ""}”?`} action="Revoke key">
        {account.name} can no longer use this key, starting with the next request. Keys created by it, and all access
        tokens made from them, are revoked as well. You cannot undo this.
      </Confirm>
    </Stack>
  );
}
