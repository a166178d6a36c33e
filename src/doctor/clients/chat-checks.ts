// Tests whole chat completions, with each kind of request that SDKs and frameworks send.
import {
  type ClientCheck,
  headerFaults,
  refusedAsOptional,
  type Surroundings,
  statusFaults,
  type Verdict,
} from "./client-check.ts";
import { chatCompletion, faultsOf, textCompletion } from "./shapes.ts";
import type { Wire, WireAnswer } from "./wire.ts";

/** The token limit of test requests. Reasoning models need some tokens before their answer. */
const fewTokens = 24;
const bound = 5;

type Fields = Readonly<Record<string, unknown>>;

export function chatChecks({ wire, chat }: Surroundings): ClientCheck[] {
  if (!chat) return [];
  const hello = [{ role: "user", content: "Say hello." }];
  const check = (
    name: string,
    fields: Fields,
    judge: (answer: WireAnswer) => string[] = () => [],
    more: { optional?: string; headers?: Record<string, string> } = {},
  ): ClientCheck => {
    const body = { model: chat.id, messages: hello, max_tokens: fewTokens, temperature: 0, ...fields };
    return {
      name,
      sent: `POST /chat/completions ${JSON.stringify(body)}`,
      run: (signal) => ask(wire, body, judge, more, signal),
    };
  };
  const story = [{ role: "user", content: "Tell a long story about a river." }];
  const part = [{ role: "user", content: [{ type: "text", text: "Say hello." }] }];
  const developer = [{ role: "developer", content: "Answer briefly." }, ...hello];
  const turns = [...hello, { role: "assistant", content: "Hello." }, { role: "user", content: "Again." }];
  return [
    check("whole answer", {}, hasText),
    check("max_tokens", { messages: story, max_tokens: bound }, within(bound)),
    check(
      "max_completion_tokens",
      { messages: story, max_tokens: undefined, max_completion_tokens: bound },
      within(bound),
    ),
    check("developer role", { messages: developer }),
    check("content in parts", { messages: part }),
    check("several turns", { messages: turns }),
    check("stop", { stop: ["\n"] }, (answer) =>
      textOf(answer).includes("\n") ? ["the stop text is in the answer"] : [],
    ),
    check(
      "unknown fields",
      { store: false, metadata: { test: "doctor" }, service_tier: "auto", not_yet_invented: true },
      undefined,
      {
        headers: { "openai-organization": "org-test", "openai-project": "proj_test", "idempotency-key": "doctor" },
      },
    ),
    check("tools", { tools: [weather], tool_choice: "auto" }, hasCalls, { optional: "tools" }),
    check("response_format", { response_format: { type: "json_object" }, max_tokens: 48 }, isJson, {
      optional: "JSON mode",
    }),
    legacy(wire, chat.id, chat.capabilities?.completion !== false),
  ];
}

const weather = {
  type: "function",
  function: {
    name: "get_weather",
    description: "The weather of a city.",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  },
};

async function ask(
  wire: Wire,
  body: Fields,
  judge: (answer: WireAnswer) => string[],
  { optional, headers = {} }: { optional?: string; headers?: Record<string, string> },
  signal: AbortSignal,
): Promise<Verdict> {
  const answer = await wire.ask("/chat/completions", signal, { body, headers });
  const refused = optional === undefined ? undefined : refusedAsOptional(answer, optional);
  if (refused) return refused;
  const shape = [...statusFaults(answer, 200), ...faultsOf(chatCompletion, answer.json)];
  const wrong = shape.length > 0 ? shape : [...judge(answer), ...headerFaults(answer)];
  return { seen: seenIn(answer), wrong };
}

interface Choice {
  message?: { content?: string | null; tool_calls?: readonly unknown[] };
  finish_reason?: string;
}

function choiceOf({ json }: WireAnswer): Choice {
  return (json as { choices?: Choice[] } | undefined)?.choices?.[0] ?? {};
}

function textOf(answer: WireAnswer): string {
  return choiceOf(answer).message?.content ?? "";
}

function completionTokens({ json }: WireAnswer): number {
  return (json as { usage?: { completion_tokens?: number } } | undefined)?.usage?.completion_tokens ?? 0;
}

function seenIn(answer: WireAnswer): string {
  return `${completionTokens(answer)} tokens, finish_reason ${choiceOf(answer).finish_reason ?? "none"}`;
}

/**
 * Returns a fault if the answer has no text. A reasoning model may have used up the token limit before its answer,
 * which is no fault.
 */
function hasText(answer: WireAnswer): string[] {
  const { finish_reason: reason } = choiceOf(answer);
  return textOf(answer) === "" && reason === "stop" ? ["the answer has no text"] : [];
}

function within(most: number): (answer: WireAnswer) => string[] {
  return (answer) => {
    const tokens = completionTokens(answer);
    return tokens <= most ? [] : [`${tokens} tokens came, and at most ${most} were asked for`];
  };
}

function hasCalls(answer: WireAnswer): string[] {
  const { finish_reason: reason, message } = choiceOf(answer);
  if (reason !== "tool_calls" || message?.tool_calls) return [];
  return ["finish_reason is tool_calls, and there are none"];
}

/** Returns a fault if the answer is not JSON. An answer that was cut off at the token limit need not parse. */
function isJson(answer: WireAnswer): string[] {
  if (choiceOf(answer).finish_reason !== "stop") return [];
  try {
    JSON.parse(textOf(answer));
    return [];
  } catch {
    return ["the text is no JSON, though response_format asks for it"];
  }
}

function legacy(wire: Wire, model: string, isAble: boolean): ClientCheck {
  const body = { model, prompt: "Once upon a time", max_tokens: bound };
  return {
    name: "legacy completion",
    sent: `POST /completions ${JSON.stringify(body)}`,
    async run(signal) {
      if (!isAble) return { seen: "the model does not have them", wrong: [], isSkipped: true };
      const answer = await wire.ask("/completions", signal, { body });
      const refused = refusedAsOptional(answer, "legacy completions");
      if (refused) return refused;
      const shape = [...statusFaults(answer, 200), ...faultsOf(textCompletion, answer.json)];
      return { seen: `${completionTokens(answer)} tokens`, wrong: shape.length > 0 ? shape : within(bound)(answer) };
    },
  };
}
