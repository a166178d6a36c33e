// Errors in the form of Anthropic's API, with its statuses, types and words.
import type { ErrorCode, GatewayError } from "../base/errors.ts";
import { maskKeys } from "../domain/api-key.ts";
import { errorTable } from "./errors.ts";

/**
 * Statuses of Anthropic's API that differ from `errorTable`. A spent quota gets the answer that Anthropic gives for a
 * reached spend limit: status 429 without a time to wait.
 */
const ownStatus: Partial<Record<ErrorCode, number>> = { service_unavailable: 529, insufficient_quota: 429 };

/** The error type for each HTTP status (Anthropic API reference, "Errors"). */
export const anthropicTypes: Readonly<Record<number, string>> = {
  400: "invalid_request_error",
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  405: "invalid_request_error",
  413: "request_too_large",
  415: "invalid_request_error",
  429: "rate_limit_error",
  504: "timeout_error",
  529: "overloaded_error",
};

export function anthropicStatus(code: ErrorCode): number {
  return ownStatus[code] ?? errorTable[code].status;
}

/**
 * Returns `{"type":"error","error":{type,message},"request_id"}`. A spent quota is described by a member beside
 * `error`, as in OpenAI's form.
 */
export function renderAnthropicError(error: GatewayError, requestId: string): string {
  const type = error.engineLimited ? "rate_limit_error" : (anthropicTypes[anthropicStatus(error.code)] ?? "api_error");
  const { quota } = error;
  const message = maskKeys(messageOf(error));
  return JSON.stringify({ type: "error", error: { type, message }, request_id: requestId, ...(quota && { quota }) });
}

/**
 * Matches the messages after which Claude Code shortens its conversation or asks for a shorter answer. Claude Code also
 * reads the numbers in these messages.
 */
const ownWords = /^(?:prompt is too long|input length and `max_tokens` exceed context limit)/i;
/** Matches the context length in the error text of a model server. */
const contextWords = /context (?:length|size|window)\D{0,16}?(\d[\d,]*)/i;

/**
 * Returns the message in Anthropic's words. If a conversation is too long, model servers report this in other words,
 * usually with the same numbers.
 */
function messageOf({ engineCode, message }: GatewayError): string {
  if (engineCode !== "context_length_exceeded" || ownWords.test(message)) return message;
  const numbers = [...message.matchAll(/\d[\d,]{2,}/g)].map(([text]) => numberOf(text));
  const [most = 0, second = 0, third = 0] = [...new Set(numbers)].sort((a, b) => b - a);
  const said = contextWords.exec(message)?.[1];
  const context = said === undefined ? second : numberOf(said);
  // If the context is the largest number, the other two are the tokens of the prompt and of the answer, which do not
  // fit together.
  const wanted = most > context ? most : second + third;
  if (context === 0 || wanted <= context) return `prompt is too long: ${message}`;
  return `prompt is too long: ${wanted} tokens > ${context} maximum`;
}

function numberOf(text: string): number {
  return Number(text.replaceAll(",", ""));
}
