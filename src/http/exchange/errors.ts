// Converts an error into an HTTP answer with its headers, including the challenge of RFC 6750.
import type { GatewayError } from "../../base/errors.ts";
import { errorTable, renderError } from "../../wire/errors.ts";
import type { PlainAnswer } from "./route.ts";

/** nginx's status for a client that closed the connection early. Used only in the log and metrics. */
export const clientClosedRequest = 499;

export function errorAnswer(error: GatewayError): PlainAnswer {
  const { status } = errorTable[error.code];
  const shouldRetry = error.shouldRetry ?? errorTable[error.code].shouldRetry;
  const headers: Record<string, string> = { "content-type": "application/json" };
  if (shouldRetry !== undefined) headers["x-should-retry"] = String(shouldRetry);
  if (error.retryAfterSeconds !== undefined) {
    headers["retry-after"] = String(Math.ceil(error.retryAfterSeconds));
    headers["retry-after-ms"] = String(Math.ceil(error.retryAfterSeconds * 1000));
  }
  const challenge = bearerChallenge(error);
  if (challenge) headers["www-authenticate"] = challenge;
  return { status, headers, body: renderError(error) };
}

/**
 * Returns the `www-authenticate` challenge (RFC 6750, 3), or undefined for errors that need none. If the request had no
 * credential, the challenge has no error code.
 */
function bearerChallenge(error: GatewayError): string | undefined {
  switch (error.code) {
    case "invalid_api_key":
      return error.detail === "missing" ? 'Bearer realm="headrace"' : 'Bearer realm="headrace", error="invalid_token"';
    case "token_expired":
      return 'Bearer realm="headrace", error="invalid_token"';
    case "insufficient_scope": {
      const scope = error.message.slice(error.message.lastIndexOf(" ") + 1);
      return `Bearer realm="headrace", error="insufficient_scope", scope="${scope}"`;
    }
    default:
      return undefined;
  }
}
