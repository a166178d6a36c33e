// The view of an MCP server: its settings, a test, its definitions, its connected accounts, and its removal.
import { Alert, Group, Stack, Text, Title } from "@mantine/core";
import { AlertIcon, BeakerIcon, InfoIcon, PencilIcon } from "@primer/octicons-react";
import { useEffect, useRef, useState } from "react";
import { call } from "../../api/client.ts";
import { useChange, useList, useRead } from "../../api/queries.ts";
import type { McpServer, McpServerTest, Node, ToolDefinition, UpdateMcpServerRequest } from "../../api/types.ts";
import { useNotifiedChange } from "../../parts/editing/notified-change.ts";
import { Removal } from "../../parts/editing/removal.tsx";
import { PlainButton } from "../../parts/page/buttons.tsx";
import { Failure } from "../../parts/page/failure.tsx";
import { DrawerPart } from "../../parts/page/section.tsx";
import { Ago } from "../../parts/words/ago.tsx";
import { environmentList } from "../../parts/words/environments.ts";
import { Facts } from "../../parts/words/facts.tsx";
import { bytes, count, counted, rate, span } from "../../parts/words/figures.ts";
import { Note } from "../../parts/words/note.tsx";
import { ConnectedPeople } from "./connected-people.tsx";
import { AllDefinitions, AskForThem, OneDefinition, ToApprove, useWaiting } from "./definitions.tsx";
import { EditServer } from "./edit-server.tsx";
import { definitionsPath, mcpServerPath, mcpServersPath, staleWithMcpServers, testsPath } from "./mcp-server-paths.ts";
import { approvalTexts, identityText, locationOf, ServerState } from "./mcp-server-words.tsx";
import { TestResult } from "./test-result.tsx";

export function ServerView({ server, close }: { server: McpServer; close(): void }) {
  const [editing, setEditing] = useState(false);
  const { name, title, description, source, enabled, credentials, overrides_database: hidesOne } = server;
  const isOwn = source === "database";
  const [search, setSearch] = useState("");
  const [shown, setShown] = useState<ToolDefinition>();
  const waiting = useWaiting(server);
  const said = useList<ToolDefinition>(definitionsPath(name), { search, limit: 100 });
  const test = useChange(() => call<McpServerTest>("POST", testsPath, { body: { name } }), {
    stale: [mcpServersPath],
  });
  const turn = useNotifiedChange(
    (body: UpdateMcpServerRequest) => call<McpServer>("PATCH", mcpServerPath(name), { body }),
    {
      stale: staleWithMcpServers,
      said: (changed) => (changed.enabled ? `${name} was switched on.` : `${name} was switched off.`),
    },
  );
  const heading = useRef<HTMLHeadingElement>(null);
  // The focused element, such as a form field or the button of a decision, may be gone: the heading gets the focus.
  // biome-ignore lint/correctness/useExhaustiveDependencies: a change of any of these removes buttons
  useEffect(() => {
    if (document.activeElement === document.body) heading.current?.focus({ preventScroll: true });
  }, [waiting.shown, editing, shown]);
  if (shown) {
    const now = said.items.find(({ id }) => id === shown.id) ?? shown;
    return <OneDefinition definition={now} back={() => setShown(undefined)} />;
  }
  if (editing) return <EditServer server={server} done={() => setEditing(false)} />;
  return (
    <Stack gap="lg">
      <Group justify="space-between" align="start" wrap="nowrap">
        <div style={{ overflowWrap: "anywhere" }}>
          <Title order={2} ref={heading} tabIndex={-1}>
            {title ?? name}
          </Title>
          <Note>{locationOf(server)}</Note>
        </div>
        <ServerState server={server} />
      </Group>
      {description !== null && <Text size="sm">{description}</Text>}
      {!isOwn && (
        <Alert icon={<InfoIcon />} color="gray">
          This server is set in headrace.yaml. Here you can only approve its tools. Change other settings under tools in
          that file.
          {hidesOne &&
            " A server with the same name was added in the dashboard. It has no effect while the file has this name."}
        </Alert>
      )}
      {server.credentials_unreadable && (
        <Alert icon={<AlertIcon />} color="red" title="This server is not used: its credentials cannot be decrypted">
          The credentials were encrypted with a secret that Headrace no longer has. Enter them again under Edit.
        </Alert>
      )}
      <ToApprove server={name} waiting={waiting} />
      <ServerFacts server={server} />
      <Group gap="xs">
        <PlainButton leftSection={<BeakerIcon />} loading={test.isPending} onClick={() => test.mutate(undefined)}>
          Test
        </PlainButton>
        {isOwn && (
          <>
            <PlainButton leftSection={<PencilIcon />} onClick={() => setEditing(true)}>
              Edit
            </PlainButton>
            <PlainButton loading={turn.isPending} onClick={() => turn.mutate({ enabled: !enabled })}>
              {enabled ? "Switch off" : "Switch on"}
            </PlainButton>
          </>
        )}
        {(isOwn || hidesOne) && <RemoveServer server={server} close={close} />}
      </Group>
      {turn.error && <Failure error={turn.error} />}
      {test.data && <TestResult result={test.data} />}
      {test.error && <Failure error={test.error} />}
      <DrawerPart title="Tools and prompts">
        <AllDefinitions listing={said} search={search} find={setSearch} choose={setShown} />
        {!said.isPending && enabled && <AskForThem server={name} isFirst={said.items.length === 0 && search === ""} />}
      </DrawerPart>
      {credentials === "person" && <ConnectedPeople server={name} />}
    </Stack>
  );
}

function ServerFacts({ server }: { server: McpServer }) {
  const { name, environments, accounts, local, tools, approval, sharing, price_per_call: price } = server;
  const nodeId = server.node?.node;
  const node = useRead<Node>(
    `/v1/admin/nodes/${encodeURIComponent(nodeId ?? "")}`,
    {},
    { enabled: nodeId !== undefined },
  );
  return (
    <Facts
      facts={[
        ["Tool prefix", `${name}_`],
        ...(nodeId === undefined ? [] : [["Node", node.data?.name ?? nodeId] as const]),
        ["Source", server.source === "database" ? "Added in the dashboard" : "headrace.yaml"],
        ["Signs in as", identityText(server)],
        ["Environments", environments === null ? "All" : environmentList(environments)],
        ["Accounts", accounts === null ? "All" : counted(accounts.length, "account")],
        ["Local server", local ? "Yes" : "No, not used for local-only keys"],
        ["Tools", tools === null ? "All tools" : tools.join(", ")],
        ["Approval", approvalTexts[approval]],
        ["Price per call", price === null ? "Free" : rate(price)],
        ["Call timeout", span(server.timeout_seconds)],
        ["Max result size", bytes(server.max_result_bytes)],
        ["Max concurrent calls", count(server.max_concurrency)],
        ["Protocol revision", server.protocol_version ?? "Newest supported"],
        ["Connections", sharing === "all" ? "Shared" : "Separate for each person"],
        ...(server.created_at === null ? [] : [["Added", <Ago key="added" seconds={server.created_at} />] as const]),
      ]}
    />
  );
}

function RemoveServer({ server, close }: { server: McpServer; close(): void }) {
  const { name, credentials, overrides_database: isHidden } = server;
  return (
    <Removal
      {...{ name, path: mcpServerPath(name), stale: staleWithMcpServers, close }}
      {...(isHidden ? { label: "Remove dashboard server" } : {})}
      action="Remove server"
      done={`The MCP server ${name} was removed.`}
    >
      {isHidden ? (
        "The server that was added in the dashboard is removed. The server in headrace.yaml stays unchanged."
      ) : (
        <>
          Its tools can no longer be listed or called. Approvals are deleted
          {credentials === "headers" && ", and so are its headers"}
          {credentials === "person" && ", and connected accounts are disconnected"}. Usage and logs of this server are
          kept.
        </>
      )}
    </Removal>
  );
}
