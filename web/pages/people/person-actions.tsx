// What an operator may do about a person: make them one too, give them a way back in, delete them.
import { Button, Stack, Text, Title } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { call } from "../../api/client.ts";
import { useChange } from "../../api/queries.ts";
import { useSession } from "../../api/session.tsx";
import type { PersonDetails, ResetLink } from "../../api/types.ts";
import { Confirm } from "../../parts/editing/confirm.tsx";
import { ShownOnce } from "../../parts/secrets/shown-once.tsx";
import { at } from "../../parts/words/figures.ts";

type Question = "operator" | "reset" | "delete";

export function PersonActions({ person, close }: { person: PersonDetails; close(): void }) {
  const { id, name, email, is_operator: isOperator } = person;
  const isMe = useSession().session.person.id === id;
  const [asked, setAsked] = useState<Question>();
  const [made, setMade] = useState<ResetLink>();
  const path = `/v1/admin/people/${id}`;
  const client = useQueryClient();
  const stop = () => setAsked(undefined);
  const operate = useChange(() => call<PersonDetails>("PATCH", path, { body: { is_operator: !isOperator } }), {
    stale: ["/v1/admin/people"],
    done(changed) {
      stop();
      notifications.show({
        message: changed.is_operator ? `${name} is an operator now.` : `${name} is no operator any more.`,
      });
    },
  });
  const reset = useChange(() => call<ResetLink>("POST", `${path}/reset-link`), {
    done(link) {
      stop();
      setMade(link);
    },
  });
  const remove = useChange(() => call("DELETE", path), {
    done() {
      stop();
      notifications.show({ message: `${name} is deleted.` });
      // Not the person's own record, which this drawer still shows as it closes.
      void client.invalidateQueries({ predicate: ({ queryKey: [path] }) => path === "/v1/admin/people" });
    },
    leave: close,
    stale: ["/v1/admin/accounts"],
  });
  const ask = (question: Question) => {
    for (const change of [operate, reset, remove]) change.reset();
    setAsked(question);
  };
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
          <Button variant="default" onClick={() => ask("operator")}>
            {isOperator ? "Make no operator any more" : "Make an operator"}
          </Button>
        )}
      </Action>
      <Action title="Lost password" about="A link with which they set another one. You hand it over yourself.">
        <Button variant="default" onClick={() => ask("reset")}>
          Make a reset link
        </Button>
      </Action>
      <Action title="Delete" about="Ends what they are in all accounts.">
        {isOperator ? (
          <Text size="sm">An operator cannot be deleted. Take that away first.</Text>
        ) : (
          <Button variant="default" c="var(--mantine-color-error)" onClick={() => ask("delete")}>
            Delete the person
          </Button>
        )}
      </Action>
      <Confirm
        opened={asked === "operator"}
        title={isOperator ? `Take the operator's role from ${name}?` : `Make ${name} an operator?`}
        action={isOperator ? "Take it away" : "Make an operator"}
        stay="Leave it as it is"
        final={isOperator}
        busy={operate.isPending}
        error={operate.error}
        confirm={() => operate.mutate(undefined)}
        close={stop}
      >
        {isOperator
          ? "They no longer see Administration, at once. API keys with the permission to operate this server that they made stay: revoke them at their account."
          : "They can then change every account, its limits and keys, the upstreams, and who else is an operator."}
      </Confirm>
      <Confirm
        opened={asked === "reset"}
        title={`Make a reset link for ${name}?`}
        action="Make the link"
        stay="Cancel"
        final={false}
        busy={reset.isPending}
        error={reset.error}
        confirm={() => reset.mutate(undefined)}
        close={stop}
      >
        Whoever has the link sets the password of {email}. It works once, for an hour; once it is used, all of their
        sessions and command line logins end.
      </Confirm>
      <Confirm
        opened={asked === "delete"}
        title={`Delete ${name}?`}
        action="Delete the person"
        typed={email}
        busy={remove.isPending}
        error={remove.error}
        confirm={() => remove.mutate(undefined)}
        close={stop}
      >
        Their memberships, sessions and passkeys end at once, with the keys that they made as a member and the apps that
        they allowed. What they made as an owner or admin stays with the account, and so does what was used.
      </Confirm>
      <ShownOnce
        title={`A new password for ${name}`}
        secret={made?.link}
        label="Copy the link"
        close={() => {
          reset.reset();
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
      <Text size="sm" c="dimmed">
        {about}
      </Text>
      {children}
    </Stack>
  );
}
