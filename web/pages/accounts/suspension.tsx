// The button that suspends an account or resumes it, after a confirmation.
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
  // Users cannot suspend their own account.
  if (own && isActive) return null;
  return (
    <>
      <PlainButton {...(isActive ? { c: "var(--mantine-color-error)" } : {})} onClick={() => question.ask()}>
        {isActive ? "Suspend" : "Resume"}
      </PlainButton>
      <Confirm
        {...question.dialog}
        title={isActive ? `Suspend ${name}?` : `Resume ${name}?`}
        action={isActive ? "Suspend account" : "Resume account"}
        final={isActive}
      >
        {isActive ? (
          <>
            All API keys, access tokens and apps of the account are refused, and running requests stop, within a second.
            Its members cannot use any model.
            <Text size="sm" mt="xs">
              Nothing is deleted, and you can resume the account at any time.
            </Text>
          </>
        ) : (
          "The API keys, access tokens and apps of the account work again, starting with the next request, unless they have expired or been revoked in the meantime."
        )}
      </Confirm>
    </>
  );
}
