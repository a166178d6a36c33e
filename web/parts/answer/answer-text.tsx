// The text of an answer, as text and never as HTML: paragraphs, and code set apart with a button that copies it.
import { Code, Group, Stack, Text } from "@mantine/core";
import { memo } from "react";
import { CopyAction } from "../copy.tsx";
import { type Block, blocksOf } from "./text-blocks.ts";

export function AnswerText({ text }: { text: string }) {
  return (
    <Stack gap="sm">
      {blocksOf(text).map((block, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: an answer grows at its end; what is before stays what it is
        <BlockView key={index} {...block} />
      ))}
    </Stack>
  );
}

/** Drawn again only while it grows, however long the answer is. */
const BlockView = memo(function BlockView({ kind, text, language }: Block) {
  if (kind === "text") {
    return (
      <Text size="sm" className="plain-text">
        {text}
      </Text>
    );
  }
  const what = language === "" ? "Code" : language;
  return (
    <div className="code-block">
      <Group justify="space-between" px="sm" py={2} wrap="nowrap">
        <Text size="xs" c="dimmed">
          {what}
        </Text>
        <CopyAction value={text} label="Copy the code" />
      </Group>
      <Code block tabIndex={0} role="region" aria-label={`${what} in the answer`}>
        {text}
      </Code>
    </div>
  );
});
