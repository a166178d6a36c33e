// Deletes a tier that was made here, after a question.
import { Divider, Stack } from "@mantine/core";
import { call } from "../../api/client.ts";
import type { Tier } from "../../api/types.ts";
import { Confirm } from "../../parts/editing/confirm.tsx";
import { useQuestion } from "../../parts/editing/question.ts";
import { PlainButton } from "../../parts/page/buttons.tsx";
import { counted } from "../../parts/words/figures.ts";
import { Note } from "../../parts/words/note.tsx";

export function DeleteTier({ tier: { name, accounts }, close }: { tier: Tier; close(): void }) {
  const removal = useQuestion(() => call("DELETE", `/v1/admin/tiers/${encodeURIComponent(name)}`), {
    stale: ["/v1/admin/tiers", "/v1/tiers", "/v1/account"],
    leave: close,
    said: () => `The tier ${name} is deleted.`,
  });
  const used = counted(accounts, "account has", "accounts have");
  return (
    <Stack align="start" gap="xs">
      <Divider w="100%" />
      <Note>
        {accounts === 0 ? "No account has this tier." : `${used} this tier.`} A tier that is built in as well gets its
        own figures back when it is deleted here; any other has to have no accounts.
      </Note>
      <PlainButton c="var(--mantine-color-error)" onClick={() => removal.ask()}>
        Delete the tier
      </PlainButton>
      <Confirm {...removal.dialog} title={`Delete the tier ${name}?`} action="Delete the tier">
        {accounts === 0
          ? "It can no longer be given to accounts."
          : `${used} it, and get the figures that are built in under this name, from the next request on. Where none are, nothing is deleted.`}
      </Confirm>
    </Stack>
  );
}
