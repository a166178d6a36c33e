// Removes a node, after a question that names what ends.
import { Button, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { notifications } from "@mantine/notifications";
import { TrashIcon } from "@primer/octicons-react";
import { call } from "../../api/client.ts";
import { useChange } from "../../api/queries.ts";
import type { Node } from "../../api/types.ts";
import { Confirm } from "../../parts/confirm.tsx";
import { count } from "../../parts/figures.ts";
import { modelCount } from "./node-state.tsx";
import { nodePath, touchedPaths } from "./use-node-change.ts";

export function RemoveNode({ node, close }: { node: Node; close(): void }) {
  const { id, name, running, announced_models: announced } = node;
  const served = announced.filter((model) => model.approved).length;
  const [asking, { open, close: stop }] = useDisclosure();
  const remove = useChange(() => call("DELETE", nodePath(id)), {
    stale: touchedPaths,
    done() {
      stop();
      close();
      notifications.show({ message: `The node ${name} is removed.` });
    },
  });
  return (
    <>
      <Button
        variant="default"
        c="var(--mantine-color-error)"
        leftSection={<TrashIcon />}
        onClick={() => {
          remove.reset();
          open();
        }}
      >
        Remove
      </Button>
      <Confirm
        opened={asking}
        title={`Remove ${name}?`}
        action="Remove the node"
        busy={remove.isPending}
        error={remove.error}
        confirm={() => remove.mutate(undefined)}
        close={stop}
      >
        {node.connected_at === null
          ? "It is let in no more, and what you approved for it is forgotten."
          : "Its connection ends at once and it is let in no more."}
        {served > 0 && ` Its ${modelCount(served)} can be called no more where nothing else has ${them(served)}.`}
        {running > 0 && (
          <Text size="sm" mt="xs">
            What runs on it, {running === 1 ? "1 request" : `${count(running)} requests`}, ends with an error. Drain it
            first to let {them(running)} end well.
          </Text>
        )}
        <Text size="sm" mt="xs">
          Usage and logs that name it stay. To have it back, somebody joins that machine anew with another token.
        </Text>
      </Confirm>
    </>
  );
}

function them(amount: number): string {
  return amount === 1 ? "it" : "them";
}
