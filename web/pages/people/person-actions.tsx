// The operator's actions on a person: make them an operator, suspend them, send a recovery link, delete them.
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
    said: (changed) => (changed.is_operator ? `${name} is now an operator.` : `${name} is no longer an operator.`),
  });
  const isSuspended = person.suspended_at !== null;
  const suspension = useQuestion(() => call<PersonDetails>("POST", `${path}/${isSuspended ? "resume" : "suspend"}`), {
    stale: [peoplePath],
    said: (changed) => (changed.suspended_at === null ? `${name} can sign in again.` : `${name} is suspended.`),
  });
  const reset = useQuestion(() => call<ResetLink>("POST", `${path}/reset-link`), { done: setMade });
  const removal = useQuestion(() => call("DELETE", path), {
    stale: ["/v1/admin/accounts"],
    leave: close,
    said: () => `${name} was deleted.`,
    // Refreshes the list only, not the person's own record, which the drawer still shows while it closes.
    done: () => void client.invalidateQueries({ predicate: ({ queryKey: [shown] }) => shown === peoplePath }),
  });
  return (
    <Stack gap="lg">
      <Action
        title="Operator"
        about={
          isOperator
            ? "This person can see and change everything under Administration, for all accounts."
            : "An operator can see and change everything under Administration, for all accounts."
        }
      >
        {isMe ? (
          <Text size="sm">You are an operator. Only another operator can remove this role from you.</Text>
        ) : (
          <PlainButton onClick={() => operate.ask()}>
            {isOperator ? "Remove operator role" : "Make an operator"}
          </PlainButton>
        )}
      </Action>
      {!isMe && (
        <Action
          title="Suspend"
          about={
            isSuspended
              ? "This person cannot sign in, and their keys and apps are refused. Nothing is deleted."
              : "Blocks sign-in, sessions, logins, apps and keys created as a member. Deletes nothing."
          }
        >
          <PlainButton onClick={() => suspension.ask()}>{isSuspended ? "Resume person" : "Suspend person"}</PlainButton>
        </Action>
      )}
      <Action title="Lost password" about="Create a link to set a new password, and send it to the person yourself.">
        <PlainButton onClick={() => reset.ask()}>Create reset link</PlainButton>
      </Action>
      <Action title="Delete" about="Deletes the person from all accounts.">
        {isOperator ? (
          <Text size="sm">An operator cannot be deleted. Remove the operator role first.</Text>
        ) : (
          <PlainButton c="var(--mantine-color-error)" onClick={() => removal.ask()}>
            Delete person{" "}
          </PlainButton>
        )}
      </Action>
      <Confirm
        {...operate.dialog}
        title={isOperator ? `Remove the operator role from ${name}?` : `Make ${name} an operator?`}
        action={isOperator ? "Remove role" : "Make an operator"}
        final={isOperator}
      >
        {isOperator
          ? "This person immediately loses access to Administration. API keys with the permission to operate this server that this person created keep working. Revoke them on the account's page."
          : "This person can then change all accounts, limits, keys and upstreams, and make other people operators."}
      </Confirm>
      <Confirm
        {...suspension.dialog}
        title={isSuspended ? `Resume ${name}?` : `Suspend ${name}?`}
        action={isSuspended ? "Resume person" : "Suspend person"}
        final={!isSuspended}
      >
        {isSuspended
          ? "Sessions, keys, logins and apps of this person work again, unless they have ended meanwhile."
          : "Within a second, sessions, keys created as a member, logins, apps and running requests of this person stop, and the person cannot sign in. Keys created as an owner or admin belong to the account and keep working. You can resume the person at any time."}
      </Confirm>
      <Confirm {...reset.dialog} title={`Create a reset link for ${name}?`} action="Create link" final={false}>
        Anyone with the link can set the password of {email}. The link works once, for one hour. Using it ends all
        sessions and command line logins of this person.
      </Confirm>
      <Confirm {...removal.dialog} title={`Delete ${name}?`} action="Delete person" typed={email}>
        Memberships, sessions, passkeys, keys created as a member, and app access of this person end immediately. Keys
        and apps created as an owner or admin stay with the account, and past usage is kept.
      </Confirm>
      <ShownOnce
        title={`Reset link for ${name}`}
        secret={made?.link}
        label="Copy the link"
        close={() => {
          reset.forget();
          setMade(undefined);
        }}
      >
        Send this link to {email} in a safe way. The link works once, until {made ? at(made.expires_at) : ""}.
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
