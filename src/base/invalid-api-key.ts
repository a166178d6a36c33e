// The one refusal of every credential that is not accepted. It tells an attacker nothing.
import { GatewayError } from "./errors.ts";

const anyReason = "it is missing, malformed, unknown, expired, revoked or not allowed here";

/**
 * Begins with our own words. OpenAI's words follow, by which some clients tell a wrong key from a malformed request.
 */
export const invalidApiKeyMessage = messageFor(anyReason);

/**
 * `detail` is the reason, for the log only. `reason` is for the client, and only if it presented a genuine and valid
 * credential: no other client may learn how near a guess came.
 */
export function invalidApiKey(detail: string, reason = anyReason): GatewayError {
  return new GatewayError("invalid_api_key", messageFor(reason), { detail });
}

function messageFor(reason: string): string {
  return `Invalid API key provided. Incorrect API key provided: ${reason}.`;
}
