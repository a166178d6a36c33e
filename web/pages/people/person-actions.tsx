// What an operator may do about a person: make them one too, give them a way back in, delete them.
import { Stack, Text, Title } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { call } from "../../api/client.ts";
import { useSession } from "../../api/session.tsx";
import type { PersonDetails, ResetLink } from "../../api/types.ts";
import { Confirm } from "../../parts/editing/confirm.tsx";
import { useQuestion } from "../../parts/editing/question.ts";
import { PlainButton } from "../../parts/page/buttons.tsx";
import { ShownOnce } from "../../parts/secrets/shown-once.tsx";
import { at } from "../../parts/words/figures.ts";
import { Note } from "../../parts/words/note.tsx";

const peoplePath = "/v1/admin/people";

export function PersonActions({ person, close }: { person: PersonDetails; close(): void }) {
  const { id, name, email, is_operator: isOperator } = person;
  const isMe = useSession().session.person.id === id;
  const [made, setMade] = useState<ResetLink>();
  const path = `${peoplePath}/${id}`;
  const client = useQueryClient();
  const operate = useQuestion(() => call<PersonDetails>("PATCH", path, { body: { is_operator: !isOperator } }), {
    stale: [peoplePath],
    said: (changed) => (changed.is_operator ? `${name} is an operator now.` : `${name} is no operator any more.`),
  });
  const reset = useQuestion(() => call<ResetLink>("POST", `${path}/reset-link`), { done: setMade });
  const removal = useQuestion(() => call("DELETE", path), {
    stale: ["/v1/admin/accounts"],
    leave: close,
    said: () => `${name} is deleted.`,
    // Not the person's own record, which this drawer still shows as it closes.
    done: () => void client.invalidateQueries({ predicate: ({ queryKey: [shown] }) => shown === peoplePath }),
  });
  return (
    <Stack gap="lg">
      <Action
        title="Operator"
        about={
          isOperator
            ? "Sees and changes everything under Administration, for all accounts."
            : "An operator sees and changes everything under Administration, for all accounts."
        }
      >
        {isMe ? (
          <Text size="sm">You are one yourself; another operator can take it from you.</Text>
        ) : (
          <PlainButton onClick={() => operate.ask()}>
            {isOperator ? "Make no operator any more" : "Make an operator"}
          </PlainButton>
        )}
      </Action>
      <Action title="Lost password" about="A link with which they set another one. You hand it over yourself.">
        <PlainButton onClick={() => reset.ask()}>Make a reset link</PlainButton>
      </Action>
      <Action title="Delete" about="Ends what they are in all accounts.">
        {isOperator ? (
          <Text size="sm">An operator cannot be deleted. Take that away first.</Text>
        ) : (
          <PlainButton c="var(--mantine-color-error)" onClick={() => removal.ask()}>
            Delete the person
          </PlainButton>
        )}
      </Action>
      <Confirm
        {...operate.dialog}
        title={isOperator ? `Take the operator's role from ${name}?` : `Make ${name} an operator?`}
        action={isOperator ? "Take it away" : "Make an operator"}
        stay="Leave it as it is"
        final={isOperator}
      >
        {isOperator
          ? "They no longer see Administration, at once. API keys with the permission to operate this server that they made stay: revoke them at their account."
          : "They can then change every account, its limits and keys, the upstreams, and who else is an operator."}
      </Confirm>
      <Confirm
        {...reset.dialog}
        title={`Make a reset link for ${name}?`}
        action="Make the link"
        stay="Cancel"
        final={false}
      >
        Whoever has the link sets the password of {email}. It works once, for an hour; once it is used, all of their
        sessions and command line logins end.
      </Confirm>
      <Confirm {...removal.dialog} title={`Delete ${name}?`} action="Delete the person" typed={email}>
        Their memberships, sessions and passkeys end at once, with the keys that they made as a member and the apps that
        they allowed. What they made as an owner or admin stays with the account, and so does what was used.
      </Confirm>
      <ShownOnce
        title={`A new password for ${name}`}
        secret={made?.link}
        label="Copy the link"
        close={() => {
          reset.forget();
          setMade(undefined);
        }}
      >
        Give it to {email} by a way that you trust. It works once, until {made ? at(made.expires_at) : ""}.
      </ShownOnce>
    </Stack>
  );
}

function Action({ title, about, children }: { title: string; about: string; children: ReactNode }) {
  return (
    <Stack gap={6} align="start">
      <Title order={3} size="h5">
        {title}
      </Title>
      <Note>{about}</Note>
      {children}
    </Stack>
  );
}
