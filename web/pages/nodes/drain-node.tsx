// Lets a node finish what it has, and gives it nothing new; or gives it requests again.
import { Button, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { notifications } from "@mantine/notifications";
import { DownloadIcon, PlayIcon } from "@primer/octicons-react";
import type { Node } from "../../api/types.ts";
import { Confirm } from "../../parts/editing/confirm.tsx";
import { Failure } from "../../parts/page/failure.tsx";
import { count } from "../../parts/words/figures.ts";
import { useNodeChange } from "./use-node-change.ts";

export function DrainNode({ node: { id, name, draining, running } }: { node: Node }) {
  const [asking, { open, close }] = useDisclosure();
  const change = useNodeChange(id, (changed) => {
    close();
    notifications.show({ message: `${name} gets ${changed.draining ? "no new requests" : "requests again"}.` });
  });
  if (draining) {
    return (
      <>
        <Button
          leftSection={<PlayIcon />}
          loading={change.isPending}
          onClick={() => change.mutate({ draining: false })}
        >
          Send requests again
        </Button>
        {change.error && <Failure error={change.error} />}
      </>
    );
  }
  return (
    <>
      <Button
        variant="default"
        leftSection={<DownloadIcon />}
        onClick={() => {
          change.reset();
          open();
        }}
      >
        Drain
      </Button>
      <Confirm
        opened={asking}
        title={`Drain ${name}?`}
        action="Drain it"
        stay="Leave it as it is"
        final={false}
        busy={change.isPending}
        error={change.error}
        confirm={() => change.mutate({ draining: true })}
        close={close}
      >
        It finishes {running === 0 ? "what it may have begun by then" : `the ${count(running)} that run on it`} and gets
        nothing new, so that the machine can be updated or switched off.
        <Text size="sm" mt="xs">
          Requests for its models go elsewhere. Where nothing else has them, they get an error with status 503. It stays
          drained, also when it connects anew, until you send requests to it again.
        </Text>
      </Confirm>
    </>
  );
}
