// Errors in the form of Anthropic's API, for the endpoints that its clients ask.
import type { ErrorCode, GatewayError } from "../../base/errors.ts";
import { maskKeys } from "../../domain/api-key.ts";
import type { IncomingRequest } from "../../http1/message.ts";
import { errorTable } from "./errors.ts";
import type { PlainAnswer } from "./route.ts";

/** Where the vendor has a status of its own for what our table says. A spent quota is told as it tells a spend limit: 429, and no time to wait. */
const ownStatus: Partial<Record<ErrorCode, number>> = { service_unavailable: 529, insufficient_quota: 429 };

/** Anthropic API reference, "Errors". */
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

/** Its SDKs and Claude Code say with each request which version of the API they mean. */
export function isAnthropicClient({ headers }: Pick<IncomingRequest, "headers">): boolean {
  return headers.get("anthropic-version") !== null;
}

export function anthropicStatus(code: ErrorCode): number {
  return ownStatus[code] ?? errorTable[code].status;
}

/** `{"type":"error","error":{type,message},"request_id"}`. */
export function renderAnthropicError(error: GatewayError, requestId: string): string {
  const type = error.engineLimited ? "rate_limit_error" : (anthropicTypes[anthropicStatus(error.code)] ?? "api_error");
  return JSON.stringify({ type: "error", error: { type, message: maskKeys(messageOf(error)) }, request_id: requestId });
}

/** The same error as the vendor would answer it; `answer` is ours. */
export function inAnthropicForm(answer: PlainAnswer, error: GatewayError, requestId: string): PlainAnswer {
  return {
    status: anthropicStatus(error.code),
    headers: { ...answer.headers, ...requestIdHeader(requestId) },
    body: renderAnthropicError(error, requestId),
  };
}

/** Its SDKs read the id of a request from this header. */
export function requestIdHeader(requestId: string): { "request-id": string } {
  return { "request-id": requestId };
}

/**
 * Claude Code makes its conversation shorter where it reads these words, and takes the two numbers out of them. Model
 * servers say the same in words of their own, mostly with the same numbers.
 */
function messageOf({ engineCode, message }: GatewayError): string {
  if (engineCode !== "context_length_exceeded" || /^prompt is too long/i.test(message)) return message;
  const numbers = [...message.matchAll(/\d[\d,]{2,}/g)].map(([text]) => Number(text.replaceAll(",", "")));
  const [most, ...others] = [...new Set(numbers)].sort((a, b) => b - a);
  const context = others[0];
  if (most === undefined || context === undefined) return `prompt is too long: ${message}`;
  return `prompt is too long: ${most} tokens > ${context} maximum`;
}
