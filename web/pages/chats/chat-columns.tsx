// The columns of the list of stored chats.
import { Anchor, Checkbox, Stack } from "@mantine/core";
import { Link } from "wouter";
import type { StoredChatCompletion } from "../../api/types.ts";
import type { Column } from "../../parts/table/column.ts";
import type { Room } from "../../parts/table/room.ts";
import { count } from "../../parts/words/figures.ts";
import { ModelName } from "../../parts/words/model-name.tsx";
import { Moment, MomentLines } from "../../parts/words/moment.tsx";
import { SmallNote } from "../../parts/words/note.tsx";
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
  room: Room;
  hrefOf(id: string): string;
}

export function columnsOf({ selection, room, hrefOf }: ColumnOptions): Column<StoredChatCompletion>[] {
  const columns: Column<StoredChatCompletion>[] = [
    {
      name: "select",
      width: "2.75rem",
      head: (
        <Checkbox
          size="xs"
          aria-label="Select all listed chats"
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
          {room === "narrow" && (
            <SmallNote truncate>
              {chat.model} · <Moment seconds={chat.created} />
            </SmallNote>
          )}
        </Stack>
      ),
    },
    { name: "labels", head: "Labels", width: "14.5rem", cell: ({ metadata }) => <ChatLabels metadata={metadata} /> },
    { name: "model", head: "Model", width: "8.5rem", cell: ({ model }) => <ModelName name={model} size="sm" /> },
    { name: "tokens", head: "Tokens", width: "5.5rem", numeric: true, cell: ({ usage }) => count(usage.total_tokens) },
    { name: "created", head: "Stored", width: "6.75rem", cell: ({ created }) => <MomentLines seconds={created} /> },
  ];
  const shown: Record<Room, readonly string[]> = {
    narrow: ["select", "answer"],
    middle: ["select", "answer", "model", "created"],
    wide: columns.map(({ name }) => name),
  };
  return columns.filter(({ name }) => shown[room].includes(name));
}
