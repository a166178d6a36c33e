// The message field: Enter sends, Shift+Enter inserts a line break. A running answer can be stopped.
import { Box, Button, Group, Textarea } from "@mantine/core";
import { PaperAirplaneIcon, PaperclipIcon, StopIcon } from "@primer/octicons-react";
import { type KeyboardEvent, type ReactNode, type RefObject, useRef, useState } from "react";
import { PlainButton, SmallButton } from "../../parts/page/buttons.tsx";
import { AttachmentList } from "./attachment-list.tsx";
import { attachmentOf, maxLength } from "./attachments.ts";
import type { Attachment } from "./exchange.ts";

interface ComposerProps {
  field: RefObject<HTMLTextAreaElement | null>;
  label: string;
  value: string;
  running: boolean;
  /** The files of the message; absent if the model takes none. */
  files?: { attachments: readonly Attachment[]; change(attachments: readonly Attachment[]): void };
  /** Further buttons, before the send button. */
  children: ReactNode;
  change(value: string): void;
  send(): void;
  stop(): void;
}

export function Composer({ field, label, value, running, files, children, change, send, stop }: ComposerProps) {
  const isEmpty = value.trim() === "";
  const chosen = useRef<HTMLInputElement>(null);
  const { problem, add } = useAttaching(files, field);
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
        onPaste={({ clipboardData }) => void (clipboardData.files.length > 0 && add(clipboardData.files))}
        error={problem || undefined}
        onKeyDown={(event) => {
          if (!isSending(event)) return;
          event.preventDefault();
          if (!isEmpty && !running) send();
        }}
        autosize
        minRows={2}
        maxRows={10}
      />
      {files && (
        <Box mt={files.attachments.length > 0 ? "xs" : 0}>
          <AttachmentList
            attachments={files.attachments}
            remove={(index) => files.change(files.attachments.toSpliced(index, 1))}
          />
          <input
            ref={chosen}
            type="file"
            multiple
            hidden
            onChange={({ currentTarget }) => {
              void add([...(currentTarget.files ?? [])]);
              // The field is cleared, because the browser would report no change if the user chose the same file again.
              currentTarget.value = "";
            }}
          />
        </Box>
      )}
      <Group justify="space-between" mt="xs" wrap="nowrap" className="playground-tools">
        <Group gap={6}>
          {files && (
            <SmallButton leftSection={<PaperclipIcon />} onClick={() => chosen.current?.click()}>
              Attach
            </SmallButton>
          )}
          {children}
        </Group>
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

/** Adds chosen and pasted files to the message; `problem` says why files were not added. */
function useAttaching(files: ComposerProps["files"], field: ComposerProps["field"]) {
  const [problem, setProblem] = useState("");
  const add = async (chosen: Iterable<File>) => {
    if (!files) return;
    setProblem("");
    try {
      const next = [...files.attachments, ...(await Promise.all([...chosen].map(attachmentOf)))];
      const length = next.reduce((sum, { data = "" }) => sum + data.length, 0);
      if (length <= maxLength) files.change(next);
      else setProblem("The files of a message can have at most 15 MB. Remove a file, or attach a smaller one.");
    } catch {
      setProblem("A file could not be read. Choose it again.");
    }
    field.current?.focus();
  };
  return { problem, add };
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
