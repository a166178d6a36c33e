// A button that removes what is shown, after a question that says what ends with it.
import { Button } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { notifications } from "@mantine/notifications";
import { TrashIcon } from "@primer/octicons-react";
import type { ReactNode } from "react";
import { call } from "../../api/client.ts";
import { useChange } from "../../api/queries.ts";
import { Confirm } from "./confirm.tsx";

interface RemovalProps {
  name: string;
  /** Of the API. */
  path: string;
  /** Paths whose answers it makes stale. */
  stale: readonly string[];
  /** Of the button that asks. */
  label?: string;
  /** Of the one that removes: "Remove the node". */
  action: string;
  /** What will happen. */
  children: ReactNode;
  /** Said once it is removed. */
  done: string;
  /** Ends the showing of it. */
  close(): void;
}

export function Removal({ name, path, stale, label = "Remove", action, children, done, close }: RemovalProps) {
  const [asking, { open, close: stop }] = useDisclosure();
  const remove = useChange(() => call("DELETE", path), {
    stale,
    leave: close,
    done() {
      stop();
      notifications.show({ message: done });
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
        {label}
      </Button>
      <Confirm
        opened={asking}
        title={`Remove ${name}?`}
        action={action}
        busy={remove.isPending}
        error={remove.error}
        confirm={() => remove.mutate(undefined)}
        close={stop}
      >
        {children}
      </Confirm>
    </>
  );
}
