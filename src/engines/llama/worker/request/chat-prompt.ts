// Renders a chat into the tokens that the model reads.
import type { ChatHistoryItem, ChatModelFunctions, Token } from "node-llama-cpp";
import type { Chat, Runtime } from "../runtime.ts";
import { refuseHopelessLength } from "./prompt-length.ts";
import { invalid } from "./request-error.ts";
import { renderWithResults } from "./shown-results.ts";

export interface PromptOptions {
  history: readonly ChatHistoryItem[];
  functions: ChatModelFunctions | undefined;
  /** True if the model may begin with thinking. */
  opensReasoning: boolean;
  /** The beginning of the reply, at the end of the prompt. The model continues it. */
  ending: string;
}

export interface RenderedPrompt {
  tokens: Token[];
  /** True if the prompt ends within the thinking. */
  startsInReasoning: boolean;
  /** True if the prompt ends with the beginning of the answer. */
  continuesText: boolean;
}

/**
 * Renders the prompt. Throws a RequestError if the template refuses the messages, or if they are so long that they
 * cannot fit. The tokens may still be too many.
 */
export function renderPrompt(runtime: Runtime, chat: Chat, options: PromptOptions): RenderedPrompt {
  const { library, model } = runtime;
  refuseHopelessLength(
    runtime,
    options.history.reduce((sum, item) => sum + textLength(item), 0),
    "messages",
  );
  const last = options.history.at(-1);
  const reply = last?.type === "model" ? [...last.response] : [];
  const before = last?.type === "model" ? options.history.slice(0, -1) : options.history;
  const afterCall = typeof reply.at(-1) === "object";
  const continuesText = typeof reply.at(-1) === "string" && reply.at(-1) !== "";
  const startsInReasoning =
    options.opensReasoning &&
    (afterCall ? chat.syntax.reopensReasoning : reply.length === 0 && chat.syntax.opensReasoning);
  if (startsInReasoning) reply.push({ type: "segment", segmentType: "thought", text: "", ended: false });
  try {
    const history: ChatHistoryItem[] = [...before, { type: "model", response: reply }];
    const text = renderWithResults(library, chat.wrapper, history, options.functions);
    // Control tokens are recognized only in the template's own text, never in a user's text.
    const rendered = text.concat(new library.SpecialTokensText(options.ending));
    return { tokens: withBeginning(runtime, rendered.tokenize(model.tokenizer)), startsInReasoning, continuesText };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw invalid(`messages: the model's chat template cannot render them (${reason}).`);
  }
}

function textLength(item: ChatHistoryItem): number {
  if (item.type !== "model") return typeof item.text === "string" ? item.text.length : 0;
  const parts = item.response.map((part) => {
    if (typeof part === "string") return part.length;
    return part.type === "segment" ? part.text.length : JSON.stringify([part.params, part.result]).length;
  });
  return parts.reduce((sum, length) => sum + length, 0);
}

/**
 * Makes the prompt begin with BOS if the model file demands it, by its tokenizer's flag or its template. The
 * library's ChatML wrapper always adds BOS, its Jinja wrapper never does.
 */
function withBeginning({ model, facts }: Runtime, tokens: Token[]): Token[] {
  const { bos, bosString, shouldPrependBosToken } = model.tokens;
  if (bos === null) return tokens;
  const template = facts.chatTemplate ?? "";
  const inTemplate = template.includes("bos_token") || (bosString !== null && template.includes(bosString));
  let start = 0;
  while (tokens[start] === bos) start += 1;
  const rest = start === 0 ? tokens : tokens.slice(start);
  return shouldPrependBosToken || inTemplate ? [bos, ...rest] : rest;
}
