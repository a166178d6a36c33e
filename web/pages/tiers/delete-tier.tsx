// Deletes a tier that was made here, after a question.
import { Button, Divider, Stack, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { notifications } from "@mantine/notifications";
import { call } from "../../api/client.ts";
import { useChange } from "../../api/queries.ts";
import type { Tier } from "../../api/types.ts";
import { Confirm } from "../../parts/editing/confirm.tsx";
import { count } from "../../parts/words/figures.ts";

export function DeleteTier({ tier: { name, accounts }, close }: { tier: Tier; close(): void }) {
  const [asking, { open, close: stop }] = useDisclosure();
  const remove = useChange(() => call("DELETE", `/v1/admin/tiers/${encodeURIComponent(name)}`), {
    stale: ["/v1/admin/tiers", "/v1/tiers", "/v1/account"],
    leave: close,
    done() {
      stop();
      notifications.show({ message: `The tier ${name} is deleted.` });
    },
  });
  const used = accounts === 1 ? "1 account has" : `${count(accounts)} accounts have`;
  return (
    <Stack align="start" gap="xs">
      <Divider w="100%" />
      <Text size="sm" c="dimmed">
        {accounts === 0 ? "No account has this tier." : `${used} this tier.`} A tier that is built in as well gets its
        own figures back when it is deleted here; any other has to have no accounts.
      </Text>
      <Button
        variant="default"
        c="var(--mantine-color-error)"
        onClick={() => {
          remove.reset();
          open();
        }}
      >
        Delete the tier
      </Button>
      <Confirm
        opened={asking}
        title={`Delete the tier ${name}?`}
        action="Delete the tier"
        busy={remove.isPending}
        error={remove.error}
        confirm={() => remove.mutate(undefined)}
        close={stop}
      >
        {accounts === 0
          ? "It can no longer be given to accounts."
          : `${used} it, and get the figures that are built in under this name, from the next request on. Where none are, nothing is deleted.`}
      </Confirm>
    </Stack>
  );
}
