// A question of the transcript; editing it asks again from there.
import { ActionIcon, Button, Group, Paper, Stack, Text, Textarea } from "@mantine/core";
import { PencilIcon } from "@primer/octicons-react";
import { useEffect, useRef, useState } from "react";
import { SmallButton } from "../../parts/page/buttons.tsx";
import { SmallNote } from "../../parts/words/note.tsx";
import { AttachmentList } from "./attachment-list.tsx";
import { isSending } from "./composer.tsx";
import type { Attachment } from "./exchange.ts";

interface QuestionViewProps {
  question: string;
  attachments: readonly Attachment[];
  /** True if later questions follow. Asking this question again would delete them. */
  hasLater: boolean;
  /** Asks an edited question; undefined while the question cannot be edited. */
  askAnew: ((question: string) => void) | undefined;
}

export function QuestionView({ question, attachments, hasLater, askAnew }: QuestionViewProps) {
  const [written, setWritten] = useState<string>();
  const pencil = useRef<HTMLButtonElement>(null);
  const wasOpen = useRef(false);
  const isOpen = written !== undefined;
  useEffect(() => {
    if (wasOpen.current && !isOpen) pencil.current?.focus();
    wasOpen.current = isOpen;
  }, [isOpen]);
  if (!isOpen) {
    return (
      <Group gap={4} justify="end" align="start" wrap="nowrap" pl={{ base: 0, sm: "xl" }}>
        <ActionIcon
          ref={pencil}
          variant="subtle"
          color="gray"
          aria-label="Edit and send again"
          data-hint="Edit and send again"
          disabled={!askAnew}
          onClick={() => setWritten(question)}
        >
          <PencilIcon />
        </ActionIcon>
        <Paper px="md" py="xs" className="question">
          <AttachmentList attachments={attachments} />
          <Text size="sm" className="plain-text">
            {question}
          </Text>
        </Paper>
      </Group>
    );
  }
  const isEmpty = written.trim() === "";
  const send = () => {
    if (isEmpty || !askAnew) return;
    setWritten(undefined);
    askAnew(written);
  };
  return (
    <Stack gap="xs">
      <Textarea
        label="Edit the message"
        value={written}
        onChange={(event) => setWritten(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") setWritten(undefined);
          if (!isSending(event)) return;
          event.preventDefault();
          send();
        }}
        autosize
        minRows={2}
        maxRows={12}
        autoFocus
      />
      <Group justify="end" gap="xs">
        {hasLater && <SmallNote>All later messages are removed.</SmallNote>}
        <SmallButton onClick={() => setWritten(undefined)}>Cancel</SmallButton>
        <Button size="xs" onClick={send} disabled={isEmpty || !askAnew}>
          Send again
        </Button>
      </Group>
    </Stack>
  );
}
