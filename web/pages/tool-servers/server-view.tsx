// The view of an MCP server: its settings, a test, its definitions, its connected accounts, and its removal.
import { Alert, Group, Stack, Text, Title } from "@mantine/core";
import { AlertIcon, BeakerIcon, InfoIcon, PencilIcon } from "@primer/octicons-react";
import { useEffect, useRef, useState } from "react";
import { call } from "../../api/client.ts";
import { useChange, useList, useRead } from "../../api/queries.ts";
import type { Node, ToolDefinition, ToolServer, ToolServerTest, UpdateToolServerRequest } from "../../api/types.ts";
import { Removal } from "../../parts/editing/removal.tsx";
import { useToldChange } from "../../parts/editing/told-change.ts";
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
import { TestResult } from "./test-result.tsx";
import {
  definitionsPath,
  staleWithToolServers,
  testsPath,
  toolServerPath,
  toolServersPath,
} from "./tool-server-paths.ts";
import { approvalTexts, identityText, placeOf, ServerState } from "./tool-server-words.tsx";

export function ServerView({ server, close }: { server: ToolServer; close(): void }) {
  const [editing, setEditing] = useState(false);
  const { name, title, description, source, enabled, credentials, overrides_database: hidesOne } = server;
  const isOwn = source === "database";
  const [search, setSearch] = useState("");
  const [shown, setShown] = useState<ToolDefinition>();
  const waiting = useWaiting(server);
  const said = useList<ToolDefinition>(definitionsPath(name), { search, limit: 100 });
  const test = useChange(() => call<ToolServerTest>("POST", testsPath, { body: { name } }), {
    stale: [toolServersPath],
  });
  const turn = useToldChange(
    (body: UpdateToolServerRequest) => call<ToolServer>("PATCH", toolServerPath(name), { body }),
    {
      stale: staleWithToolServers,
      said: (changed) => (changed.enabled ? `${name} is offered again.` : `${name} is switched off.`),
    },
  );
  const heading = useRef<HTMLHeadingElement>(null);
  // What had the keyboard, such as the form or the button of a decision, may be gone: it goes on from here.
  // biome-ignore lint/correctness/useExhaustiveDependencies: each takes buttons away
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
          <Note>{placeOf(server)}</Note>
        </div>
        <ServerState server={server} />
      </Group>
      {description !== null && <Text size="sm">{description}</Text>}
      {!isOwn && (
        <Alert icon={<InfoIcon />} color="gray">
          This server stands in headrace.yaml and is read-only here, but for what is approved: change it under tools in
          that file.
          {hidesOne && " One of this name was added here, too; it does not count while the file has the name."}
        </Alert>
      )}
      {server.credentials_unreadable && (
        <Alert icon={<AlertIcon />} color="red" title="It is not used: its credentials cannot be read">
          They were sealed under a secret that this server does not have any more. Give them again under Edit.
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

function ServerFacts({ server }: { server: ToolServer }) {
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
        ["Its tools begin with", `${name}_`],
        ...(nodeId === undefined ? [] : [["Node", node.data?.name ?? nodeId] as const]),
        ["Comes from", server.source === "database" ? "Added here" : "headrace.yaml"],
        ["Asked as", identityText(server)],
        ["Environments", environments === null ? "All" : environmentList(environments)],
        ["Accounts", accounts === null ? "All" : counted(accounts.length, "account")],
        ["Requests that never leave", local ? "May go there, as it is local" : "Do not go there"],
        ["Offered", tools === null ? "All of its tools" : tools.join(", ")],
        ["Approval", approvalTexts[approval]],
        ["Price of a call", price === null ? "Nothing" : rate(price)],
        ["A call may take", span(server.timeout_seconds)],
        ["A result may have", bytes(server.max_result_bytes)],
        ["Calls at once", count(server.max_concurrency)],
        ["Protocol revision", server.protocol_version ?? "The newest that it knows"],
        ["Connections", sharing === "all" ? "One for all" : "Of each person alone"],
        ...(server.created_at === null ? [] : [["Added", <Ago key="added" seconds={server.created_at} />] as const]),
      ]}
    />
  );
}

function RemoveServer({ server, close }: { server: ToolServer; close(): void }) {
  const { name, credentials, overrides_database: isHidden } = server;
  return (
    <Removal
      {...{ name, path: toolServerPath(name), stale: staleWithToolServers, close }}
      {...(isHidden ? { label: "Remove the one added here" } : {})}
      action="Remove the server"
      done={`The MCP server ${name} that was added here is removed.`}
    >
      {isHidden ? (
        "The one that was added here is removed. The one of headrace.yaml stays and works on as it does."
      ) : (
        <>
          Nobody sees or calls its tools any more. What was approved of them is forgotten
          {credentials === "headers" && ", and its headers are deleted"}
          {credentials === "person" && ", and the accounts that people connected there are disconnected"}. Usage and
          logs that name it stay.
        </>
      )}
    </Removal>
  );
}
