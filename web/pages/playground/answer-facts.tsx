// The facts of an answer: tokens, times, speed, finish reason, cost, and a link to the log.
import { Group, Text } from "@mantine/core";
import type { ModelStatus } from "../../api/types.ts";
import { count, duration, money, perSecond } from "../../parts/words/figures.ts";
import type { Answer } from "./exchange.ts";
import { RequestLink } from "./request-link.tsx";

const endings: Record<string, string> = {
  stop: "Finished",
  length: "Cut off at the token limit",
  content_filter: "Blocked by a filter",
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

function factsOf(answer: Answer, price: ModelStatus["price"]) {
  const { state, usage, firstTokenMs, durationMs, tokensPerSecond, finishReason } = answer;
  const facts: string[] = [];
  if (usage) facts.push(`${tokensText(usage.prompt_tokens, usage)} in`, `${about(usage.completion_tokens, usage)} out`);
  if (firstTokenMs !== null) facts.push(`first token in ${duration(firstTokenMs)}`);
  if (durationMs !== null) facts.push(`${duration(durationMs)} in total`);
  if (tokensPerSecond !== null) facts.push(`${perSecond(tokensPerSecond)} tokens/s`);
  // The cost is computed only for a price of two rates. For prices with special rates, the log has the exact cost.
  if (usage && price && Object.keys(price).length === 2) {
    facts.push(money((usage.prompt_tokens * price.input + usage.completion_tokens * price.output) / 1e6));
  }
  if (state === "stopped") facts.push("Stopped by you");
  else if (finishReason !== null) facts.push(endings[finishReason] ?? `Ended: ${finishReason}`);
  return facts;
}

type Counted = NonNullable<Answer["usage"]>;

/** Marks an estimated number with "about"; an estimate of zero needs no mark. */
function about(tokens: number, { estimated }: Counted): string {
  return estimated && tokens > 0 ? `about ${count(tokens)}` : count(tokens);
}

function tokensText(tokens: number, usage: Counted): string {
  return `${about(tokens, usage)} ${tokens === 1 ? "token" : "tokens"}`;
}
