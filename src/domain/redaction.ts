// Removes credentials from the texts of logs and traces, in case other code has left one there.
import { maskKeys } from "./api-key.ts";

/** Matches every text that `redactCredentials` would change. This test is cheap, and most texts do not match. */
const marks =
  /_hr_|hr[nrs]_|eyJ|:\/\/[^\s/]*@|(?:sk|pk|hf|xai)[-_]|AIza|[Bb][Ee][Aa][Rr][Ee][Rr]\s|[Bb][Aa][Ss][Ii][Cc]\s/;
/** The gateway's own join tokens, refresh tokens and secrets of apps. */
const ownTokens = /\b(hr[nrs]_)[\w-]{8,}/g;
/** Bearer tokens (RFC 6750, 2.1) and basic credentials (RFC 7617, 2). */
const authorizations = /\b(Bearer|Basic)\s+[\w.~+/=-]{8,}/gi;
/**
 * JSON web tokens of three or five parts (RFC 7515, 7516), whose header begins with `{"`. Texts without such parts
 * match too, so that the scan does not restart at each of their characters.
 */
const webTokens = /\beyJ[\w-]{6,}((?:\.[\w-]*){2,4})?/g;
/**
 * The user and password of a URL, or a token in their place. Matches up to the last `@`, because a password may contain
 * one.
 */
const userInfo = /(:\/\/)[^\s/]+@/g;
/** API keys in the formats of well-known model services. */
const serviceKeys = /\b(?:sk|pk|gsk|hf|xai)[-_][\w-]{16,}|\bAIza[\w-]{20,}/g;

export function mayHoldCredentials(text: string): boolean {
  return marks.test(text);
}

/** Removes keys of Headrace and other services, bearer tokens, JWTs, and user information in URLs. */
export function redactCredentials(text: string): string {
  if (!marks.test(text)) return text;
  return maskKeys(text)
    .replace(ownTokens, "$1…")
    .replace(authorizations, "$1 [redacted]")
    .replace(webTokens, (token, parts: string | undefined) => (parts === undefined ? token : "[redacted]"))
    .replace(userInfo, "$1[redacted]@")
    .replace(serviceKeys, "[redacted]");
}

/** Minimum length of a secret. A shorter text is rather a common word, such as `ollama`. */
export const minSecretLength = 8;

/** Removes these values from a text, except values that are too short to be secrets. */
export function redactSecrets(text: string, secrets: readonly string[]): string {
  let safe = text;
  for (const secret of secrets) {
    if (secret.length >= minSecretLength && safe.includes(secret)) safe = safe.replaceAll(secret, "[redacted]");
  }
  return safe;
}
