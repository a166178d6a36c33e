// Formats the errors of OAuth endpoints as in RFC 6749, 5.2.
import { type ErrorCode, GatewayError } from "../../base/errors.ts";
import { OAuthError, type OAuthErrorCode } from "../../oauth/oauth-error.ts";
import { errorAnswer } from "./errors.ts";
import type { PlainAnswer } from "./route.ts";

/**
 * Errors that all OAuth endpoints share. Limits and outages are sent as `temporarily_unavailable` (RFC 6749, 4.1.2.1)
 * with `Retry-After`, because token endpoints have no code for them. Any other error is answered as on other endpoints.
 */
const shared: Partial<Record<ErrorCode, { status: number; code: OAuthErrorCode }>> = {
  invalid_request: { status: 400, code: "invalid_request" },
  unsupported_media_type: { status: 400, code: "invalid_request" },
  request_too_large: { status: 413, code: "invalid_request" },
  rate_limit_exceeded: { status: 429, code: "temporarily_unavailable" },
  service_unavailable: { status: 503, code: "temporarily_unavailable" },
};

/** Returns the answer for an OAuth error. Rethrows any other error. `reason` is for the log only. */
export function oauthErrorAnswer(error: unknown): { answer: PlainAnswer; code: string; reason: string | undefined } {
  if (error instanceof OAuthError) {
    const { code, reason } = error;
    return { answer: refusal(statusOf(code), code, error.message), code, reason };
  }
  const known = error instanceof GatewayError ? shared[error.code] : undefined;
  if (!(error instanceof GatewayError) || !known) throw error;
  const { headers } = errorAnswer(error);
  const answer = refusal(known.status, known.code, error.message, headers);
  return { answer, code: error.code, reason: error.detail };
}

function statusOf(code: OAuthErrorCode): number {
  return code === "invalid_client" ? 401 : 400;
}

function refusal(
  status: number,
  error: OAuthErrorCode,
  text: string,
  more: Readonly<Record<string, string>> = {},
): PlainAnswer {
  const headers: Record<string, string> = { ...more, "content-type": "application/json" };
  // Every 401 must have this header, however the client authenticates (RFC 9110, 15.5.2).
  if (status === 401) headers["www-authenticate"] = 'Basic realm="headrace"';
  return { status, headers, body: JSON.stringify({ error, error_description: describable(text) }) };
}

/** Removes the characters that RFC 6749, 5.2, forbids in a description. */
function describable(text: string): string {
  return text.replaceAll('"', "'").replace(/[^\x20-\x21\x23-\x5b\x5d-\x7e]/g, "?");
}
