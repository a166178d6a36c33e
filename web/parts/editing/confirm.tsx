// A dialog before something that cannot be taken back: what ends, for whom, and the button that says what it does.
import { Button, Group, Modal, Stack, Text, TextInput } from "@mantine/core";
import { type ReactNode, useState } from "react";
import type { ApiFailure } from "../../api/client.ts";
import { Failure } from "../page/failure.tsx";

interface ConfirmProps {
  opened: boolean;
  title: string;
  /** What will happen. */
  children: ReactNode;
  /** A verb and its object: "Revoke the key". */
  action: string;
  /** Of the button that changes nothing. */
  stay?: string;
  /** False for what can be taken back: then the button is not red. */
  final?: boolean;
  /** To be typed first, for what many depend on. */
  typed?: string;
  busy: boolean;
  error: ApiFailure | null;
  confirm(): void;
  close(): void;
}

export function Confirm({ opened, title, close, ...props }: ConfirmProps) {
  return (
    <Modal opened={opened} onClose={close} title={title}>
      <Question {...props} close={close} />
    </Modal>
  );
}

/** What was typed ends with the dialog. */
function Question(props: Omit<ConfirmProps, "opened" | "title">) {
  const { children, action, stay = "Keep it", final = true, typed, busy, error, confirm, close } = props;
  const [text, setText] = useState("");
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        confirm();
      }}
    >
      <Stack style={{ overflowWrap: "anywhere" }}>
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
          <Button variant="default" onClick={close} data-autofocus>
            {stay}
          </Button>
          <Button
            type="submit"
            {...(final ? { color: "red" } : {})}
            loading={busy}
            disabled={typed !== undefined && text !== typed}
          >
            {action}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
