// Suspends an account, after a question, or lets it work again.
import { Text } from "@mantine/core";
import { call } from "../../api/client.ts";
import { useSession } from "../../api/session.tsx";
import type { Account } from "../../api/types.ts";
import { Confirm } from "../../parts/editing/confirm.tsx";
import { useQuestion } from "../../parts/editing/question.ts";
import { PlainButton } from "../../parts/page/buttons.tsx";

export function Suspension({ account: { id, name, status } }: { account: Account }) {
  const own = useSession().session.account.id === id;
  const isActive = status === "active";
  const question = useQuestion(
    () => call<Account>("PATCH", `/v1/admin/accounts/${id}`, { body: { status: isActive ? "suspended" : "active" } }),
    {
      stale: ["/v1/admin/accounts"],
      said: (changed) => `${name} ${changed.status === "active" ? "works again" : "is suspended"}.`,
    },
  );
  // Nobody shuts themselves out.
  if (own && isActive) return null;
  return (
    <>
      <PlainButton {...(isActive ? { c: "var(--mantine-color-error)" } : {})} onClick={() => question.ask()}>
        {isActive ? "Suspend" : "Resume"}
      </PlainButton>
      <Confirm
        {...question.dialog}
        title={isActive ? `Suspend ${name}?` : `Resume ${name}?`}
        action={isActive ? "Suspend the account" : "Resume the account"}
        stay="Leave it as it is"
        final={isActive}
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
