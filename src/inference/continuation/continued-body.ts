// Builds the request to a server that continues an answer: the original request with the delivered text.
import type { ChatContinuation } from "../../domain/models/engine.ts";

type Body = Readonly<Record<string, unknown>>;

/** Members of a chat or completion request that mean the same for the rest of an answer as for the whole. */
const lasting: ReadonlySet<string> = new Set([
  ...["model", "messages", "prompt", "stream", "stream_options", "max_tokens", "max_completion_tokens"],
  ...["temperature", "top_p", "top_k", "min_p", "seed", "stop", "stop_token_ids", "logit_bias", "ignore_eos"],
  ...["tools", "parallel_tool_calls", "reasoning_effort", "verbosity", "chat_template_kwargs"],
  ...["user", "safety_identifier", "metadata", "store", "service_tier", "priority"],
  ...["cache_salt", "cache_prompt", "prompt_cache_key", "prompt_cache_retention"],
]);

/** Reports whether a member's value is equal to the absence of the member. */
function isUndeclared(name: string, value: unknown): boolean {
  if (value === undefined || value === null || value === false || value === 0 || value === "") return true;
  if (Array.isArray(value)) return value.length === 0;
  if (name === "n" || name === "best_of" || name === "repetition_penalty") return value === 1;
  if (name === "tool_choice") return value === "auto" || value === "none";
  return name === "response_format" && (value as { type?: unknown }).type === "text";
}

/**
 * Reports whether an answer can be continued exactly by its text. An unknown member, such as a grammar or a penalty,
 * may start over with the rest.
 */
export function isContinuable(body: Body): boolean {
  for (const [name, value] of Object.entries(body)) if (!lasting.has(name) && !isUndeclared(name, value)) return false;
  const { messages, prompt } = body;
  // A completion without a limit gets the limit of its server, and it is unknown how much of that is left.
  return Array.isArray(messages) || (typeof prompt === "string" && limitOf(body) !== undefined);
}

/** Returns the token limit of the answer; undefined without a limit. */
function limitOf({ max_completion_tokens: newer, max_tokens: older }: Body): number | undefined {
  return typeof newer === "number" ? newer : typeof older === "number" ? older : undefined;
}

/**
 * Reports whether the text ends with the beginning of a stop sequence. If the rest of the sequence followed, it would
 * not be recognised.
 */
export function isWithinStop({ stop }: Body, text: string): boolean {
  const sequences: readonly unknown[] = Array.isArray(stop) ? stop : [stop];
  return sequences.some((one) => typeof one === "string" && endsAsBegins(text, one));
}

function endsAsBegins(text: string, sequence: string): boolean {
  for (let length = sequence.length - 1; length > 0; length--) {
    if (text.endsWith(sequence.slice(0, length))) return true;
  }
  return false;
}

/** Matches marks by which templates recognise reasoning. In messages, they rewrite or remove it. */
const thoughtMark = /<\/?think|\[\/?THINK\]|<\|channel\|>/;

/**
 * Reports whether the server continues exactly after this text, if the client's messages end in this way. `prefilled`
 * is true if the servers that wrote the text also continued a last assistant message.
 */
export function goesOnFrom(body: Body, text: string, how: ChatContinuation, prefilled: boolean): boolean {
  const { messages } = body;
  if (!Array.isArray(messages)) return true;
  const began = beganByClient(body);
  if (how === "last_message") return began === "no" || (began === "text" && prefilled);
  // Templates may trim white space around a message, and the model would generate it again.
  return began === "no" && text.trim() === text && !thoughtMark.test(text);
}

/** Builds the body. `written` is the number of tokens so far, which are subtracted from the limit. */
export function continuedBody(body: Body, text: string, how: ChatContinuation, written: number): string {
  const limits: Record<string, number> = {};
  for (const name of ["max_completion_tokens", "max_tokens"]) {
    const limit = body[name];
    if (typeof limit === "number") limits[name] = Math.max(1, limit - written);
  }
  const { messages, prompt } = body;
  if (!Array.isArray(messages)) return JSON.stringify({ ...body, prompt: `${prompt}${text}`, ...limits });
  const began = beganByClient(body) === "text" ? (messages.at(-1) as { content: string }) : undefined;
  const last = { role: "assistant", ...began, content: `${began?.content ?? ""}${text}` };
  const flags = how === "flag" ? { add_generation_prompt: false, continue_final_message: true } : {};
  return JSON.stringify({
    ...body,
    messages: [...(began ? messages.slice(0, -1) : messages), last],
    ...limits,
    ...flags,
  });
}

/** Returns whether the client's last message is the beginning of the answer itself. */
function beganByClient({ messages }: Body): "no" | "text" | "other" {
  const last = (Array.isArray(messages) ? messages.at(-1) : undefined) as Body | undefined;
  if (last?.["role"] !== "assistant") return "no";
  return typeof last["content"] === "string" && last["tool_calls"] === undefined ? "text" : "other";
}
