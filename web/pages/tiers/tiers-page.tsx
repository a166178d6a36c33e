// The page Tiers: the limits of each tier, and whether they come from the configuration file.
import { Text } from "@mantine/core";
import { useSearchParams } from "wouter";
import { type LimitAmount, limitAmounts } from "../../api/limit-amounts.ts";
import { useList } from "../../api/queries.ts";
import type { Tier } from "../../api/types.ts";
import { AddButton } from "../../parts/page/buttons.tsx";
import { Empty } from "../../parts/page/empty.tsx";
import { NameButton } from "../../parts/page/links.tsx";
import { operatorsOnly } from "../../parts/page/operators-only.tsx";
import { Page } from "../../parts/page/page.tsx";
import type { Column } from "../../parts/table/column.ts";
import { LongTable } from "../../parts/table/long-table.tsx";
import { amountFigure } from "../../parts/words/amounts.ts";
import { environmentList } from "../../parts/words/environments.ts";
import { count } from "../../parts/words/figures.ts";
import { TierDrawer } from "./tier-drawer.tsx";

const sourceNames: Record<Tier["source"], string> = {
  "built-in": "Built in",
  file: "headrace.yaml",
  database: "Set in the dashboard",
};

export const TiersPage = operatorsOnly("Tiers", Tiers);

function Tiers() {
  const [search, setSearch] = useSearchParams();
  const listing = useList<Tier>("/v1/admin/tiers");
  const name = search.get("tier");
  const isNew = search.has("new");
  const chosen = listing.items.find((tier) => tier.name === name);
  const choose = (tier: Tier) => setSearch({ tier: tier.name });
  const columns: Column<Tier>[] = [
    {
      name: "name",
      head: "Name",
      cell: (tier) => <NameButton show={() => choose(tier)}>{tier.name}</NameButton>,
    },
    { name: "source", head: "Source", cell: ({ source }) => sourceNames[source] },
    ...limitAmounts.map(figure),
    {
      ...{ name: "where", head: "Applies in", wideOnly: true, width: "8rem" },
      cell: ({ environments }) => environmentList(environments),
    },
    { name: "accounts", head: "Accounts", numeric: true, cell: ({ accounts }) => count(accounts) },
  ];
  return (
    <Page
      title="Tiers"
      about="A tier sets the limits of its accounts, separately for each environment. Changes apply from the next request."
      actions={<AddButton onClick={() => setSearch({ new: "" })}>Create tier</AddButton>}
    >
      <LongTable
        label="Tiers"
        listing={listing}
        columns={columns}
        keyOf={(tier) => tier.name}
        choose={choose}
        empty={<Empty title="No tiers">Create a tier, then assign it to accounts.</Empty>}
      />
      <TierDrawer
        tier={isNew ? "new" : chosen}
        names={listing.items.map((tier) => tier.name)}
        close={() => setSearch({})}
      />
    </Page>
  );
}

function figure(amount: LimitAmount): Column<Tier> {
  return {
    ...{ name: amount.wire, head: amount.label, numeric: true, wideOnly: true, width: "8.5rem" },
    cell: ({ [amount.wire]: value }) => (
      <Text span size="sm" c={value === null ? "dimmed" : ""}>
        {amountFigure(amount, value)}
      </Text>
    ),
  };
}
