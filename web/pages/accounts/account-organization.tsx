// The organization of an account, which an operator chooses.
import { NativeSelect, Paper } from "@mantine/core";
import { call } from "../../api/client.ts";
import { useList } from "../../api/queries.ts";
import type { Account, Organization } from "../../api/types.ts";
import { useNotifiedChange } from "../../parts/editing/notified-change.ts";

const none = "none";

export function AccountOrganization({ account: { id, name, organization } }: { account: Account }) {
  const listing = useList<Organization>("/v1/admin/organizations", { limit: 100 });
  const move = useNotifiedChange(
    (chosen: string) => {
      const path = (of: string) => `/v1/admin/organizations/${encodeURIComponent(of)}/accounts/${id}`;
      return chosen === none
        ? call<Account>("DELETE", path(organization ?? ""))
        : call<Account>("PUT", path(chosen), { body: {} });
    },
    {
      stale: ["/v1/admin/accounts", "/v1/admin/organizations"],
      said: (changed) =>
        changed.organization === null ? `${name} belongs to no organization now.` : `${name} was moved.`,
    },
  );
  const known = listing.items.map((one) => ({ value: one.id, label: one.name }));
  const isListed = organization === null || known.some(({ value }) => value === organization);
  return (
    <Paper withBorder p="lg">
      <NativeSelect
        label="Organization"
        description="The accounts of an organization share its limits, in addition to their own."
        value={organization ?? none}
        data={[
          { value: none, label: "None" },
          ...known,
          // The list may lack the organization while it loads, and if there are very many.
          ...(isListed ? [] : [{ value: organization, label: organization }]),
        ]}
        disabled={move.isPending}
        error={move.error?.message ?? listing.error?.message}
        onChange={(event) => move.mutate(event.currentTarget.value)}
      />
    </Paper>
  );
}
