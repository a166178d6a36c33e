// Writes errors in the form of the Messages API.
import type { ReplyFault } from "../conversation/reply.ts";
import type { Json } from "./json.ts";

/** The error type for each HTTP status, from platform.claude.com/docs/en/api/errors. */
const types: Readonly<Record<number, string>> = {
  401: "authentication_error",
  402: "billing_error",
  403: "permission_error",
  404: "not_found_error",
  409: "conflict_error",
  413: "request_too_large",
  429: "rate_limit_error",
  503: "overloaded_error",
  504: "timeout_error",
  529: "overloaded_error",
};

const tooLong = "prompt is too long";

/** Returns the body of an error. The event `error` has the same body. */
export function messageError(fault: ReplyFault): Json {
  const type = types[fault.status] ?? (fault.status < 500 ? "invalid_request_error" : "api_error");
  return { type: "error", error: { type, message: messageOf(fault) }, request_id: fault.requestId ?? null };
}

/**
 * Returns the message of an error. If the context is full, it has Anthropic's words, because Claude Code shortens a
 * conversation only if an error contains exactly these words.
 */
function messageOf({ code, message }: ReplyFault): string {
  const isNamed = message.toLowerCase().includes(tooLong);
  return code === "context_length_exceeded" && !isNamed ? `${tooLong}: ${message}` : message;
}
