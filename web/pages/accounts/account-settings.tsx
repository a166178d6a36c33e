// What holds for an account: name, tier, quotas of its own, stored chats; beside it what it used this month.
import { Button, Group, Paper, SimpleGrid, Stack, Switch, TextInput, Title } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { type FormEvent, useState } from "react";
import { call } from "../../api/client.ts";
import { useChange } from "../../api/queries.ts";
import { useSession } from "../../api/session.tsx";
import type { Account, AccountDetails, UpdateAccountRequest } from "../../api/types.ts";
import { AmountFields, amountOfOverride, overrideOf } from "../../parts/editing/amount-fields.tsx";
import { problemBeside, problemOf } from "../../parts/editing/field-problem.ts";
import { Failure } from "../../parts/page/failure.tsx";
import { accountAmounts, perAmount } from "../../parts/words/amounts.ts";
import { AccountMonth } from "./account-month.tsx";
import { TierSelect } from "./tier-select.tsx";

const fields = ["name", "tier", ...accountAmounts.map(({ wire }) => wire), "store_chats"] as const;

export function AccountSettings({ account }: { account: AccountDetails }) {
  // Somebody else's change begins the form anew.
  const version = JSON.stringify(fields.map((field) => account[field]));
  return (
    <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="lg">
      <Form key={version} account={account} />
      <AccountMonth account={account} />
    </SimpleGrid>
  );
}

function Form({ account }: { account: AccountDetails }) {
  const { session, refresh } = useSession();
  const [name, setName] = useState(account.name);
  const [tier, setTier] = useState(account.tier);
  const [amounts, setAmounts] = useState(perAmount(accountAmounts, ({ wire }) => amountOfOverride(account[wire])));
  const [storeChats, setStoreChats] = useState(account.store_chats);
  const save = useChange(
    (body: UpdateAccountRequest) => call<Account>("PATCH", `/v1/admin/accounts/${account.id}`, { body }),
    {
      stale: ["/v1/admin/accounts", "/v1/admin/tiers", "/v1/account"],
      done(changed) {
        notifications.show({ message: `Saved. It holds from the next request of ${changed.name} on.` });
        if (changed.id === session.account.id && changed.name !== session.account.name) void refresh();
      },
    },
  );
  const wanted: UpdateAccountRequest = {
    ...{ name, tier, store_chats: storeChats },
    ...perAmount(accountAmounts, ({ wire }) => overrideOf(amounts[wire])),
  };
  const changes = Object.fromEntries(
    fields.flatMap((field) => (wanted[field] === account[field] ? [] : [[field, wanted[field]]])),
  );
  const isSame = Object.keys(changes).length === 0;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    save.mutate(changes);
  };
  const problem = problemBeside(save.error, fields);
  return (
    <Paper withBorder p="lg">
      <form onSubmit={submit}>
        <Stack>
          <Title order={2}>Limits and settings</Title>
          <TextInput
            label="Name"
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
            error={problemOf(save.error, "name")}
            maxLength={100}
            required
          />
          <TierSelect value={tier} change={setTier} error={problemOf(save.error, "tier")} />
          <AmountFields
            of={accountAmounts}
            inherits="As the tier says"
            amounts={amounts}
            error={save.error}
            change={setAmounts}
          />
          <Switch
            label="Store chats"
            description="Where a request does not say whether its chat is stored, it is."
            checked={storeChats}
            onChange={(event) => setStoreChats(event.currentTarget.checked)}
          />
          {problem && <Failure error={problem} />}
          <Group justify="end">
            <Button type="submit" loading={save.isPending} disabled={isSame}>
              Save
            </Button>
          </Group>
        </Stack>
      </form>
    </Paper>
  );
}
