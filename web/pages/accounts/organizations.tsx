// The organizations of the installation: their list, and one with its limits, accounts and usage.
import { Divider, Group, Stack, TextInput, Title } from "@mantine/core";
import { useState } from "react";
import { useSearchParams } from "wouter";
import { call } from "../../api/client.ts";
import { useList, useRead } from "../../api/queries.ts";
import type {
  Account,
  CreateOrganizationRequest,
  Organization,
  OrganizationDetails,
  UpdateOrganizationRequest,
} from "../../api/types.ts";
import { AmountFields, amountOf, limitOf } from "../../parts/editing/amount-fields.tsx";
import { Confirm } from "../../parts/editing/confirm.tsx";
import { problemOf } from "../../parts/editing/field-problem.ts";
import { Form } from "../../parts/editing/form.tsx";
import { FormDrawer } from "../../parts/editing/form-drawer.tsx";
import { useNotifiedChange } from "../../parts/editing/notified-change.ts";
import { useQuestion } from "../../parts/editing/question.ts";
import { useFirstProblem } from "../../parts/editing/use-first-problem.ts";
import { AddButton, PlainButton } from "../../parts/page/buttons.tsx";
import { Empty } from "../../parts/page/empty.tsx";
import { NameButton, PlainLink } from "../../parts/page/links.tsx";
import { quotaDraftsOf, quotasError, quotasProblemOf, rulesOf } from "../../parts/quotas/quota-draft.ts";
import { QuotaFields } from "../../parts/quotas/quota-fields.tsx";
import type { Column } from "../../parts/table/column.ts";
import { LongTable } from "../../parts/table/long-table.tsx";
import { accountAmounts, amountInWords, perAmount } from "../../parts/words/amounts.ts";
import { count } from "../../parts/words/figures.ts";
import { Note } from "../../parts/words/note.tsx";
import { quotaInWords } from "../../parts/words/quotas.ts";
import { AccountMonth } from "./account-month.tsx";

const path = "/v1/admin/organizations";
const pathOf = (id: string) => `${path}/${encodeURIComponent(id)}`;

export function Organizations() {
  const [search, setSearch] = useSearchParams();
  const listing = useList<Organization>(path, { limit: 100 });
  const id = search.get("organization");
  const isNew = search.has("new");
  const choose = (organization: { id: string }) => setSearch({ tab: "organizations", organization: organization.id });
  const close = () => setSearch({ tab: "organizations" });
  const add = <AddButton onClick={() => setSearch({ tab: "organizations", new: "" })}>Create organization</AddButton>;
  const columns: Column<Organization>[] = [
    {
      name: "name",
      head: "Name",
      cell: (organization) => <NameButton show={() => choose(organization)}>{organization.name}</NameButton>,
    },
    { name: "accounts", head: "Accounts", numeric: true, cell: ({ accounts }) => count(accounts) },
    { name: "limits", head: "Limits", wideOnly: true, cell: limitText },
  ];
  return (
    <Stack>
      <Group justify="space-between" align="end">
        <Note>The accounts of an organization share its limits, in addition to their own.</Note>
        {listing.items.length > 0 && add}
      </Group>
      <LongTable
        label="Organizations"
        listing={listing}
        columns={columns}
        keyOf={(organization) => organization.id}
        choose={choose}
        empty={
          <Empty title="No organizations" action={add}>
            Create an organization to give several accounts one budget. Then choose the organization on the page of each
            account.
          </Empty>
        }
      />
      <FormDrawer of={isNew ? "new" : id} close={close} size="lg" title={titleOf}>
        {(shown) =>
          shown === "new" ? (
            <OrganizationForm close={close} done={choose} />
          ) : (
            <Known key={shown} id={shown} close={close} />
          )
        }
      </FormDrawer>
    </Stack>
  );
}

function titleOf(shown: string): string {
  return shown === "new" ? "Create organization" : "Organization";
}

function limitText(organization: Organization): string {
  const parts = [
    ...accountAmounts.flatMap((amount) => amountInWords(amount, organization[amount.wire])),
    ...organization.quotas.map(quotaInWords),
  ];
  return parts.join(", ") || "no limits";
}

function Known({ id, close }: { id: string; close(): void }) {
  const { data: organization, error } = useRead<OrganizationDetails>(pathOf(id));
  const accounts = useList<Account>(`${pathOf(id)}/accounts`, { limit: 100 });
  if (!organization) return <Note>{error?.message ?? "Loading…"}</Note>;
  return (
    <Stack>
      <Title order={2}>{organization.name}</Title>
      <OrganizationForm key={JSON.stringify(organization.quotas)} organization={organization} close={close} />
      <AccountMonth account={organization} />
      <Divider />
      <Title order={3}>Accounts</Title>
      {accounts.items.length === 0 && (
        <Note>No account yet. On the page of an account, choose this organization under Limits and settings.</Note>
      )}
      {accounts.items.map((account) => (
        <PlainLink key={account.id} href={`/admin/accounts/${account.id}`}>
          {account.name}
        </PlainLink>
      ))}
      <PlainLink href={`/statements?account=all&organization=${id}`}>Statement of these accounts</PlainLink>
      {organization.accounts === 0 && <DeleteOrganization organization={organization} close={close} />}
    </Stack>
  );
}

interface OrganizationFormProps {
  /** The organization to change; absent for a new one. */
  organization?: Organization;
  close(): void;
  done?(made: Organization): void;
}

const fields = ["name", ...accountAmounts.map(({ wire }) => wire), "quotas"];

function OrganizationForm({ organization, close, done }: OrganizationFormProps) {
  const [name, setName] = useState(organization?.name ?? "");
  const [amounts, setAmounts] = useState(
    perAmount(accountAmounts, ({ wire }) => amountOf(organization?.[wire] ?? null)),
  );
  const [quotas, setQuotas] = useState(() => quotaDraftsOf(organization?.quotas ?? []));
  const [found, setFound] = useState<string>();
  const save = useNotifiedChange(
    (body: CreateOrganizationRequest & UpdateOrganizationRequest) =>
      organization
        ? call<Organization>("PATCH", pathOf(organization.id), { body })
        : call<Organization>("POST", path, { body }),
    {
      stale: [path],
      said: (saved) => `The organization ${saved.name} was saved.`,
      ...(done && { done }),
    },
  );
  const quotaError = found ?? quotasProblemOf(save.error);
  const ref = useFirstProblem(quotaError);
  const submit = () => {
    const error = quotasError(quotas);
    setFound(error);
    if (error !== undefined) return;
    save.mutate({ name, ...perAmount(accountAmounts, ({ wire }) => limitOf(amounts[wire])), quotas: rulesOf(quotas) });
  };
  return (
    <Form
      ref={ref}
      sending={save}
      fields={fields}
      action={organization ? "Save" : "Create organization"}
      submit={submit}
      cancel={close}
    >
      <TextInput
        label="Name"
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        error={problemOf(save.error, "name")}
        maxLength={100}
        required
        data-autofocus
      />
      <AmountFields of={accountAmounts} amounts={amounts} error={save.error} change={setAmounts} />
      <QuotaFields
        quotas={quotas}
        error={quotaError}
        about="These quotas apply to all accounts of the organization together, separately in Live and Test."
        change={(changed) => {
          setQuotas(changed);
          setFound(undefined);
        }}
      />
    </Form>
  );
}

function DeleteOrganization({ organization: { id, name }, close }: { organization: Organization; close(): void }) {
  const removal = useQuestion(() => call("DELETE", pathOf(id)), {
    stale: [path],
    gone: pathOf(id),
    leave: close,
    said: () => `The organization ${name} was deleted.`,
  });
  return (
    <Group>
      <PlainButton c="var(--mantine-color-error)" onClick={() => removal.ask()}>
        Delete organization
      </PlainButton>
      <Confirm {...removal.dialog} title={`Delete the organization ${name}?`} action="Delete organization">
        No account belongs to it.
      </Confirm>
    </Group>
  );
}
