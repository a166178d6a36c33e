// A secret that the server returns once, to copy before the dialog closes.
import { Alert, Button, Group, Modal, Stack } from "@mantine/core";
import { AlertIcon } from "@primer/octicons-react";
import { type ReactNode, useState } from "react";
import { CopyBlock } from "./copy.tsx";

interface ShownOnceProps {
  title: string;
  /** The secret to show; undefined while the dialog is closed. */
  secret: string | undefined;
  /** The text of the button: "Copy the link". */
  label: string;
  /** Advice on using the secret, and its lifetime. */
  children: ReactNode;
  close(): void;
}

export function ShownOnce({ title, secret, label, children, close }: ShownOnceProps) {
  // The secret is kept only while the dialog is visible.
  const [shown, setShown] = useState(secret);
  if (secret !== undefined && secret !== shown) setShown(secret);
  return (
    <Modal
      opened={secret !== undefined}
      onClose={close}
      title={title}
      size="lg"
      closeOnClickOutside={false}
      closeOnEscape={false}
      onExitTransitionEnd={() => setShown(undefined)}
    >
      <Stack>
        <Alert icon={<AlertIcon />} color="yellow" variant="light">
          You see it only once: the server does not store it. {children}
        </Alert>
        <CopyBlock value={shown ?? ""} label={label} />
        <Group justify="end">
          <Button onClick={close}>Done</Button>
        </Group>
      </Stack>
    </Modal>
  );
}
