// The single error for every credential that is not accepted, so that an attacker learns nothing from it.
import { BlamelessError, GatewayError } from "./errors.ts";

const anyReason = "it is missing, malformed, unknown, expired, revoked or not allowed here";

/**
 * Contains the gateway's message followed by OpenAI's, because some clients recognise a wrong key by OpenAI's words.
 */
export const invalidApiKeyMessage = messageFor(anyReason);

/**
 * `detail` is the reason for the log. `reason` is shown to the client: set it only if the credential is genuine
 * and valid, because other clients must not learn how close a guess was.
 */
export function invalidApiKey(detail: string, reason = anyReason): GatewayError {
  return new GatewayError("invalid_api_key", messageFor(reason), { detail });
}

/** The owner of a suspended credential may learn the reason, because the credential is genuine. */
const suspensions = {
  account_suspended: "its account is suspended; ask the operator of this server",
  person_suspended: "its owner is suspended; ask the operator of this server",
  app_suspended: "its app is suspended; ask the app's publisher or the operator of this server",
  key_suspended: "it is suspended; ask an owner of its account or the operator of this server",
} as const;
export type Suspension = keyof typeof suspensions;

/**
 * Returns the reason to show for a suspended credential. Returns undefined for any other fault, because clients must
 * not learn those reasons.
 */
export function suspensionReason(fault: string): string | undefined {
  return Object.entries(suspensions).find(([name]) => name === fault)?.[1];
}

/** Returns the error that ends a running request: no model server is at fault. */
export function suspendedError(suspension: Suspension): GatewayError {
  return new BlamelessError("invalid_api_key", messageFor(suspensions[suspension]), { detail: suspension });
}

function messageFor(reason: string): string {
  return `Invalid API key provided. Incorrect API key provided: ${reason}.`;
}
