// The form that changes the user's password, with the rules for passwords.
import { Group, List, PasswordInput, Stack } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { type FormEvent, useState } from "react";
import { call } from "../../api/client.ts";
import { useChange } from "../../api/queries.ts";
import { useSession } from "../../api/session.tsx";
import type { ChangedPassword, ChangePasswordRequest } from "../../api/types.ts";
import { problemBeside, problemOf } from "../../parts/editing/field-problem.ts";
import { useFirstProblem } from "../../parts/editing/use-first-problem.ts";
import { PlainButton } from "../../parts/page/buttons.tsx";
import { Failure } from "../../parts/page/failure.tsx";
import { Section } from "../../parts/page/section.tsx";
import { Note } from "../../parts/words/note.tsx";

const shortest = 12;
const longest = 256;

export function Password() {
  const { session, refresh } = useSession();
  const [current, setCurrent] = useState("");
  const [next, setNext] = useState("");
  const [missing, setMissing] = useState<{ current?: string; next?: string }>({});
  const change = useChange(
    (body: ChangePasswordRequest) => call<ChangedPassword>("POST", "/v1/session/password", { body }),
    {
      stale: ["/v1/sessions", "/v1/authorizations"],
      done() {
        setCurrent("");
        setNext("");
        const did = hasOne ? "changed" : "set";
        notifications.show({ message: `Your password is ${did}. Other browsers and command lines are signed out.` });
        void refresh();
      },
    },
  );
  const refused = inWords(problemOf(change.error, "current_password"));
  // The server asks for the current password if one was set in another browser meanwhile.
  const hasOne = session.has_password !== false || refused !== undefined;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const found = {
      ...(hasOne && current === "" ? { current: "Enter your current password." } : {}),
      ...lengthProblem(next),
    };
    setMissing(found);
    change.reset();
    if (Object.keys(found).length === 0) {
      const body = { new_password: next, ...(current === "" ? {} : { current_password: current }) };
      change.mutate(body, { onError: () => void refresh() });
    }
  };
  const typed = (set: (text: string) => void) => (event: { currentTarget: { value: string } }) => {
    setMissing({});
    change.reset();
    set(event.currentTarget.value);
  };
  const currentProblem = missing.current ?? refused;
  const nextProblem = missing.next ?? problemOf(change.error, "new_password");
  const form = useFirstProblem(currentProblem, nextProblem);
  const problem = problemBeside(change.error, ["current_password", "new_password"]);
  return (
    <Section
      title="Password"
      about={`${hasOne ? "" : "You have no password yet. "}A new password signs out all other browsers and command line logins. API keys and apps keep working.`}
    >
      {/* The whole form is replaced: a password manager would treat a field that appears later as a separate form
          without a user name. */}
      <form key={hasOne ? "change" : "set"} ref={form} onSubmit={submit} noValidate>
        {/* Password managers store the new password under this email address. */}
        <input type="email" name="email" value={session.person.email} autoComplete="username" readOnly hidden />
        <Stack maw="22rem">
          {hasOne && (
            <PasswordInput
              label="Current password"
              value={current}
              onChange={typed(setCurrent)}
              error={currentProblem}
              aria-invalid={currentProblem !== undefined}
              autoComplete="current-password"
            />
          )}
          <PasswordInput
            label="New password"
            description={`${shortest} to ${longest} characters`}
            value={next}
            onChange={typed(setNext)}
            error={nextProblem}
            aria-invalid={nextProblem !== undefined}
            autoComplete="new-password"
            maxLength={longest}
          />
        </Stack>
        <List size="sm" c="dimmed" mt="xs" mb="md">
          <List.Item>Several words in a row are easy to remember and hard to guess. Spaces are allowed.</List.Item>
          <List.Item>Not your e-mail address, and not a few characters repeated.</List.Item>
          <List.Item>Not a commonly used password.</List.Item>
        </List>
        {problem && <Failure error={problem} />}
        <Group mt="xs" gap="sm">
          <PlainButton type="submit" loading={change.isPending}>
            {hasOne ? "Change password" : "Set password"}
          </PlainButton>
          <Note aria-live="polite">{next === "" ? "" : count(next)}</Note>
        </Group>
      </form>
    </Section>
  );
}

function lengthProblem(password: string): { next?: string } {
  const length = [...password].length;
  return length >= shortest && length <= longest
    ? {}
    : { next: `The password must have ${shortest} to ${longest} characters.` };
}

function count(password: string): string {
  const short = shortest - [...password].length;
  return short > 0 ? `${short} more ${short === 1 ? "character" : "characters"}` : "Long enough";
}

function inWords(reason: string | undefined): string | undefined {
  return reason === "Is not your password." ? "This is not your password." : reason;
}
