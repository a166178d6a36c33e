// One node in a drawer: how it does, what it may serve, and what may be done about it.
import { Alert, Button, Drawer, Group, Stack, Text, Title } from "@mantine/core";
import { AlertIcon, ClockIcon, InfoIcon, PencilIcon } from "@primer/octicons-react";
import { useState } from "react";
import { Ago } from "../../parts/ago.tsx";
import { CopyAction } from "../../parts/copy.tsx";
import { environmentList } from "../../parts/environments.ts";
import { Facts } from "../../parts/facts.tsx";
import { count } from "../../parts/figures.ts";
import { DrawerPart } from "../../parts/section.tsx";
import { useLast } from "../../parts/use-last.ts";
import { ApproveModels } from "./approve-models.tsx";
import { DrainNode } from "./drain-node.tsx";
import { EditNode } from "./edit-node.tsx";
import { NodeState } from "./node-state.tsx";
import type { Node } from "./node-types.ts";
import { RemoveNode } from "./remove-node.tsx";

interface NodeDrawerProps {
  /** Undefined: closed. */
  node: Node | undefined;
  close(): void;
}

export function NodeDrawer({ node, close }: NodeDrawerProps) {
  const shown = useLast(node);
  return (
    <Drawer opened={node !== undefined} onClose={close} position="right" size="lg" title="Node">
      {shown && <NodeView key={shown.id} node={shown} close={close} />}
    </Drawer>
  );
}

function NodeView({ node, close }: { node: Node; close(): void }) {
  const [editing, setEditing] = useState(false);
  if (editing) return <EditNode node={node} done={() => setEditing(false)} />;
  const { id, name, client_address: address } = node;
  return (
    <Stack gap="lg">
      <Group justify="space-between" wrap="nowrap" align="start">
        <div style={{ overflowWrap: "anywhere" }}>
          <Title order={2}>{name}</Title>
          <Text size="sm" c="dimmed">
            {address === null ? "Not connected" : `Connects from ${address}`}
          </Text>
        </div>
        <NodeState node={node} />
      </Group>
      <Told node={node} />
      <Facts facts={factsOf(node)} />
      <Group gap="xs">
        <Button variant="default" leftSection={<PencilIcon />} onClick={() => setEditing(true)}>
          Edit
        </Button>
        <DrainNode node={node} />
        <RemoveNode node={node} close={close} />
      </Group>
      <DrawerPart title="What it may serve">
        <ApproveModels node={node} />
      </DrawerPart>
      <Group gap={2} wrap="nowrap">
        <Text size="xs" c="dimmed" style={{ overflowWrap: "anywhere" }}>
          {id}
        </Text>
        <CopyAction value={id} label="Copy the id of the node" />
      </Group>
    </Stack>
  );
}

/** What wants somebody, or explains why nothing goes there. */
function Told({ node }: { node: Node }) {
  const { status, draining, last_seen_at: seen } = node;
  if (status === "pending") {
    return (
      <Alert icon={<ClockIcon />} color="yellow" title="It waits for your approval">
        It is connected and gets no request before you choose below what it may serve.
      </Alert>
    );
  }
  if (status === "offline") {
    return (
      <Alert icon={<AlertIcon />} color="red" title="It is not connected">
        {seen === null ? (
          "It joined and has not connected yet."
        ) : (
          <>
            It was last seen <Ago seconds={seen} />.
          </>
        )}{" "}
        Requests go elsewhere meanwhile. It connects by itself as soon as Headrace runs there and reaches this server.
      </Alert>
    );
  }
  if (status === "draining" && !draining) {
    return (
      <Alert icon={<InfoIcon />} color="gray">
        It says itself that it takes nothing new: somebody ends or updates it there.
      </Alert>
    );
  }
  return null;
}

function factsOf(node: Node) {
  const { running, waiting, concurrency, max_concurrency: most, replica_id: replica } = node;
  const places = concurrency === null ? "" : ` of ${count(concurrency)}`;
  return [
    ["Running now", `${count(running)}${places}`],
    ["Waiting", count(waiting)],
    ["Most at once", most === null ? "as it announces" : count(most)],
    ["Environments", environmentList(node.environments)],
    ["Version", node.version ?? "not known yet"],
    ...(node.connected_at === null
      ? [["Last seen", <Ago key="seen" seconds={node.last_seen_at} />] as const]
      : [["Connected", <Ago key="connected" seconds={node.connected_at} />] as const]),
    ...(replica === null ? [] : [["Held by replica", replica] as const]),
    ["Joined", <Ago key="joined" seconds={node.created_at} />],
  ] as const;
}
