// The view of one node: state, approved models and actions.
import { Alert, Group, Stack, Text, Title } from "@mantine/core";
import { AlertIcon, ClockIcon, InfoIcon, PencilIcon } from "@primer/octicons-react";
import { useEffect, useRef, useState } from "react";
import { call } from "../../api/client.ts";
import type { Node } from "../../api/types.ts";
import { Draining } from "../../parts/editing/draining.tsx";
import { Removal } from "../../parts/editing/removal.tsx";
import { PlainButton } from "../../parts/page/buttons.tsx";
import { DrawerPart } from "../../parts/page/section.tsx";
import { CopyAction } from "../../parts/secrets/copy.tsx";
import { Ago } from "../../parts/words/ago.tsx";
import { environmentList } from "../../parts/words/environments.ts";
import { Facts } from "../../parts/words/facts.tsx";
import { count, counted } from "../../parts/words/figures.ts";
import { Note, SmallNote } from "../../parts/words/note.tsx";
import { ApproveModels } from "./approve-models.tsx";
import { EditNode } from "./edit-node.tsx";
import { modelCount, NodeState, runningText, waitsForApproval } from "./node-state.tsx";
import { nodePath, touchedPaths } from "./use-node-change.ts";
import type { ReplicaName } from "./use-replicas.ts";

interface ViewProps {
  node: Node;
  replicaName: ReplicaName | undefined;
  close(): void;
}

export function NodeView({ node, ...rest }: ViewProps) {
  const [editing, setEditing] = useState(false);
  const [isBack, setIsBack] = useState(false);
  if (editing) {
    return (
      <EditNode
        node={node}
        done={() => {
          setEditing(false);
          setIsBack(true);
        }}
      />
    );
  }
  return <Overview {...rest} node={node} isBack={isBack} edit={() => setEditing(true)} />;
}

interface OverviewProps extends ViewProps {
  /** True if the user has just left the form. The focus then returns to the edit button. */
  isBack: boolean;
  edit(): void;
}

function Overview({ node, replicaName, isBack, edit, close }: OverviewProps) {
  const { id, name, client_address: address } = node;
  const editing = useRef<HTMLButtonElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the focus moves only when the view opens
  useEffect(() => {
    if (isBack) editing.current?.focus();
  }, []);
  return (
    <Stack gap="lg">
      <Group justify="space-between" wrap="nowrap" align="start">
        <div style={{ overflowWrap: "anywhere" }}>
          <Title order={2}>{name}</Title>
          <Note>{address === null ? "Not connected" : `Connects from ${address}`}</Note>
        </div>
        <NodeState node={node} />
      </Group>
      <NodeNotice node={node} />
      <Facts facts={factsOf(node, replicaName)} />
      <Group gap="xs">
        <PlainButton ref={editing} leftSection={<PencilIcon />} onClick={edit}>
          Edit
        </PlainButton>
        <DrainNode node={node} />
        <RemoveNode node={node} close={close} />
      </Group>
      <DrawerPart title="Approved models">
        <ApproveModels node={node} />
      </DrawerPart>
      <Group gap={2} wrap="nowrap">
        <SmallNote style={{ overflowWrap: "anywhere" }}>{id}</SmallNote>
        <CopyAction value={id} label="Copy the id of the node" />
      </Group>
    </Stack>
  );
}

/** Shows a notice if the node needs an operator, or explains why it gets no requests. */
function NodeNotice({ node }: { node: Node }) {
  const { status, draining, last_seen_at: seen } = node;
  if (waitsForApproval(node)) {
    return (
      <Alert icon={<ClockIcon />} color="yellow" title="This node waits for your approval">
        The node is connected but receives no requests until you choose its models below.
      </Alert>
    );
  }
  if (status === "offline") {
    return (
      <Alert icon={<AlertIcon />} color="red" title="This node is not connected">
        {seen === null ? (
          "The node joined but has not connected yet."
        ) : (
          <>
            The node was last seen <Ago seconds={seen} />.
          </>
        )}{" "}
        Until it connects, requests go to other servers. It connects automatically when Headrace runs there and reaches
        this server.
      </Alert>
    );
  }
  if (status === "draining" && !draining) {
    return (
      <Alert icon={<InfoIcon />} color="gray">
        The node itself accepts no new requests, because it is being stopped or updated.
      </Alert>
    );
  }
  return null;
}

function factsOf(node: Node, replicaName: ReplicaName | undefined) {
  const { waiting, max_concurrency: most, replica_id: replica } = node;
  return [
    ["Running now", runningText(node)],
    ["Waiting", count(waiting)],
    ...(node.draining && node.status === "offline" ? [["After it reconnects", "stays drained"] as const] : []),
    ["Max concurrency", most === null ? "automatic" : count(most)],
    ["Environments", environmentList(node.environments)],
    ["Local server", node.local ? "yes" : "no, not used for local-only keys"],
    ...(node.tool_servers.length === 0
      ? []
      : [["MCP servers", node.tool_servers.map((server) => server.name).join(", ")] as const]),
    ["Version", node.version ?? "unknown"],
    ...(node.connected_at === null
      ? [["Last seen", <Ago key="seen" seconds={node.last_seen_at} />] as const]
      : [["Connected", <Ago key="connected" seconds={node.connected_at} />] as const]),
    ...(replica === null || !replicaName ? [] : [["Connected to replica", replicaName(replica)] as const]),
    ["Joined", <Ago key="joined" seconds={node.created_at} />],
  ] as const;
}

function DrainNode({ node: { id, name, draining, running } }: { node: Node }) {
  return (
    <Draining
      {...{ name, running }}
      isDraining={draining}
      stale={touchedPaths}
      change={(isDraining) => call("PATCH", nodePath(id), { body: { draining: isDraining } })}
      purpose="so that the machine can be updated or switched off"
    >
      Requests for its models go to other servers. If no other server has a model, its requests fail with status 503.
      The node stays drained, even after a reconnect, until you resume it.
    </Draining>
  );
}

function RemoveNode({ node, close }: { node: Node; close(): void }) {
  const { id, name, running, announced_models: announced } = node;
  const served = announced.filter((model) => model.approved).length;
  return (
    <Removal
      {...{ name, path: nodePath(id), stale: touchedPaths, close }}
      action="Remove node"
      done={`The node ${name} was removed.`}
    >
      {node.connected_at === null
        ? "The node can no longer connect, and its approvals are deleted."
        : "The node is disconnected immediately and can no longer connect."}
      {served > 0 && ` Its ${modelCount(served)} can no longer be called, unless another server has ${them(served)}.`}
      {running > 0 && (
        <Text size="sm" mt="xs">
          {counted(running, "running request")} will fail. Drain the node first to complete {them(running)}.
        </Text>
      )}
      <Text size="sm" mt="xs">
        Usage and logs of this node are kept. To add it again, join the machine with a new token.
      </Text>
    </Removal>
  );
}

function them(amount: number): string {
  return amount === 1 ? "it" : "them";
}
