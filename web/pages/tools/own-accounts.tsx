// MCP servers that act with each person's own account: connects and disconnects the user's account.
import { Alert, Group, Stack, Text } from "@mantine/core";
import { LinkExternalIcon } from "@primer/octicons-react";
import { useSearchParams } from "wouter";
import { call } from "../../api/client.ts";
import { useChange, useRead } from "../../api/queries.ts";
import { toolsPath } from "../../api/tools.ts";
import type {
  ToolConnection,
  ToolConnectionBegun,
  ToolConnectionDeleted,
  ToolConnectionList,
} from "../../api/types.ts";
import { Confirm } from "../../parts/editing/confirm.tsx";
import { useQuestion } from "../../parts/editing/question.ts";
import { PlainButton } from "../../parts/page/buttons.tsx";
import { Failure } from "../../parts/page/failure.tsx";
import { Section } from "../../parts/page/section.tsx";
import { Ago } from "../../parts/words/ago.tsx";
import { day } from "../../parts/words/figures.ts";
import { SmallNote } from "../../parts/words/note.tsx";
import { State, type StateKind } from "../../parts/words/state.tsx";

const path = "/v1/tools/connections";

/**
 * Renders nothing if no MCP server uses personal accounts. `?account=` names the server that a program asked its user
 * to connect.
 */
export function OwnAccounts() {
  const [parameters] = useSearchParams();
  const wanted = parameters.get("account");
  const { data, error, refetch } = useRead<ToolConnectionList>(path);
  const connect = useChange(
    (server: string) => call<ToolConnectionBegun>("POST", path, { body: { server } }),
    // The browser leaves for the authorization server, which leads back to a page outside the dashboard.
    { done: ({ url }) => window.location.assign(url) },
  );
  const ending = useQuestion(
    ({ server }: ToolConnection) => call<ToolConnectionDeleted>("DELETE", `${path}/${encodeURIComponent(server)}`),
    { stale: [path, toolsPath], said: endedWords },
  );
  if (error && !data) return <Failure error={error} retry={refetch} />;
  if (!data || data.data.length === 0) return null;
  const asked = data.data.find(({ server, state }) => server === wanted && (state === "none" || state === "broken"));
  return (
    <Section title="Your accounts" about="These servers use your own account there. Only you can use your connection.">
      {asked && (
        <Alert role="status" title={`A program asks for your account at ${asked.title ?? asked.server}`}>
          Connect your account here, then go back to the program and try again.
        </Alert>
      )}
      {connect.error && <Failure error={connect.error} title="The account could not be connected" />}
      <Stack component="ul" gap="md" m={0} p={0} style={{ listStyle: "none" }} aria-label="Your connected accounts">
        {data.data.map((connection) => (
          <Account
            key={connection.server}
            connection={connection}
            // Shows progress until the browser leaves for the authorization server, unless the user has stopped that or
            // come back.
            isConnecting={connect.isPending && connect.variables === connection.server}
            connect={() => connect.mutate(connection.server)}
            end={() => ending.ask(connection)}
          />
        ))}
      </Stack>
      <Confirm {...ending.dialog} title={`Disconnect ${nameOf(ending.about)}?`} action="Disconnect" final={false}>
        Programs that act on your behalf can no longer use {nameOf(ending.about)}, until you connect your account again.
        Their past actions there are not undone.
      </Confirm>
    </Section>
  );
}

interface AccountProps {
  connection: ToolConnection;
  isConnecting: boolean;
  connect(): void;
  end(): void;
}

function Account({ connection, isConnecting, connect, end }: AccountProps) {
  const { server, title, state, broken_because: why } = connection;
  const [kind, words] = states[state];
  const action = state === "none" ? "Connect your account" : "Connect again";
  return (
    <li>
      <Group justify="space-between" align="start" gap="sm">
        <Stack gap={2} flex={1} miw="14rem">
          <Group gap="xs">
            <Text fw={600} style={{ overflowWrap: "anywhere" }}>
              <bdi>{title ?? server}</bdi>
              {title !== null && (
                <Text span size="sm" fw={400} c="dimmed">
                  {" "}
                  {server}
                </Text>
              )}
            </Text>
            <State kind={kind}>{words}</State>
          </Group>
          <SmallNote style={{ overflowWrap: "anywhere" }}>
            {state === "none" ? "To use this server, connect your account." : <ConnectionFacts of={connection} />}
          </SmallNote>
          {state === "unused" && (
            <Text size="sm">
              The server was removed, or you may no longer use it here. Your connection is kept until you disconnect it.
            </Text>
          )}
          {why !== null && (
            <Text size="sm" c="var(--mantine-color-error)" style={{ overflowWrap: "anywhere" }}>
              {why}
            </Text>
          )}
        </Stack>
        <Group gap="xs">
          {state !== "none" && (
            <PlainButton onClick={end} aria-label={`Disconnect ${title ?? server}`}>
              {" "}
              Disconnect{" "}
            </PlainButton>
          )}
          {state !== "unused" && (
            <PlainButton
              onClick={connect}
              loading={isConnecting}
              leftSection={<LinkExternalIcon />}
              aria-label={`${action}: ${title ?? server}`}
            >
              {action}
            </PlainButton>
          )}
        </Group>
      </Group>
    </li>
  );
}

const states: Record<ToolConnection["state"], [kind: StateKind, words: string]> = {
  none: ["plain", "Not connected"],
  connected: ["good", "Connected"],
  broken: ["bad", "Not working"],
  unused: ["plain", "Not used"],
};

function ConnectionFacts({ of: { issuer, scopes, connected_at: since, last_used_at: used } }: { of: ToolConnection }) {
  return (
    <>
      By {issuer}
      {scopes.length > 0 && ` (${scopes.join(", ")})`}
      {since !== null && `, since ${day(since)}`}, <Ago seconds={used} never="not used yet" />
    </>
  );
}

function nameOf(connection: ToolConnection | undefined): string {
  return connection?.title ?? connection?.server ?? "";
}

function endedWords({ revoked }: ToolConnectionDeleted, { title, server }: ToolConnection): string {
  const there = revoked ? "the access was revoked there" : "revoke the access there as well";
  return `Your account at ${title ?? server} was disconnected; ${there}.`;
}
