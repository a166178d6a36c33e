// An answer so far: reasoning, text, failure, and the actions on it.
import { ActionIcon, Group, Loader, Stack } from "@mantine/core";
import { SyncIcon } from "@primer/octicons-react";
import type { ModelStatus } from "../../api/types.ts";
import { AnswerText } from "../../parts/answer/answer-text.tsx";
import { CopyAction } from "../../parts/secrets/copy.tsx";
import { Note } from "../../parts/words/note.tsx";
import { AnswerFacts } from "./answer-facts.tsx";
import type { Answer } from "./exchange.ts";
import { RetryNotice } from "./retry-notice.tsx";

interface AnswerViewProps {
  answer: Answer;
  price: ModelStatus["price"];
  /** Asks the question again; undefined while that is not possible. */
  regenerate: (() => void) | undefined;
}

export function AnswerView({ answer, price, regenerate }: AnswerViewProps) {
  const { state, text, thought, calls = [], failure } = answer;
  const isOver = state === "done" || state === "stopped" || state === "failed";
  return (
    <Stack gap="xs" aria-busy={!isOver}>
      {thought !== "" && (
        <details className="thought" open={!isOver && text === ""}>
          <summary>Thinking</summary>
          <Note className="plain-text">{thought}</Note>
        </details>
      )}
      {state === "waiting" && (
        <Group gap="xs">
          <Loader size="xs" type="dots" aria-hidden="true" />
          <Note>Waiting for {answer.model}</Note>
        </Group>
      )}
      {calls.map(({ id, name, arguments: written, result }) => (
        <details key={id} className="thought">
          <summary>
            {result === null ? "Calling" : "Called"} {name}
          </summary>
          <Note className="plain-text">{`${written}\n→ ${result ?? "…"}`}</Note>
        </details>
      ))}
      {text !== "" && <AnswerText text={text} />}
      {text === "" && calls.length === 0 && state === "done" && <Note>The answer is empty.</Note>}
      {failure && (
        <RetryNotice
          failure={failure}
          failedAtMs={answer.failedAtMs}
          hasBegun={text !== "" || thought !== ""}
          retry={regenerate}
        />
      )}
      {isOver && (
        <Group gap={4} justify="space-between" wrap="nowrap" align="start">
          <AnswerFacts answer={answer} price={price} />
          <Group gap={0} wrap="nowrap">
            {text !== "" && <CopyAction value={text} label="Copy the answer" />}
            {regenerate && !failure && (
              <ActionIcon
                variant="subtle"
                color="gray"
                onClick={regenerate}
                aria-label="Answer again"
                data-hint="Answer again"
              >
                <SyncIcon />
              </ActionIcon>
            )}
          </Group>
        </Group>
      )}
    </Stack>
  );
}
