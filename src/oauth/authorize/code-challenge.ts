// PKCE (RFC 7636): required of whoever cannot keep a secret, and in the form that does not give the verifier away.
import type { Check } from "./check.ts";

/** SHA-256 in base64url. */
const digestPattern = /^[\w-]{43}$/;

export const codeChallenge: Check = ({ parameters, app }) => {
  const challenge = parameters.get("code_challenge");
  const method = parameters.get("code_challenge_method");
  if (challenge === undefined) {
    if (method !== undefined) {
      return { error: "invalid_request", description: "code_challenge: is missing, while its method was sent." };
    }
    if (app.type === "confidential" && !app.requirePkce) return undefined;
    return { error: "invalid_request", description: "code_challenge: this app has to send one; its method is S256." };
  }
  // Left out, it means plain (RFC 7636, 4.3).
  if (method !== "S256") {
    return { error: "invalid_request", description: "code_challenge_method: must be S256; plain is not served." };
  }
  if (digestPattern.test(challenge)) return undefined;
  return {
    error: "invalid_request",
    description: "code_challenge: must be the SHA-256 of the verifier in base64url, 43 characters without padding.",
  };
};
