// One tier with its figures, which are read-only if the configuration file sets them.
import { Alert, Divider, Stack, Title } from "@mantine/core";
import { InfoIcon } from "@primer/octicons-react";
import { call } from "../../api/client.ts";
import { limitAmounts } from "../../api/limit-amounts.ts";
import type { Tier } from "../../api/types.ts";
import { Confirm } from "../../parts/editing/confirm.tsx";
import { FormDrawer } from "../../parts/editing/form-drawer.tsx";
import { useQuestion } from "../../parts/editing/question.ts";
import { PlainButton } from "../../parts/page/buttons.tsx";
import { amountFigure } from "../../parts/words/amounts.ts";
import { environmentList } from "../../parts/words/environments.ts";
import { Facts } from "../../parts/words/facts.tsx";
import { count, counted } from "../../parts/words/figures.ts";
import { Note } from "../../parts/words/note.tsx";
import { quotasInWords } from "../../parts/words/quotas.ts";
import { TierForm } from "./tier-form.tsx";

interface TierDrawerProps {
  /** The tier to show; undefined while the drawer is closed. */
  tier: Tier | "new" | undefined;
  /** The names of all tiers. */
  names: readonly string[];
  close(): void;
}

const about: Record<Tier["source"], string | undefined> = {
  "built-in": "This tier is built in. Your changes replace its limits until you delete them here.",
  file: "This tier is defined in headrace.yaml and read-only here. Change it under tiers in that file.",
  database: undefined,
};

export function TierDrawer({ tier, names, close }: TierDrawerProps) {
  return (
    <FormDrawer of={tier} close={close} size="lg" title={(shown) => (shown === "new" ? "Create tier" : "Tier")}>
      {(shown) =>
        shown === "new" ? (
          <TierForm names={names} close={close} />
        ) : (
          <Known key={shown.name} tier={shown} names={names} close={close} />
        )
      }
    </FormDrawer>
  );
}

function Known({ tier, names, close }: { tier: Tier; names: readonly string[]; close(): void }) {
  const note = about[tier.source];
  return (
    <Stack>
      <Title order={2}>{tier.name}</Title>
      {note && (
        <Alert icon={<InfoIcon />} color="gray" variant="light">
          {note}
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
    ["Quotas", quotasInWords(tier.quotas)],
    ["Applies in", environmentList(tier.environments)],
    ["Priority", tier.priority],
    ["Accounts", count(tier.accounts)],
  ] as const;
}

function DeleteTier({ tier: { name, accounts }, close }: { tier: Tier; close(): void }) {
  const removal = useQuestion(() => call("DELETE", `/v1/admin/tiers/${encodeURIComponent(name)}`), {
    stale: ["/v1/admin/tiers", "/v1/tiers", "/v1/account"],
    leave: close,
    said: () => `The tier ${name} was deleted.`,
  });
  const used = counted(accounts, "account has", "accounts have");
  return (
    <Stack align="start" gap="xs">
      <Divider w="100%" />
      <Note>
        {accounts === 0 ? "No account has this tier." : `${used} this tier.`} If you delete your changes to a built-in
        tier, its original limits apply again. You can delete any other tier only if no account uses it.
      </Note>
      <PlainButton c="var(--mantine-color-error)" onClick={() => removal.ask()}>
        Delete tier{" "}
      </PlainButton>
      <Confirm {...removal.dialog} title={`Delete the tier ${name}?`} action="Delete tier">
        {accounts === 0
          ? "This tier can no longer be assigned to accounts."
          : `${used} this tier. If a built-in tier has the same name, its limits apply to them from the next request. Otherwise the tier cannot be deleted.`}
      </Confirm>
    </Stack>
  );
}
