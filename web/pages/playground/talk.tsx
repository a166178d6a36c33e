// The conversation with a model, or with up to four side by side, and its settings beside it.
import { CloseButton, Drawer, Group, Paper, Text } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { CodeIcon, SlidersIcon, TrashIcon } from "@primer/octicons-react";
import { type ReactNode, type RefObject, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { useOffer } from "../../api/offer.ts";
import type { Listed } from "../../api/tools.ts";
import type { ModelStatus } from "../../api/types.ts";
import { SmallButton } from "../../parts/page/buttons.tsx";
import { Note } from "../../parts/words/note.tsx";
import { CodeDialog } from "./code-dialog.tsx";
import { Composer } from "./composer.tsx";
import type { Conversation } from "./conversation.ts";
import type { Attachment, Message } from "./exchange.ts";
import { FirstQuestion } from "./first-question.tsx";
import { ModelChoice } from "./model-choice.tsx";
import { parametersOf } from "./settings.ts";
import { SettingsPanel } from "./settings-panel.tsx";
import { Transcript } from "./transcript.tsx";
import { useConversation, useIsRunning } from "./use-conversation.ts";

interface TalkProps {
  conversation: Conversation;
  models: readonly ModelStatus[];
  model: string;
  /** If false, each message is a separate prompt for completion, without the earlier ones. */
  isChat: boolean;
  /** The further models that answer each message, side by side with the first. */
  others: readonly Compared[];
}

/** A further model of a comparison, with its own conversation. */
export interface Compared {
  model: string;
  conversation: Conversation;
  choose(model: string): void;
  remove(): void;
}

const noFiles: readonly Attachment[] = [];

export function Talk({ conversation, models, model, isChat, others }: TalkProps) {
  // Selects single values instead of the exchanges: a streaming answer would otherwise render this whole page once per
  // frame.
  const cleared = useConversation(conversation, (state) => state.cleared);
  const settings = useConversation(conversation, (state) => state.settings);
  const draft = useConversation(conversation, (state) => state.draft);
  const hasBegun = useConversation(conversation, (state) => state.exchanges.length > 0);
  const all = useMemo(() => [{ model, conversation }, ...others], [model, conversation, others]);
  const running = useIsRunning(useMemo(() => all.map((one) => one.conversation), [all]));
  const [attachments, setAttachments] = useState(noFiles);
  const [open, setOpen] = useState<"code" | "settings">();
  const hasRoom = useMediaQuery("(min-width: 75em)", undefined, { getInitialValueInEffect: false });
  // The columns of compared models take up the space beside the conversation, so the settings move into a drawer.
  const isWide = hasRoom && others.length === 0;
  const field = useRef<HTMLTextAreaElement>(null);
  const offer = useOffer({ enabled: isChat && settings.tools.length > 0 });
  const tools = useMemo(
    () => offer.data?.tools.filter(({ name }) => settings.tools.includes(name)) ?? [],
    [offer.data, settings.tools],
  );
  // Text that the user types after opening the page belongs into the message.
  useEffect(() => {
    if (window.matchMedia("(pointer: fine)").matches) field.current?.focus();
  }, []);
  const ask = (question: string) => {
    conversation.update({ draft: "" });
    setAttachments(noFiles);
    for (const one of all) {
      one.conversation.update({ settings });
      one.conversation.ask(one.model, { question, attachments, tools });
    }
    field.current?.focus();
  };
  const priceOf = (id: string) => models.find((one) => one.id === id)?.price ?? null;
  const again = { tools, field };
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
    <div className="playground" data-compares={others.length > 0 || undefined}>
      <Paper withBorder p="md" className="playground-talk">
        {others.length === 0 ? (
          <Column
            {...{ conversation, model, priceOf, again, running }}
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
        ) : (
          <div className="comparison">
            <section className="compared" aria-label={model}>
              <Text size="sm" fw={600} lh="30px" truncate>
                {model}
              </Text>
              <Column {...{ conversation, model, priceOf, again, running }} isCompared />
            </section>
            {others.map((one, index) => (
              <section key={one.model} className="compared" aria-label={one.model}>
                <Group gap="xs" wrap="nowrap">
                  <ModelChoice
                    {...{ models, value: one.model, choose: one.choose }}
                    label={`Model ${index + 2}`}
                    w="100%"
                  />
                  <CloseButton aria-label={`Remove ${one.model} from the comparison`} onClick={one.remove} />
                </Group>
                <Column {...{ ...one, priceOf, again, running }} isCompared />
              </section>
            ))}
          </div>
        )}
        <Composer
          field={field}
          label={
            !isChat
              ? `Text for ${model} to continue`
              : `Message to ${others.length === 0 ? model : `${others.length + 1} models`}`
          }
          {...(isChat ? { files: { attachments, change: setAttachments } } : {})}
          value={draft}
          running={running}
          change={(value) => conversation.update({ draft: value })}
          send={() => ask(draft)}
          stop={() => {
            for (const one of all) one.conversation.stop();
          }}
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
              for (const one of all) one.conversation.clear();
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
        messages={open === "code" ? shown(conversation, attachments) : []}
        parameters={parametersOf(settings)}
        close={() => setOpen(undefined)}
      />
    </div>
  );
}

interface ColumnProps {
  conversation: Conversation;
  model: string;
  priceOf(model: string): ModelStatus["price"];
  again: { tools: readonly Listed[]; field: RefObject<HTMLTextAreaElement | null> };
  /** True while any of the models answers. */
  running: boolean;
  isCompared?: boolean;
  empty?: ReactNode;
}

function Column({ conversation, model, priceOf, again: { tools, field }, running, isCompared, empty }: ColumnProps) {
  const askAgain = useCallback(
    (id: number, question: string) => {
      conversation.askAgain(model, id, { question, tools });
      field.current?.focus();
    },
    [conversation, model, tools, field],
  );
  return (
    <Transcript
      {...{ conversation, running, priceOf, askAgain }}
      {...(isCompared ? { label: `Conversation with ${model}` } : {})}
      empty={empty ?? <Note>The answer of this model appears here.</Note>}
    />
  );
}

/**
 * Returns the messages of the next request. If the field is empty, returns the messages of the last request, or a
 * greeting. The data of files is cut short.
 */
function shown(conversation: Conversation, attachments: readonly Attachment[]) {
  const { exchanges, draft } = conversation.state();
  const last = exchanges.at(-1);
  const messages =
    draft.trim() !== ""
      ? conversation.messages({ question: draft, attachments })
      : last
        ? conversation.messages(last, exchanges.slice(0, -1))
        : conversation.messages({ question: "Hello" });
  return messages.map(({ role, content }) => ({ role, content: withoutData(content) }));
}

function withoutData(content: Message["content"]): Message["content"] {
  if (typeof content === "string") return content;
  const text = JSON.stringify(content).replaceAll(/(data:[\w/+.-]+;base64,)[A-Za-z0-9+/=]{40,}/g, "$1…");
  return JSON.parse(text) as object[];
}
