// The messages and answers of a stored chat, as plain text that a browser never runs or loads.
import { Code, Paper, Skeleton, Stack, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { useList } from "../../api/queries.ts";
import type { StoredChatCompletion, StoredChatMessage } from "../../api/types.ts";
import { AnswerText } from "../../parts/answer/answer-text.tsx";
import { SmallButton } from "../../parts/page/buttons.tsx";
import { Failure } from "../../parts/page/failure.tsx";
import { Note, SmallNote } from "../../parts/words/note.tsx";
import { callsOf, type MessagePart, partsOf, type ToolCall, textOf } from "./chat-text.ts";

const roleNames: Record<string, string> = {
  system: "System",
  developer: "Developer",
  user: "User",
  assistant: "Assistant",
  tool: "Tool",
  function: "Function",
};

const endings: Record<string, string> = {
  length: "Cut off at the token limit.",
  content_filter: "Blocked by a filter.",
};

export function Conversation({ chat }: { chat: StoredChatCompletion }) {
  const { id, choices } = chat;
  const messages = useList<StoredChatMessage>(`/v1/chat/completions/${encodeURIComponent(id)}/messages`, {
    limit: 100,
  });
  return (
    <Stack component="ol" gap="sm" p={0} m={0} style={{ listStyle: "none" }}>
      {messages.isPending && <Skeleton component="li" height={72} aria-label="Loading the messages" />}
      {messages.items.map((message) => (
        <Turn key={message.id} who={whoOf(message)}>
          <Said parts={partsOf(message)} calls={callsOf(message)} />
        </Turn>
      ))}
      {messages.error && (
        <li>
          <Failure error={messages.error} retry={messages.isPending ? messages.refetch : messages.fetchNextPage} />
        </li>
      )}
      {messages.hasNextPage && !messages.error && (
        <li>
          <SmallButton loading={messages.isFetchingNextPage} onClick={() => void messages.fetchNextPage()}>
            Show the next messages
          </SmallButton>
        </li>
      )}
      {choices.map(({ index, message, finish_reason }) => (
        <Turn key={index} isAnswer who={choices.length > 1 ? `Answer ${index + 1}` : "Answer"}>
          <Said
            parts={[message.content ?? "", textOf(message["refusal"])]
              .filter((text) => text !== "")
              .map((text) => ({ kind: "text", text }))}
            calls={callsOf(message)}
          />
          {endings[finish_reason] !== undefined && <SmallNote>{endings[finish_reason]}</SmallNote>}
        </Turn>
      ))}
    </Stack>
  );
}

function whoOf({ role, ...message }: StoredChatMessage): string {
  const name = textOf(message["name"]) || textOf(message["tool_call_id"]);
  return `${roleNames[role] ?? role}${name === "" ? "" : ` (${name})`}`;
}

function Turn({ who, isAnswer = false, children }: { who: string; isAnswer?: boolean; children: ReactNode }) {
  return (
    <Paper
      component="li"
      withBorder
      p="sm"
      {...(isAnswer ? { style: { borderInlineStart: "3px solid var(--mantine-primary-color-filled)" } } : {})}
    >
      <SmallNote fw={600} mb={4} style={{ overflowWrap: "anywhere" }}>
        {who}
      </SmallNote>
      <Stack gap="xs">{children}</Stack>
    </Paper>
  );
}

function Said({ parts, calls }: { parts: readonly MessagePart[]; calls: readonly ToolCall[] }) {
  return (
    <>
      {parts.map((part, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a stored message do not change
        <Part key={index} part={part} />
      ))}
      {calls.map(({ id, name, arguments: given }) => (
        <div key={id || name}>
          <Text size="sm">
            Calls <Code>{name}</Code>
            {id !== "" && (
              <Text span size="xs" c="dimmed">
                {" "}
                {id}
              </Text>
            )}
          </Text>
          <Code block tabIndex={0} role="region" aria-label={`Arguments of ${name}`} mt={4} mah="20rem">
            {given}
          </Code>
        </div>
      ))}
      {parts.length === 0 && calls.length === 0 && <Note>Empty</Note>}
    </>
  );
}

function Part({ part }: { part: MessagePart }) {
  if (part.kind === "text") return <AnswerText text={part.text} />;
  return (
    <Note style={{ overflowWrap: "anywhere" }}>
      [{part.title}: {part.about}]
    </Note>
  );
}
