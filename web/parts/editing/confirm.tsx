// A dialog before something that cannot be taken back: what ends, for whom, and the button that says what it does.
import { Button, Group, Modal, Stack, Text, TextInput } from "@mantine/core";
import { useCallbackRef } from "@mantine/hooks";
import { type ReactNode, useEffect, useState } from "react";
import type { ApiFailure } from "../../api/client.ts";
import { PlainButton } from "../page/buttons.tsx";
import { Failure } from "../page/failure.tsx";

interface ConfirmProps {
  opened: boolean;
  title: string;
  /** What will happen. */
  children: ReactNode;
  /** A verb and its object: "Revoke the key". */
  action: string;
  /** The text of the button that changes nothing. */
  stay?: string;
  /** While it is busy that button and the cross lead out, too: what goes on is stopped by them. */
  canStop?: boolean;
  /** False for what can be taken back: then the button is not red. */
  final?: boolean;
  /** To be typed first, for what many depend on. */
  typed?: string;
  busy: boolean;
  error: ApiFailure | null;
  /** False where the element that had the focus goes as well. */
  returnFocus?: boolean;
  confirm(): void;
  close(): void;
}

/** What Escape does in the question that is open. */
let onEscape: (() => void) | undefined;

// Before the library hears of it, which would close the drawer below as well.
window.addEventListener(
  "keydown",
  (event) => {
    if (event.key !== "Escape" || event.isComposing || !onEscape) return;
    event.stopImmediatePropagation();
    onEscape();
  },
  { capture: true },
);

export function Confirm({ opened, title, canStop = false, returnFocus = true, close, ...props }: ConfirmProps) {
  // What is asked of the server can no longer be taken back.
  const isHeld = props.busy && !canStop;
  const stay = useCallbackRef(() => {
    if (!isHeld) close();
  });
  useEffect(() => {
    if (!opened) return;
    onEscape = stay;
    return () => {
      onEscape = undefined;
    };
  }, [opened, stay]);
  return (
    <Modal
      opened={opened}
      onClose={stay}
      closeOnEscape={false}
      returnFocus={returnFocus}
      closeButtonProps={{ "aria-label": "Close", disabled: isHeld }}
      title={title}
    >
      <Question {...props} isHeld={isHeld} close={close} />
    </Modal>
  );
}

interface QuestionProps extends Omit<ConfirmProps, "opened" | "title" | "canStop" | "returnFocus"> {
  isHeld: boolean;
}

/** What was typed ends with the dialog. */
function Question(props: QuestionProps) {
  const { children, action, stay = "Cancel", final = true, typed, busy, isHeld, error, confirm, close } = props;
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
            label={`Type ${typed} to confirm`}
            value={text}
            onChange={(event) => setText(event.currentTarget.value)}
            autoComplete="off"
          />
        )}
        {error && <Failure error={error} />}
        <Group justify="end">
          <PlainButton onClick={close} disabled={isHeld} data-autofocus>
            {stay}
          </PlainButton>
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
