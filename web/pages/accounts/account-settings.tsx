// The settings of an account: name, tier, own quotas, stored chats; beside them this month's usage.
import { Paper, SimpleGrid, Stack, Switch, TextInput, Title } from "@mantine/core";
import { useState } from "react";
import { call } from "../../api/client.ts";
import { useSession } from "../../api/session.tsx";
import type { Account, AccountDetails, UpdateAccountRequest } from "../../api/types.ts";
import { AmountFields, amountOfOverride, overrideOf } from "../../parts/editing/amount-fields.tsx";
import { changedMembers } from "../../parts/editing/changed-members.ts";
import { problemOf } from "../../parts/editing/field-problem.ts";
import { Form } from "../../parts/editing/form.tsx";
import { useNotifiedChange } from "../../parts/editing/notified-change.ts";
import { useFirstProblem } from "../../parts/editing/use-first-problem.ts";
import { quotaDraftsOf, quotasError, quotasProblemOf, rulesOf } from "../../parts/quotas/quota-draft.ts";
import { type ToolList, toolListError } from "../../parts/tools/tool-entries.ts";
import { ToolListField } from "../../parts/tools/tool-list-field.tsx";
import { accountAmounts, perAmount } from "../../parts/words/amounts.ts";
import { AccountMonth } from "./account-month.tsx";
import { AccountOrganization } from "./account-organization.tsx";
import { AccountQuotas } from "./account-quotas.tsx";
import { TierSelect } from "./tier-select.tsx";

const fields = ["name", "tier", ...accountAmounts.map(({ wire }) => wire), "quotas", "store_chats", "tools"] as const;

export function AccountSettings({ account }: { account: AccountDetails }) {
  const [form, setForm] = useState<{ key: string; versions: readonly string[] }>();
  const version = versionOf(account);
  // Another user's change resets the form. The user's own save must not, because more may be typed before the account
  // is read again.
  const key = form?.versions.includes(version) ? form.key : version;
  const keep = (changed: Account) => {
    const versions = form?.key === key ? form.versions : [key];
    setForm({ key, versions: [...versions, versionOf(changed)] });
  };
  return (
    <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="lg">
      <SettingsForm key={key} account={account} saved={keep} />
      <Stack gap="lg">
        <AccountOrganization account={account} />
        <AccountMonth account={account} />
      </Stack>
    </SimpleGrid>
  );
}

/** Returns a string that changes with the settings that the form shows. */
function versionOf(account: Account): string {
  return JSON.stringify(fields.map((field) => account[field]));
}

function SettingsForm({ account, saved }: { account: AccountDetails; saved(changed: Account): void }) {
  const { session, refresh } = useSession();
  const [name, setName] = useState(account.name);
  const [tier, setTier] = useState(account.tier);
  const [amounts, setAmounts] = useState(perAmount(accountAmounts, ({ wire }) => amountOfOverride(account[wire])));
  const [quotas, setQuotas] = useState(() => account.quotas && quotaDraftsOf(account.quotas));
  const [found, setFound] = useState<string>();
  const [tools, setTools] = useState<ToolList>(account.tools);
  const [storeChats, setStoreChats] = useState(account.store_chats);
  const save = useNotifiedChange(
    (body: UpdateAccountRequest) => call<Account>("PATCH", `/v1/admin/accounts/${account.id}`, { body }),
    {
      stale: ["/v1/admin/accounts", "/v1/admin/tiers", "/v1/account"],
      said: (changed) => `Saved. The change applies to the next request of ${changed.name}.`,
      done(changed) {
        saved(changed);
        if (changed.id === session.account.id && changed.name !== session.account.name) void refresh();
      },
    },
  );
  const wanted: UpdateAccountRequest = {
    ...{ name, tier, store_chats: storeChats, tools: tools && [...tools] },
    ...perAmount(accountAmounts, ({ wire }) => overrideOf(amounts[wire])),
    quotas: quotas && rulesOf(quotas),
  };
  const before: UpdateAccountRequest = {
    ...Object.fromEntries(fields.map((field) => [field, account[field]])),
    quotas: account.quotas && rulesOf(quotaDraftsOf(account.quotas)),
  };
  const changes = changedMembers(wanted, before);
  const isSame = Object.keys(changes).length === 0;
  const quotaError = found ?? quotasProblemOf(save.error);
  const toolsError = toolListError(tools) ?? problemOf(save.error, "tools");
  const ref = useFirstProblem(quotaError, toolsError);
  const submit = () => {
    const error = quotasError(quotas ?? []);
    setFound(error);
    if (error === undefined && toolListError(tools) === undefined) save.mutate(changes);
  };
  return (
    <Paper withBorder p="lg">
      <Form ref={ref} sending={save} fields={fields} action="Save" disabled={isSame} submit={submit}>
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
          inherits="Same as the tier"
          amounts={amounts}
          error={save.error}
          change={setAmounts}
        />
        <AccountQuotas
          quotas={quotas}
          error={quotaError}
          change={(changed) => {
            setQuotas(changed);
            setFound(undefined);
          }}
        />
        <AccountTools tools={tools} change={setTools} error={toolsError} />
        <StoreChats checked={storeChats} change={setStoreChats} />
      </Form>
    </Paper>
  );
}

interface AccountToolsProps {
  tools: ToolList;
  change(tools: ToolList): void;
  error: string | undefined;
}

function AccountTools({ tools, change, error }: AccountToolsProps) {
  return (
    <ToolListField
      description="Tools that the members, keys and apps of this account may use"
      value={tools}
      change={change}
      error={error}
      suggest="installation"
    />
  );
}

function StoreChats({ checked, change }: { checked: boolean; change(checked: boolean): void }) {
  return (
    <Switch
      label="Store chats"
      description="Chats are stored unless the request says otherwise."
      checked={checked}
      onChange={(event) => change(event.currentTarget.checked)}
    />
  );
}
