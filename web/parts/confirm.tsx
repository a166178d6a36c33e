// A dialog before something that cannot be taken back: what ends, for whom, and the button that says what it does.
import { Button, Group, Modal, Stack, Text, TextInput } from "@mantine/core";
import { type ReactNode, useState } from "react";
import type { ApiFailure } from "../api/client.ts";
import { Failure } from "./failure.tsx";

interface ConfirmProps {
  opened: boolean;
  title: string;
  /** What will happen. */
  children: ReactNode;
  /** A verb and its object: "Revoke the key". */
  action: string;
  /** To be typed first, for what many depend on. */
  typed?: string;
  busy: boolean;
  error: ApiFailure | null;
  confirm(): void;
  close(): void;
}

export function Confirm({ opened, title, children, action, typed, busy, error, confirm, close }: ConfirmProps) {
  const [text, setText] = useState("");
  const leave = () => {
    setText("");
    close();
  };
  return (
    <Modal opened={opened} onClose={leave} title={title} closeButtonProps={{ "aria-label": "Close" }}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          confirm();
        }}
      >
        <Stack>
          <Text size="sm" component="div">
            {children}
          </Text>
          {typed !== undefined && (
            <TextInput
              label={`Type ${typed} to go on`}
              value={text}
              onChange={(event) => setText(event.currentTarget.value)}
              autoComplete="off"
            />
          )}
          {error && <Failure error={error} />}
          <Group justify="end">
            <Button variant="default" onClick={leave} data-autofocus>
              Keep it
            </Button>
            <Button type="submit" color="red" loading={busy} disabled={typed !== undefined && text !== typed}>
              {action}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
