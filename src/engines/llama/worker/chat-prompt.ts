// Renders a chat into the tokens that the model reads.
import type { ChatHistoryItem, ChatModelFunctions, Token } from "node-llama-cpp";
import { invalid } from "./request-error.ts";
import type { Runtime } from "./runtime.ts";

export interface PromptOptions {
  history: readonly ChatHistoryItem[];
  functions: ChatModelFunctions | undefined;
  /** Lets models that begin with thinking begin with it. */
  opensReasoning: boolean;
  /** Put after everything else: the beginning of what the model has to go on with. */
  ending: string;
}

export interface RenderedPrompt {
  tokens: Token[];
  /** Whether the reply begins inside the thinking. */
  startsInReasoning: boolean;
}

/** Throws a RequestError when the template refuses the messages, or when they cannot fit. */
export function renderPrompt(runtime: Runtime, options: PromptOptions): RenderedPrompt {
  const { library, model, chat } = runtime;
  if (chat === undefined) throw invalid("This model's file has no chat template, so it cannot chat. Use /completions.");
  refuseHopelessLength(runtime, options.history.reduce((sum, item) => sum + textLength(item), 0), "messages");
  const last = options.history.at(-1);
  const reply = last?.type === "model" ? [...last.response] : [];
  const before = last?.type === "model" ? options.history.slice(0, -1) : options.history;
  const afterCall = typeof reply.at(-1) === "object";
  const startsInReasoning =
    options.opensReasoning && (afterCall ? chat.syntax.reopensReasoning : reply.length === 0 && chat.syntax.opensReasoning);
  if (startsInReasoning) reply.push({ type: "segment", segmentType: "thought", text: "", ended: false });
  try {
    const { contextText } = chat.wrapper.generateContextState({
      chatHistory: [...before, { type: "model", response: reply }],
      ...(options.functions === undefined ? {} : { availableFunctions: options.functions }),
    });
    // Only the template's own text is read for control tokens; what users wrote is plain text (engine trap 9).
    const rendered = contextText.concat(new library.SpecialTokensText(options.ending));
    return { tokens: withBeginning(runtime, rendered.tokenize(model.tokenizer)), startsInReasoning };
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
 * The ChatML wrapper always begins with BOS, the Jinja wrapper does not (engine trap 5); the file itself says which is
 * right, by its tokenizer's flag or by its template.
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

/** Counting the tokens of some megabytes would hold up every other request; so many bytes never fit. */
export function refuseHopelessLength(runtime: Runtime, byteCount: number, what: string): void {
  if (byteCount <= runtime.contextSize * runtime.longestTokenBytes) return;
  const least = Math.ceil(byteCount / runtime.longestTokenBytes);
  throw overlong(runtime.contextSize, `more than ${least}`, what);
}

/** At least one token of reply has to fit, too (engine trap 3). */
export function checkPromptLength(runtime: Runtime, prompt: readonly Token[], what: string): void {
  if (prompt.length + 1 > runtime.contextSize) throw overlong(runtime.contextSize, String(prompt.length), what);
}

function overlong(contextSize: number, count: string, what: string): Error {
  return invalid(
    `This model's maximum context length is ${contextSize} tokens, but the ${what} come to ${count} tokens. ` +
      `Shorten the ${what}.`,
  );
}

/**
 * The most tokens to generate. By default all that is left of the context; more than the whole context is an error,
 * more than what is left ends with finish_reason "length".
 */
export function checkMaxTokens(runtime: Runtime, asked: number | undefined, name: string): number {
  if (asked === undefined) return runtime.contextSize;
  if (asked <= runtime.contextSize) return asked;
  throw invalid(`${name} must be at most ${runtime.contextSize}, the model's context length.`);
}
