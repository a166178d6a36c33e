// The user's name, email address and role.
import { Group, Stack, TextInput } from "@mantine/core";
import { useState } from "react";
import { call } from "../../api/client.ts";
import { useSession } from "../../api/session.tsx";
import type { Session } from "../../api/types.ts";
import { problemBeside, problemOf } from "../../parts/editing/field-problem.ts";
import { useNotifiedChange } from "../../parts/editing/notified-change.ts";
import { useFirstProblem } from "../../parts/editing/use-first-problem.ts";
import { roleNames } from "../../parts/membership/roles.ts";
import { PlainButton } from "../../parts/page/buttons.tsx";
import { Failure } from "../../parts/page/failure.tsx";
import { Section } from "../../parts/page/section.tsx";
import { Facts } from "../../parts/words/facts.tsx";

export function Profile() {
  const { session, isOperator, refresh } = useSession();
  const { person, account, role } = session;
  const [name, setName] = useState(person.name);
  const rename = useNotifiedChange(
    (wanted: string) => call<Session>("PATCH", "/v1/session", { body: { name: wanted } }),
    {
      stale: ["/v1/members"],
      said: () => "Your name was changed.",
      done(changed) {
        // The server trims the name.
        setName(changed.person.name);
        void refresh();
      },
    },
  );
  const isSame = name.trim() === person.name;
  const form = useFirstProblem(problemOf(rename.error, "name"));
  const problem = problemBeside(rename.error, ["name"]);
  return (
    <Section title="Profile" about={person.email}>
      <Facts
        facts={[
          ["Account", `${account.name} (${roleNames[role]})`],
          ...(isOperator ? [["Installation", "Operator"] as const] : []),
        ]}
      />
      <form
        ref={form}
        onSubmit={(event) => {
          event.preventDefault();
          rename.mutate(name);
        }}
      >
        <Stack gap="xs">
          <Group align="end" gap="sm">
            <TextInput
              label="Your name"
              value={name}
              onChange={(event) => {
                rename.reset();
                setName(event.currentTarget.value);
              }}
              error={problemOf(rename.error, "name")}
              maxLength={100}
              autoComplete="name"
              w={{ base: "100%", xs: "22rem" }}
            />
            <PlainButton type="submit" loading={rename.isPending} disabled={isSame || name.trim() === ""}>
              Save name
            </PlainButton>
          </Group>
          {problem && <Failure error={problem} />}
        </Stack>
      </form>
    </Section>
  );
}
