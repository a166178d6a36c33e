// The conversation with a model, and its settings beside it.
import { Drawer, Paper } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { CodeIcon, SlidersIcon, TrashIcon } from "@primer/octicons-react";
import { useCallback, useMemo, useRef, useState } from "react";
import type { ModelStatus } from "../../api/types.ts";
import { SmallButton } from "../../parts/page/buttons.tsx";
import { CodeDialog } from "./code-dialog.tsx";
import { Composer } from "./composer.tsx";
import type { Conversation } from "./conversation.ts";
import { FirstQuestion } from "./first-question.tsx";
import { parametersOf } from "./settings.ts";
import { SettingsPanel } from "./settings-panel.tsx";
import { Transcript } from "./transcript.tsx";
import { useConversation } from "./use-conversation.ts";

interface TalkProps {
  conversation: Conversation;
  models: readonly ModelStatus[];
  model: string;
  /** If false, each message is a separate prompt for completion, without the earlier ones. */
  isChat: boolean;
}

export function Talk({ conversation, models, model, isChat }: TalkProps) {
  // Selects single values instead of the exchanges: a streaming answer would otherwise render this whole page once per
  // frame.
  const cleared = useConversation(conversation, (state) => state.cleared);
  const settings = useConversation(conversation, (state) => state.settings);
  const draft = useConversation(conversation, (state) => state.draft);
  const running = useConversation(conversation, (state) => state.running);
  const hasBegun = useConversation(conversation, (state) => state.exchanges.length > 0);
  const [open, setOpen] = useState<"code" | "settings">();
  const isWide = useMediaQuery("(min-width: 75em)", undefined, { getInitialValueInEffect: false });
  const field = useRef<HTMLTextAreaElement>(null);
  const ask = (question: string) => {
    conversation.update({ draft: "" });
    conversation.ask(model, question);
    field.current?.focus();
  };
  const askAgain = useCallback(
    (id: number, question: string) => {
      conversation.askAgain(model, id, question);
      field.current?.focus();
    },
    [conversation, model],
  );
  const priceOf = (id: string) => models.find((one) => one.id === id)?.price ?? null;
  // The panel is memoized, because each typed letter renders this page.
  const panel = useMemo(
    () => (
      <SettingsPanel
        settings={settings}
        isChat={isChat}
        change={(changed) => conversation.update({ settings: changed })}
      />
    ),
    [settings, isChat, conversation],
  );
  return (
    <div className="playground">
      <Paper withBorder p="md" className="playground-talk">
        <Transcript
          {...{ conversation, running, priceOf, askAgain }}
          empty={
            <FirstQuestion
              {...{ model, isChat, ask }}
              bringBack={
                cleared &&
                (() => {
                  conversation.bringBack();
                  field.current?.focus();
                })
              }
            />
          }
        />
        <Composer
          field={field}
          label={isChat ? `Message to ${model}` : `Text for ${model} to continue`}
          value={draft}
          running={running}
          change={(value) => conversation.update({ draft: value })}
          send={() => ask(draft)}
          stop={() => conversation.stop()}
        >
          {!isWide && (
            <SmallButton leftSection={<SlidersIcon />} onClick={() => setOpen("settings")}>
              Settings
            </SmallButton>
          )}
          {isChat && (
            <SmallButton leftSection={<CodeIcon />} onClick={() => setOpen("code")}>
              Code
            </SmallButton>
          )}
          <SmallButton
            leftSection={<TrashIcon />}
            disabled={!hasBegun}
            onClick={() => {
              conversation.clear();
              field.current?.focus();
            }}
          >
            Clear
          </SmallButton>
        </Composer>
      </Paper>
      {isWide ? (
        <Paper withBorder p="md" component="aside" aria-label="Settings" className="playground-settings" tabIndex={0}>
          {panel}
        </Paper>
      ) : (
        <Drawer opened={open === "settings"} onClose={() => setOpen(undefined)} title="Settings" position="right">
          {panel}
        </Drawer>
      )}
      <CodeDialog
        opened={open === "code"}
        model={model}
        messages={open === "code" ? shown(conversation) : []}
        parameters={parametersOf(settings)}
        close={() => setOpen(undefined)}
      />
    </div>
  );
}

/**
 * Returns the messages of the next request. If the field is empty, returns the messages of the last request, or a
 * greeting.
 */
function shown(conversation: Conversation) {
  const { exchanges, draft } = conversation.state();
  if (draft.trim() !== "") return conversation.messages(draft);
  const last = exchanges.at(-1);
  return last ? conversation.messages(last.question, exchanges.slice(0, -1)) : conversation.messages("Hello");
}
