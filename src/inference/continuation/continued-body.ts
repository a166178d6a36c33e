// Builds the request that continues an answer: the original request with the delivered text added.
import type { ChatContinuation } from "../../domain/models/engine.ts";

type Body = Readonly<Record<string, unknown>>;

/** Request members that mean the same for the rest of an answer as for the whole answer. */
const lasting: ReadonlySet<string> = new Set([
  ...["model", "messages", "prompt", "stream", "stream_options", "max_tokens", "max_completion_tokens"],
  ...["temperature", "top_p", "top_k", "min_p", "seed", "stop", "stop_token_ids", "logit_bias", "ignore_eos"],
  ...["tools", "parallel_tool_calls", "reasoning_effort", "verbosity", "chat_template_kwargs"],
  ...["user", "safety_identifier", "metadata", "store", "service_tier", "priority"],
  ...["cache_salt", "cache_prompt", "prompt_cache_key", "prompt_cache_retention"],
]);

/** Reports whether this value has the same meaning as a missing member. */
function isUndeclared(name: string, value: unknown): boolean {
  if (value === undefined || value === null || value === false || value === 0 || value === "") return true;
  if (Array.isArray(value)) return value.length === 0;
  if (name === "n" || name === "best_of" || name === "repetition_penalty") return value === 1;
  if (name === "tool_choice") return value === "auto" || value === "none";
  return name === "response_format" && (value as { type?: unknown }).type === "text";
}

/**
 * Reports whether the answer to the request can be continued exactly. Unknown members, such as grammars, may not work
 * for the rest of an answer.
 */
export function isContinuable(body: Body): boolean {
  for (const [name, value] of Object.entries(body)) if (!lasting.has(name) && !isUndeclared(name, value)) return false;
  const { messages, prompt } = body;
  // A completion without a token limit cannot be continued, because it is unknown how many tokens of the server's
  // default are left.
  return Array.isArray(messages) || (typeof prompt === "string" && limitOf(body) !== undefined);
}

/** Returns the token limit of the request, or undefined. */
function limitOf({ max_completion_tokens: newer, max_tokens: older }: Body): number | undefined {
  return typeof newer === "number" ? newer : typeof older === "number" ? older : undefined;
}

/**
 * Reports whether the text ends with the beginning of a stop sequence. The rest of the sequence would come from another
 * server and not be recognized.
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

/** Matches marks that begin or end reasoning. In messages, chat templates rewrite or remove such marks. */
const thoughtMark = /<\/?think|\[\/?THINK\]|<\|channel\|>/;

/**
 * Reports whether a server can continue exactly after this text. `how` is the way in which the server continues.
 * `prefilled` is true if the earlier servers also continued the last assistant message.
 */
export function goesOnFrom(body: Body, text: string, how: ChatContinuation, prefilled: boolean): boolean {
  const { messages } = body;
  if (!Array.isArray(messages)) return true;
  const began = beganByClient(body);
  if (how === "last_message") return began === "no" || (began === "text" && prefilled);
  // Chat templates may trim white space around the message. The model would then generate it again.
  return began === "no" && text.trim() === text && !thoughtMark.test(text);
}

/** Returns the request for the rest of the answer. The token limit is reduced by `written`. */
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

/**
 * Reports whether the client's last message is from the assistant: "text" if it has only text, "other" if it has more.
 */
function beganByClient({ messages }: Body): "no" | "text" | "other" {
  const last = (Array.isArray(messages) ? messages.at(-1) : undefined) as Body | undefined;
  if (last?.["role"] !== "assistant") return "no";
  return typeof last["content"] === "string" && last["tool_calls"] === undefined ? "text" : "other";
}
