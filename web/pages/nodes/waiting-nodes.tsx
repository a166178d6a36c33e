// A notice about nodes that wait for an operator's approval.
import { Alert, Button, Group, Stack } from "@mantine/core";
import { ClockIcon } from "@primer/octicons-react";
import type { Node } from "../../api/types.ts";
import { count } from "../../parts/words/figures.ts";
import { modelCount } from "./node-state.tsx";

const maxNamed = 5;

export function WaitingNodes({ nodes, choose }: { nodes: readonly Node[]; choose(node: Node): void }) {
  const [first] = nodes;
  if (!first) return null;
  const title =
    nodes.length === 1
      ? `${first.name} waits for your approval`
      : `${count(nodes.length)} nodes wait for your approval`;
  const announced = first.announced_models.length;
  return (
    <Alert icon={<ClockIcon />} color="yellow" title={title} role="status">
      <Stack gap="xs" align="start">
        {nodes.length === 1
          ? `The node is connected${announced === 0 ? "" : ` and announces ${modelCount(announced)}`}. It receives no requests until you choose its models.`
          : "These nodes are connected but receive no requests until you choose their models."}
        <Group gap="xs">
          {nodes.slice(0, maxNamed).map((node) => (
            <Button key={node.id} size="xs" onClick={() => choose(node)}>
              Review {node.name}
            </Button>
          ))}
        </Group>
      </Stack>
    </Alert>
  );
}
