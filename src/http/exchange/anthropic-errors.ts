// Answers errors in the form of Anthropic's API, on the endpoints of its clients.
import type { GatewayError } from "../../base/errors.ts";
import type { IncomingRequest } from "../../http1/message.ts";
import { anthropicStatus, renderAnthropicError } from "../../wire/anthropic-errors.ts";
import type { PlainAnswer } from "./route.ts";

/**
 * Reports whether a path without a route was meant for Anthropic's API: below its endpoint, of which only parts exist
 * here, or from an Anthropic client.
 */
export function isAskedAsAnthropic(req: Pick<IncomingRequest, "headers">, path: string): boolean {
  return isAnthropicClient(req) || /^\/(?:v1\/)*messages(?:\/|$)/.test(path);
}

/**
 * Reports whether an Anthropic client sent the request: Anthropic's SDKs and Claude Code send their API version with
 * each request.
 */
export function isAnthropicClient({ headers }: Pick<IncomingRequest, "headers">): boolean {
  return headers.get("anthropic-version") !== null;
}

/** Returns the error in the vendor's form. `answer` is the error in our form. */
export function inAnthropicForm(answer: PlainAnswer, error: GatewayError, requestId: string): PlainAnswer {
  return {
    status: anthropicStatus(error.code),
    headers: { ...answer.headers, ...requestIdHeader(requestId) },
    body: renderAnthropicError(error, requestId),
  };
}

/** Anthropic's SDKs read the id of a request from this header. */
export function requestIdHeader(requestId: string): { "request-id": string } {
  return { "request-id": requestId };
}
