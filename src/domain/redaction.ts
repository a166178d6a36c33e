// Text without credentials in it: the last line of defence of logs and traces, whatever a caller put into a message.
import { maskKeys } from "./api-key.ts";

/** Cheap, and true of whatever `redactCredentials` would change: most texts need nothing else. */
const marks =
  /_hr_|hr[nrs]_|eyJ|:\/\/[^\s/]*@|(?:sk|pk|hf|xai)[-_]|AIza|[Bb][Ee][Aa][Rr][Ee][Rr]\s|[Bb][Aa][Ss][Ii][Cc]\s/;
/** Join tokens, refresh tokens, secrets of apps. */
const ownTokens = /\b(hr[nrs]_)[\w-]{8,}/g;
/** RFC 6750, 2.1, and RFC 7617, 2. */
const authorizations = /\b(Bearer|Basic)\s+[\w.~+/=-]{8,}/gi;
/**
 * Three parts or five (RFC 7515, 7516); the header of each begins with `{"`. What has no such parts is matched as well, so that
 * it is passed over and not looked through again from each place in it.
 */
const webTokens = /\beyJ[\w-]{6,}((?:\.[\w-]*){2,4})?/g;
/** User and password of a URL, or a token in their place; to the last `@`, as a password may have one. */
const userInfo = /(:\/\/)[^\s/]+@/g;
/** Keys in the form of common model services. */
const serviceKeys = /\b(?:sk|pk|gsk|hf|xai)[-_][\w-]{16,}|\bAIza[\w-]{20,}/g;

export function mayHoldCredentials(text: string): boolean {
  return marks.test(text);
}

/** Keys of ours and of others, bearer tokens, JWTs, and what stands before the host of a URL. */
export function redactCredentials(text: string): string {
  if (!marks.test(text)) return text;
  return maskKeys(text)
    .replace(ownTokens, "$1…")
    .replace(authorizations, "$1 [redacted]")
    .replace(webTokens, (token, parts: string | undefined) => (parts === undefined ? token : "[redacted]"))
    .replace(userInfo, "$1[redacted]@")
    .replace(serviceKeys, "[redacted]");
}

/** A shorter one is no secret but a word, such as `ollama`, that messages use. */
export const minSecretLength = 8;

/** Values that must appear nowhere; what is too short to be a secret is left out. */
export function redactSecrets(text: string, secrets: readonly string[]): string {
  let safe = text;
  for (const secret of secrets) {
    if (secret.length >= minSecretLength && safe.includes(secret)) safe = safe.replaceAll(secret, "[redacted]");
  }
  return safe;
}
