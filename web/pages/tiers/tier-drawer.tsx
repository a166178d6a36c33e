// One tier: its figures, which may be changed unless the configuration file gives them.
import { Alert, Stack, Title } from "@mantine/core";
import { InfoIcon } from "@primer/octicons-react";
import { limitAmounts } from "../../api/limit-amounts.ts";
import type { Tier } from "../../api/types.ts";
import { FormDrawer } from "../../parts/editing/form-drawer.tsx";
import { useLast } from "../../parts/editing/use-last.ts";
import { amountFigure } from "../../parts/words/amounts.ts";
import { environmentList } from "../../parts/words/environments.ts";
import { Facts } from "../../parts/words/facts.tsx";
import { count } from "../../parts/words/figures.ts";
import { DeleteTier } from "./delete-tier.tsx";
import { TierForm } from "./tier-form.tsx";

interface TierDrawerProps {
  /** Undefined while it is closed. */
  tier: Tier | "new" | undefined;
  /** The names of all tiers. */
  names: readonly string[];
  close(): void;
}

const about: Record<Tier["source"], string | undefined> = {
  "built-in":
    "This tier is built in, and its own figures cannot be changed. What you save here stands in their place until you delete it.",
  file: "This tier is defined in headrace.yaml and is read-only here: change it under tiers in that file.",
  database: undefined,
};

export function TierDrawer({ tier, names, close }: TierDrawerProps) {
  const shown = useLast(tier);
  return (
    <FormDrawer opened={tier !== undefined} close={close} title={shown === "new" ? "Create tier" : "Tier"}>
      {shown === "new" && <TierForm names={names} close={close} />}
      {shown !== undefined && shown !== "new" && <Known key={shown.name} tier={shown} names={names} close={close} />}
    </FormDrawer>
  );
}

function Known({ tier, names, close }: { tier: Tier; names: readonly string[]; close(): void }) {
  const told = about[tier.source];
  return (
    <Stack>
      <Title order={2}>{tier.name}</Title>
      {told && (
        <Alert icon={<InfoIcon />} color="gray" variant="light">
          {told}
        </Alert>
      )}
      {tier.source === "file" ? (
        <Facts facts={figuresOf(tier)} />
      ) : (
        <TierForm tier={tier} names={names} close={close} />
      )}
      {tier.source === "database" && <DeleteTier tier={tier} close={close} />}
    </Stack>
  );
}

function figuresOf(tier: Tier) {
  return [
    ...limitAmounts.map((amount) => [amount.label, amountFigure(amount, tier[amount.wire])] as const),
    ["Applies in", environmentList(tier.environments)],
    ["Accounts", count(tier.accounts)],
  ] as const;
}
