// A confirmation dialog: what will end, for whom, and a button named after the action.
import { Button, Group, Modal, Stack, Text, TextInput } from "@mantine/core";
import { useCallbackRef } from "@mantine/hooks";
import { type ReactNode, useEffect, useState } from "react";
import type { ApiFailure } from "../../api/client.ts";
import { PlainButton } from "../page/buttons.tsx";
import { Failure } from "../page/failure.tsx";

interface ConfirmProps {
  opened: boolean;
  title: string;
  /** The consequences of the action. */
  children: ReactNode;
  /** The action as verb and object: "Revoke the key". */
  action: string;
  /** The text of the cancel button. */
  stay?: string;
  /** If true, the cancel button and the cross work while the action runs, and stop it. */
  canStop?: boolean;
  /** False if the action can be undone; the button is then not red. */
  final?: boolean;
  /** A text to type before the action, for objects that many depend on. */
  typed?: string;
  busy: boolean;
  error: ApiFailure | null;
  /** True if the focus returns when the dialog closes; false if the element that had the focus disappears too. */
  returnFocus?: boolean;
  confirm(): void;
  close(): void;
}

/** The Escape handler of the open dialog. */
let onEscape: (() => void) | undefined;

// This listener runs in the capture phase, before Mantine's. Otherwise Escape would also close the drawer below the
// dialog.
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
  // A request that was sent cannot be taken back, so the dialog stays.
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

/** A component of its own, so that the typed text is dropped with the dialog. */
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
