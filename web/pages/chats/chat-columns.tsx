// What a row of the stored chats shows.
import { Anchor, Checkbox, Group, Stack, Text } from "@mantine/core";
import { Link } from "wouter";
import type { StoredChatCompletion } from "../../api/types.ts";
import { count } from "../../parts/figures.ts";
import type { Column } from "../../parts/long-table.tsx";
import { Moment } from "../../parts/moment.tsx";
import { ChatLabels } from "./chat-labels.tsx";
import { firstWords } from "./chat-text.ts";

export interface Selection {
  ids: ReadonlySet<string>;
  all: "all" | "some" | "none";
  set(id: string, isSelected: boolean): void;
  setAll(isSelected: boolean): void;
}

interface ColumnOptions {
  selection: Selection;
  isNarrow: boolean;
  hrefOf(id: string): string;
}

export function columnsOf({ selection, isNarrow, hrefOf }: ColumnOptions): Column<StoredChatCompletion>[] {
  return [
    {
      name: "select",
      width: "2.75rem",
      head: (
        <Checkbox
          size="xs"
          aria-label="Select all that are listed"
          checked={selection.all === "all"}
          indeterminate={selection.all === "some"}
          onChange={(event) => selection.setAll(event.currentTarget.checked)}
        />
      ),
      cell: (chat) => (
        <Checkbox
          size="xs"
          aria-label={`Select ${firstWords(chat).slice(0, 60)}`}
          checked={selection.ids.has(chat.id)}
          onChange={(event) => selection.set(chat.id, event.currentTarget.checked)}
        />
      ),
    },
    {
      name: "answer",
      head: "Answer",
      cell: (chat) => (
        <Stack gap={0}>
          <Anchor component={Link} href={hrefOf(chat.id)} size="sm" truncate>
            {firstWords(chat)}
          </Anchor>
          {isNarrow && (
            <Text size="xs" c="dimmed" truncate>
              {chat.model} · <Moment seconds={chat.created} />
            </Text>
          )}
        </Stack>
      ),
    },
    {
      name: "labels",
      head: "Labels",
      width: "15rem",
      wideOnly: true,
      cell: ({ metadata }) => <ChatLabels metadata={metadata} />,
    },
    {
      name: "model",
      head: "Model",
      width: "9rem",
      wideOnly: true,
      cell: ({ model }) => (
        <Text size="sm" truncate title={model}>
          {model}
        </Text>
      ),
    },
    {
      name: "tokens",
      head: "Tokens",
      width: "5.5rem",
      numeric: true,
      wideOnly: true,
      cell: ({ usage }) => count(usage.total_tokens),
    },
    {
      name: "created",
      head: "Stored",
      width: "12rem",
      wideOnly: true,
      cell: ({ created }) => (
        <Group gap={0}>
          <Moment seconds={created} />
        </Group>
      ),
    },
  ];
}
