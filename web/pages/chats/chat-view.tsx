// A stored chat: its conversation, parameters, usage and labels, and its actions.
import { Button, Code, Group, Stack } from "@mantine/core";
import { BeakerIcon, LogIcon, TrashIcon } from "@primer/octicons-react";
import { useState } from "react";
import type { StoredChatCompletion } from "../../api/types.ts";
import { PlainLinkButton } from "../../parts/page/links.tsx";
import { DrawerPart } from "../../parts/page/section.tsx";
import { Facts } from "../../parts/words/facts.tsx";
import { atSecond, count } from "../../parts/words/figures.ts";
import { Note, SmallNote } from "../../parts/words/note.tsx";
import { parametersOf } from "./chat-text.ts";
import { Conversation } from "./conversation-view.tsx";
import { DeleteChats } from "./delete-chats.tsx";
import { LabelEditor } from "./label-editor.tsx";

export function ChatView({ chat, close }: { chat: StoredChatCompletion; close(): void }) {
  const { id, model, created, usage, request_id } = chat;
  const [isDeleting, setDeleting] = useState(false);
  const parameters = parametersOf(chat);
  return (
    <Stack gap="lg">
      <Group gap="xs">
        <PlainLinkButton
          size="xs"
          href={`/playground?model=${encodeURIComponent(model)}`}
          leftSection={<BeakerIcon size={14} />}
        >
          Model in playground
        </PlainLinkButton>
        <PlainLinkButton
          size="xs"
          href={`/requests/${encodeURIComponent(request_id)}`}
          leftSection={<LogIcon size={14} />}
        >
          Its request in Logs
        </PlainLinkButton>
        <Button
          {...{ size: "xs", variant: "light", color: "red" }}
          leftSection={<TrashIcon size={14} />}
          onClick={() => setDeleting(true)}
        >
          Delete
        </Button>
      </Group>
      <Facts
        facts={[
          ["Stored", atSecond(created)],
          ["Model", model],
          ["Prompt tokens", count(usage.prompt_tokens)],
          ["Completion tokens", count(usage.completion_tokens)],
        ]}
      />
      <DrawerPart title="Conversation">
        <Conversation chat={chat} />
      </DrawerPart>
      <DrawerPart title="Labels">
        <LabelEditor key={JSON.stringify(chat.metadata)} id={id} metadata={chat.metadata} />
      </DrawerPart>
      <DrawerPart title="Parameters">
        {parameters.length === 0 ? (
          <Note>None: the request used the model's defaults.</Note>
        ) : (
          <Parameters parameters={parameters} />
        )}
      </DrawerPart>
      <DeleteChats ids={[id]} opened={isDeleting} close={() => setDeleting(false)} done={close} />
    </Stack>
  );
}

function Parameters({ parameters }: { parameters: ReturnType<typeof parametersOf> }) {
  return (
    <Stack gap="sm">
      <Facts facts={parameters.filter(({ isLong }) => !isLong).map(({ name, text }) => [name, text] as const)} />
      {parameters
        .filter(({ isLong }) => isLong)
        .map(({ name, text }) => (
          <div key={name}>
            <SmallNote>{name}</SmallNote>
            <Code block tabIndex={0} role="region" aria-label={name} mah="20rem">
              {text}
            </Code>
          </div>
        ))}
    </Stack>
  );
}
