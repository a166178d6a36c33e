// Renders an answer's Markdown: headings, lists, tables and code become React elements; HTML in the answer is never
// rendered.
import { Anchor, Code, Group, Stack, Table, Text } from "@mantine/core";
import { memo, useState } from "react";
import { ScrollRegion } from "../page/scroll-region.tsx";
import { CopyAction } from "../secrets/copy.tsx";
import { SmallNote } from "../words/note.tsx";
import { type Inline, inlineOf } from "./inline-text.ts";
import { type Block, BlockReader, cellsOf, type Item, itemsOf } from "./text-blocks.ts";

/** The deepest nesting of quotes; deeper quotes keep their marks. */
const deepest = 4;

export function AnswerText({ text, depth = 0 }: { text: string; depth?: number }) {
  const [reader] = useState(() => new BlockReader());
  return (
    <Stack gap="sm" className="answer">
      {reader.read(text).map((block) => (
        <BlockView key={block.at} {...block} depth={depth} />
      ))}
    </Stack>
  );
}

/** Memoized: a block is rendered again only while it grows. */
const BlockView = memo(function BlockView({ kind, text, language, level, depth }: Block & { depth: number }) {
  if (kind === "code") return <CodeBlock text={text} language={language} />;
  if (kind === "rule") return <hr />;
  if (kind === "list") return <ListView items={itemsOf(text)} />;
  if (kind === "table") return <TableView text={text} />;
  if (kind === "quote" && depth < deepest) {
    return (
      <blockquote>
        <AnswerText text={text} depth={depth + 1} />
      </blockquote>
    );
  }
  if (kind === "heading") {
    // An answer's heading is bold text: a heading element would disturb the page's outline for screen readers.
    return (
      <Text size={level < 3 ? "md" : "sm"} fw={700}>
        <InlineView text={text} />
      </Text>
    );
  }
  return (
    <Text size="sm" className="plain-text" component="div">
      <InlineView text={text} />
    </Text>
  );
});

function CodeBlock({ text, language }: { text: string; language: string }) {
  const what = language === "" ? "Code" : language;
  return (
    <div className="code-block">
      <Group justify="space-between" px="sm" py={2} wrap="nowrap">
        <SmallNote>{what}</SmallNote>
        <CopyAction value={text} label="Copy the code" />
      </Group>
      <Code block tabIndex={0} role="region" aria-label={`${what} in the answer`}>
        {text}
      </Code>
    </div>
  );
}

function ListView({ items }: { items: readonly Item[] }) {
  const first = items[0]?.number;
  const rows = items.map(({ at, text, items: within }) => (
    <li key={at}>
      <InlineView text={text} />
      {within.length > 0 && <ListView items={within} />}
    </li>
  ));
  return first === undefined ? <ul>{rows}</ul> : <ol start={first}>{rows}</ol>;
}

function TableView({ text }: { text: string }) {
  const [head, , ...rows] = text.split("\n").map((line, at) => ({ at, cells: cellsOf(line) }));
  const columns = head?.cells.map((name, at) => ({ at, name })) ?? [];
  return (
    <ScrollRegion label="Table in the answer" className="answer-table">
      <Table withTableBorder fz="sm">
        <Table.Thead>
          <Table.Tr>
            {columns.map(({ at, name }) => (
              <Table.Th key={at}>
                <InlineView text={name} />
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map(({ at: row, cells }) => (
            <Table.Tr key={row}>
              {columns.map(({ at }) => (
                <Table.Td key={at}>
                  <InlineView text={cells[at] ?? ""} />
                </Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </ScrollRegion>
  );
}

const InlineView = memo(function InlineView({ text }: { text: string }) {
  return <Parts parts={inlineOf(text)} />;
});

function Parts({ parts }: { parts: readonly Inline[] }) {
  return parts.map((part) => <Part key={`${part.at} ${part.kind}`} part={part} />);
}

function Part({ part }: { part: Inline }) {
  switch (part.kind) {
    case "text":
      return part.text;
    case "code":
      return <Code>{part.text}</Code>;
    case "link":
      return (
        <Anchor href={part.href} target="_blank" rel="noopener noreferrer" inherit underline="always">
          <Parts parts={part.parts} />
        </Anchor>
      );
    default: {
      const Mark = tags[part.kind];
      return (
        <Mark>
          <Parts parts={part.parts} />
        </Mark>
      );
    }
  }
}

const tags = { strong: "strong", em: "em", del: "del" } as const;
