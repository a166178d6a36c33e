// Removes a node, after a question that names what ends.
import { Text } from "@mantine/core";
import type { Node } from "../../api/types.ts";
import { Removal } from "../../parts/editing/removal.tsx";
import { counted } from "../../parts/words/figures.ts";
import { modelCount } from "./node-state.tsx";
import { nodePath, touchedPaths } from "./use-node-change.ts";

export function RemoveNode({ node, close }: { node: Node; close(): void }) {
  const { id, name, running, announced_models: announced } = node;
  const served = announced.filter((model) => model.approved).length;
  return (
    <Removal
      {...{ name, path: nodePath(id), stale: touchedPaths, close }}
      action="Remove the node"
      done={`The node ${name} is removed.`}
    >
      {node.connected_at === null
        ? "It is let in no more, and what you approved for it is forgotten."
        : "Its connection ends at once and it is let in no more."}
      {served > 0 && ` Its ${modelCount(served)} can be called no more where nothing else has ${them(served)}.`}
      {running > 0 && (
        <Text size="sm" mt="xs">
          What runs on it, {counted(running, "request")}, ends with an error. Drain it first to let {them(running)} end
          well.
        </Text>
      )}
      <Text size="sm" mt="xs">
        Usage and logs that name it stay. To have it back, somebody joins that machine anew with another token.
      </Text>
    </Removal>
  );
}

function them(amount: number): string {
  return amount === 1 ? "it" : "them";
}
