// The files of a message, each with its name and, before the message is sent, a button that removes the file.
import { CloseButton, Group, Paper, Text } from "@mantine/core";
import { FileIcon } from "@primer/octicons-react";
import type { Attachment } from "./exchange.ts";

interface AttachmentListProps {
  attachments: readonly Attachment[];
  remove?: (index: number) => void;
}

export function AttachmentList({ attachments, remove }: AttachmentListProps) {
  if (attachments.length === 0) return null;
  return (
    <Group gap={6} role="list" aria-label="Files">
      {attachments.map(({ name, kind, data }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: two files may have one name
        <Paper key={index} withBorder px={6} py={2} role="listitem" className="attachment">
          {kind === "image" && data !== undefined ? <img src={data} alt="" /> : <FileIcon />}
          <Text span size="xs" truncate>
            {name}
          </Text>
          {remove && <CloseButton size="sm" aria-label={`Remove ${name}`} onClick={() => remove(index)} />}
        </Paper>
      ))}
    </Group>
  );
}
