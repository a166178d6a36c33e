// The small print of an answer: its tokens, times and speed, why it ended, what it cost, and where it is in the log.
import { Group, Text } from "@mantine/core";
import type { ModelStatus } from "../../api/types.ts";
import { count, duration, money, perSecond } from "../../parts/figures.ts";
import type { Answer } from "./conversation.ts";
import { RequestLink } from "./request-link.tsx";

const endings: Record<string, string> = {
  stop: "Finished",
  length: "Cut off at the most tokens",
  content_filter: "Withheld by a filter",
  tool_calls: "Called a tool",
};

export function AnswerFacts({ answer, price }: { answer: Answer; price: ModelStatus["price"] }) {
  const { model, requestId } = answer;
  return (
    <Group gap="4px 14px" className="numeric" fz="xs" c="dimmed">
      <Text span size="xs" fw={600}>
        {model}
      </Text>
      {factsOf(answer, price).map((fact) => (
        <Text span size="xs" key={fact}>
          {fact}
        </Text>
      ))}
      {requestId !== null && <RequestLink id={requestId} />}
    </Group>
  );
}

function factsOf({ state, usage, firstTokenMs, durationMs, finishReason }: Answer, price: ModelStatus["price"]) {
  const facts: string[] = [];
  const about = usage?.estimated ? "about " : "";
  if (usage) {
    facts.push(`${about}${count(usage.prompt_tokens)} tokens in`, `${about}${count(usage.completion_tokens)} out`);
  }
  if (firstTokenMs !== null) facts.push(`first token in ${duration(firstTokenMs)}`);
  if (durationMs !== null) facts.push(`${duration(durationMs)} in all`);
  const speed = speedOf(usage?.completion_tokens, firstTokenMs, durationMs);
  if (speed !== undefined) facts.push(`${about}${perSecond(speed)} tokens/s`);
  if (usage && price) {
    facts.push(money((usage.prompt_tokens * price.input + usage.completion_tokens * price.output) / 1e6));
  }
  if (state === "stopped") facts.push("Stopped by you");
  else if (finishReason !== null) facts.push(endings[finishReason] ?? `Ended: ${finishReason}`);
  return facts;
}

/** Tokens a second once the answer had begun, as the server counts it; nothing where it came all at once. */
function speedOf(tokens: number | undefined, firstTokenMs: number | null, durationMs: number | null) {
  if (tokens === undefined || firstTokenMs === null || durationMs === null) return undefined;
  const generationMs = durationMs - firstTokenMs;
  return tokens > 1 && generationMs >= 1 ? (tokens * 1000) / generationMs : undefined;
}
