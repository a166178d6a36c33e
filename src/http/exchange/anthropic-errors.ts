// Formats errors as Anthropic's API does, for clients of that API.
import type { GatewayError } from "../../base/errors.ts";
import type { IncomingRequest } from "../../http1/message.ts";
import { anthropicStatus, renderAnthropicError } from "../../wire/anthropic-errors.ts";
import type { PlainAnswer } from "./route.ts";

/** Reports whether a request without a route was meant for Anthropic's API, judged by its path or its client. */
export function isAskedAsAnthropic(req: Pick<IncomingRequest, "headers">, path: string): boolean {
  return isAnthropicClient(req) || /^\/(?:v1\/)*messages(?:\/|$)/.test(path);
}

/**
 * Reports whether an Anthropic SDK or Claude Code sent the request. They send the version of Anthropic's API in a
 * header.
 */
export function isAnthropicClient({ headers }: Pick<IncomingRequest, "headers">): boolean {
  return headers.get("anthropic-version") !== null;
}

/** Returns the error answer in Anthropic's format, with the headers of `answer`. */
export function inAnthropicForm(answer: PlainAnswer, error: GatewayError, requestId: string): PlainAnswer {
  return {
    status: anthropicStatus(error.code),
    headers: { ...answer.headers, ...requestIdHeader(requestId) },
    body: renderAnthropicError(error, requestId),
  };
}

/** Returns the request id in the header that Anthropic's SDKs read. */
export function requestIdHeader(requestId: string): { "request-id": string } {
  return { "request-id": requestId };
}
