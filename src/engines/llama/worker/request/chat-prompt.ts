// Renders a chat into the tokens that the model reads.
import type { ChatHistoryItem, ChatModelFunctions, Token } from "node-llama-cpp";
import type { Chat, Runtime } from "../runtime.ts";
import { refuseHopelessLength } from "./prompt-length.ts";
import { invalid } from "./request-error.ts";
import { renderWithResults } from "./shown-results.ts";

export interface PromptOptions {
  history: readonly ChatHistoryItem[];
  functions: ChatModelFunctions | undefined;
  /** True if models that begin with thinking may do so. */
  opensReasoning: boolean;
  /** The text after everything else: the beginning that the model must continue. */
  ending: string;
}

export interface RenderedPrompt {
  tokens: Token[];
  /** True if the reply begins within the thinking. */
  startsInReasoning: boolean;
  /** True if the reply continues a text that the prompt has begun. */
  continuesText: boolean;
}

/** Renders the prompt. Throws a RequestError if the template refuses the messages, or if they cannot fit. */
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
    // Only the template's own text is read for control tokens. Users' text is plain text (engine trap 9).
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
 * Makes BOS begin the prompt only if it should. The ChatML wrapper always begins with BOS, the Jinja wrapper does not
 * (engine trap 5). The file tells which is right, by its tokenizer's flag or its template.
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
