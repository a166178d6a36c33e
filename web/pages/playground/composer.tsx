// The message field: Enter sends, Shift+Enter inserts a line break. A running answer can be stopped.
import { Button, Group, Textarea } from "@mantine/core";
import { PaperAirplaneIcon, StopIcon } from "@primer/octicons-react";
import type { KeyboardEvent, ReactNode, RefObject } from "react";
import { PlainButton } from "../../parts/page/buttons.tsx";

interface ComposerProps {
  field: RefObject<HTMLTextAreaElement | null>;
  label: string;
  value: string;
  running: boolean;
  /** Further buttons, before the send button. */
  children: ReactNode;
  change(value: string): void;
  send(): void;
  stop(): void;
}

export function Composer({ field, label, value, running, children, change, send, stop }: ComposerProps) {
  const isEmpty = value.trim() === "";
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (!isEmpty && !running) send();
      }}
    >
      <Textarea
        ref={field}
        aria-label={label}
        placeholder={hasKeyboard() ? `${label} – Enter sends, Shift+Enter starts a new line` : label}
        value={value}
        onChange={(event) => change(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (!isSending(event)) return;
          event.preventDefault();
          if (!isEmpty && !running) send();
        }}
        autosize
        minRows={2}
        maxRows={10}
      />
      <Group justify="space-between" mt="xs" wrap="nowrap" className="playground-tools">
        <Group gap={6}>{children}</Group>
        {running ? (
          <PlainButton
            flex="none"
            leftSection={<StopIcon />}
            onClick={() => {
              stop();
              field.current?.focus();
            }}
          >
            Stop
          </PlainButton>
        ) : (
          <Button type="submit" flex="none" leftSection={<PaperAirplaneIcon />} disabled={isEmpty}>
            Send
          </Button>
        )}
      </Group>
    </form>
  );
}

/**
 * Reports whether Enter should send: not while an input method composes text, nor on a phone, which has no Shift+Enter.
 */
export function isSending(event: KeyboardEvent): boolean {
  if (event.key !== "Enter" || event.nativeEvent.isComposing) return false;
  if (event.ctrlKey || event.metaKey) return true;
  return !event.shiftKey && !event.altKey && hasKeyboard();
}

function hasKeyboard(): boolean {
  return window.matchMedia("(pointer: fine)").matches;
}
