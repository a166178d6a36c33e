// Suspends an account, after a question, or lets it work again.
import { Button, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { notifications } from "@mantine/notifications";
import { call } from "../../api/client.ts";
import { useChange } from "../../api/queries.ts";
import { useSession } from "../../api/session.tsx";
import type { Account } from "../../api/types.ts";
import { Confirm } from "../../parts/editing/confirm.tsx";

export function Suspension({ account: { id, name, status } }: { account: Account }) {
  const own = useSession().session.account.id === id;
  const [asking, { open, close }] = useDisclosure();
  const isActive = status === "active";
  const change = useChange(
    () => call<Account>("PATCH", `/v1/admin/accounts/${id}`, { body: { status: isActive ? "suspended" : "active" } }),
    {
      stale: ["/v1/admin/accounts"],
      done(changed) {
        close();
        const isNow = changed.status === "active" ? "works again" : "is suspended";
        notifications.show({ message: `${name} ${isNow}.` });
      },
    },
  );
  // Nobody shuts themselves out.
  if (own && isActive) return null;
  const ask = () => {
    change.reset();
    open();
  };
  return (
    <>
      <Button variant="default" {...(isActive ? { c: "var(--mantine-color-error)" } : {})} onClick={ask}>
        {isActive ? "Suspend" : "Resume"}
      </Button>
      <Confirm
        opened={asking}
        title={isActive ? `Suspend ${name}?` : `Resume ${name}?`}
        action={isActive ? "Suspend the account" : "Resume the account"}
        stay="Leave it as it is"
        final={isActive}
        busy={change.isPending}
        error={change.error}
        confirm={() => change.mutate(undefined)}
        close={close}
      >
        {isActive ? (
          <>
            All of its API keys, tokens and apps are refused from the next request on, and its members get no answer
            from any model. Requests that run now are finished.
            <Text size="sm" mt="xs">
              Nothing is deleted, and you can resume it at any time.
            </Text>
          </>
        ) : (
          "Its API keys, tokens and apps work again from the next request on, as far as they have not expired or been revoked meanwhile."
        )}
      </Confirm>
    </>
  );
}
