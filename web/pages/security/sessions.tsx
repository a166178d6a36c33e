// The user's sessions, the current one first, and the button that signs out the others.
import { Badge, Group, Skeleton, Text } from "@mantine/core";
import { DeviceDesktopIcon, DeviceMobileIcon } from "@primer/octicons-react";
import { call } from "../../api/client.ts";
import { useList } from "../../api/queries.ts";
import type { BrowserSession, EndedBrowserSessions } from "../../api/types.ts";
import { Confirm } from "../../parts/editing/confirm.tsx";
import { useNotifiedChange } from "../../parts/editing/notified-change.ts";
import { useQuestion } from "../../parts/editing/question.ts";
import { PlainButton, ShowMore, SmallButton } from "../../parts/page/buttons.tsx";
import { Failure } from "../../parts/page/failure.tsx";
import { TextLink } from "../../parts/page/links.tsx";
import { Section } from "../../parts/page/section.tsx";
import { Ago } from "../../parts/words/ago.tsx";
import { at } from "../../parts/words/figures.ts";
import { SmallNote } from "../../parts/words/note.tsx";
import { browserWords } from "./browser-words.ts";
import { Lines, Pictured } from "./lines.tsx";

const sessionsQuery = { limit: 100 };

const methods: Record<BrowserSession["method"], string> = {
  password: "with password",
  passkey: "with passkey",
  sso: "with single sign-on",
  link: "with a link",
};

export function Sessions() {
  const listing = useList<BrowserSession>("/v1/sessions", sessionsQuery);
  const { items, error, isPending, refetch } = listing;
  const endOthers = useQuestion(() => call<EndedBrowserSessions>("DELETE", "/v1/sessions"), {
    stale: ["/v1/sessions", "/v1/authorizations"],
    said: () => "You are signed out everywhere else.",
  });
  const thisFirst = items.toSorted((one, other) => Number(other.current) - Number(one.current));
  return (
    <Section
      title="Where you are signed in"
      about={
        <>
          Signed-in browsers. If you don't recognize a browser, sign it out and change your password. Command line
          logins are listed under <TextLink href="/apps?tab=allowed">apps you allowed</TextLink>.
        </>
      }
      actions={<PlainButton onClick={() => endOthers.ask()}>Sign out everywhere else</PlainButton>}
    >
      {isPending && <Skeleton height={60} role="status" aria-label="Loading the browsers" />}
      {error && <Failure error={error} retry={refetch} />}
      <Lines items={thisFirst}>{(session) => <SessionLine session={session} />}</Lines>
      <ShowMore listing={listing} />
      <Confirm {...endOthers.dialog} title="Sign out everywhere else?" action="Sign out" stay="Stay signed in">
        All your other browsers and command line logins must sign in again. API keys and apps that you allowed keep
        working.
      </Confirm>
    </Section>
  );
}

function SessionLine({ session }: { session: BrowserSession }) {
  const { id, current, method, user_agent: userAgent, client_address: address } = session;
  const { name, isHeld } = browserWords(userAgent);
  const Device = isHeld ? DeviceMobileIcon : DeviceDesktopIcon;
  const end = useNotifiedChange(() => call("DELETE", `/v1/sessions/${id}`), {
    stale: ["/v1/sessions"],
    said: () => `${name} was signed out.`,
  });
  return (
    <>
      <Group justify="space-between" gap="sm" wrap="nowrap">
        <Group gap="sm" wrap="nowrap" align="start" miw={0} flex={1}>
          <Pictured icon={<Device size={20} />}>
            <Group gap="xs">
              <Text size="sm" fw={600} title={userAgent}>
                {name}
              </Text>
              {current && (
                <Badge variant="light" tt="none">
                  This browser
                </Badge>
              )}
            </Group>
            <SmallNote>
              {address} · seen <Ago seconds={session.last_seen_at} /> · signed in {methods[method]}{" "}
              {at(session.created_at)}
            </SmallNote>
          </Pictured>
        </Group>
        {!current && (
          <SmallButton
            onClick={() => end.mutate(undefined)}
            loading={end.isPending}
            aria-label={`Sign out ${name}, ${address}`}
          >
            Sign out
          </SmallButton>
        )}
      </Group>
      {end.error && <Failure error={end.error} />}
    </>
  );
}
