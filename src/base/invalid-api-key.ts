// The single error for every credential that is not accepted, so that an attacker learns nothing from it.
import { GatewayError } from "./errors.ts";

const anyReason = "it is missing, malformed, unknown, expired, revoked or not allowed here";

/** OpenAI's message follows the gateway's, because some clients recognise a wrong key by OpenAI's words. */
export const invalidApiKeyMessage = messageFor(anyReason);

/**
 * `detail` is the reason for the log. `reason` is shown to the client: set it only if the credential is genuine
 * and valid, because other clients must not learn how close a guess was.
 */
export function invalidApiKey(detail: string, reason = anyReason): GatewayError {
  return new GatewayError("invalid_api_key", messageFor(reason), { detail });
}

function messageFor(reason: string): string {
  return `Invalid API key provided. Incorrect API key provided: ${reason}.`;
}
