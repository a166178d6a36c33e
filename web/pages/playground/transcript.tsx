// The transcript. It scrolls with the answer only while its end is in view; screen readers announce complete answers.
import { Stack, VisuallyHidden } from "@mantine/core";
import { ArrowDownIcon } from "@primer/octicons-react";
import { memo, type ReactNode, useEffect, useLayoutEffect, useRef, useState } from "react";
import type { ModelStatus } from "../../api/types.ts";
import { PlainButton } from "../../parts/page/buttons.tsx";
import { ScrollRegion } from "../../parts/page/scroll-region.tsx";
import { AnswerView } from "./answer-view.tsx";
import type { Conversation } from "./conversation.ts";
import type { Answer, Exchange } from "./exchange.ts";
import { QuestionView } from "./question-view.tsx";
import { useConversation } from "./use-conversation.ts";

interface TranscriptProps {
  conversation: Conversation;
  running: boolean;
  priceOf(model: string): ModelStatus["price"];
  /** Asks a question in place of an earlier one; undefined if no suitable model is chosen. */
  askAgain: ((id: number, question: string) => void) | undefined;
  /** The name for screen readers. */
  label?: string;
  /** Shown before the first question. */
  empty: ReactNode;
}

/** The distance from the end, in pixels, at which the transcript still scrolls with the answer. */
const nearEnd = 48;

export function Transcript(props: TranscriptProps) {
  const { conversation, running, priceOf, askAgain, label = "Conversation", empty } = props;
  const exchanges = useConversation(conversation, (state) => state.exchanges);
  const scrolling = useRef<HTMLElement>(null);
  const follows = useRef(true);
  const [isAway, setIsAway] = useState(false);
  const last = exchanges.at(-1);
  const toEnd = () => {
    const element = scrolling.current;
    if (element) element.scrollTop = element.scrollHeight;
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: a change of the exchanges makes the transcript longer
  useLayoutEffect(() => {
    if (follows.current) toEnd();
  }, [exchanges]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new question scrolls to the end from any position
  useLayoutEffect(() => {
    follows.current = true;
    toEnd();
  }, [last?.id]);
  useEffect(() => {
    const element = scrolling.current;
    if (!element) return;
    const watch = new ResizeObserver(() => {
      if (follows.current) element.scrollTop = element.scrollHeight;
    });
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  return (
    <div className="transcript">
      <ScrollRegion
        ref={scrolling}
        label={label}
        onScroll={({ currentTarget: { scrollHeight, scrollTop, clientHeight } }) => {
          follows.current = scrollHeight - scrollTop - clientHeight < nearEnd;
          setIsAway(!follows.current);
        }}
      >
        {exchanges.length === 0 ? (
          empty
        ) : (
          <Stack gap="lg">
            {exchanges.map((exchange) => (
              <ExchangeView
                key={exchange.id}
                exchange={exchange}
                isLast={exchange === last}
                price={priceOf(exchange.answer.model)}
                askAgain={running ? undefined : askAgain}
              />
            ))}
          </Stack>
        )}
      </ScrollRegion>
      {isAway && (
        <PlainButton size="compact-xs" leftSection={<ArrowDownIcon />} onClick={toEnd} className="to-end">
          Go to the end
        </PlainButton>
      )}
      <VisuallyHidden aria-live="polite">{last ? heard(last.answer) : ""}</VisuallyHidden>
    </div>
  );
}

/** Returns the announcement for screen readers; failures are alerts already. */
function heard({ state, model, text }: Answer): string {
  if (state === "done") return `${model} answered: ${text}`;
  return state === "stopped" ? "The answer was stopped." : "";
}

interface ExchangeViewProps {
  exchange: Exchange;
  isLast: boolean;
  price: ModelStatus["price"];
  askAgain: TranscriptProps["askAgain"];
}

const ExchangeView = memo(function ExchangeView({ exchange, isLast, price, askAgain }: ExchangeViewProps) {
  const { id, question, attachments = [], answer } = exchange;
  return (
    <Stack gap="sm">
      <QuestionView
        {...{ question, attachments }}
        hasLater={!isLast}
        askAnew={askAgain && ((written) => askAgain(id, written))}
      />
      <AnswerView
        answer={answer}
        price={price}
        regenerate={isLast && askAgain ? () => askAgain(id, question) : undefined}
      />
    </Stack>
  );
});
