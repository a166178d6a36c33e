// Builds the redirect URL that carries the authorization response (RFC 6749, 4.1.2; RFC 9207, 2).
import type { ClientRequest, Fault } from "./check.ts";

/** Returns the redirect URL, encoded as in RFC 6749, appendix B. An existing query stays. */
export function answerLocation(
  { redirectUri, parameters }: Pick<ClientRequest, "redirectUri" | "parameters">,
  answer: { code: string } | Fault,
  issuer: string,
): string {
  const members = new URLSearchParams(
    "code" in answer ? { code: answer.code } : { error: answer.error, error_description: answer.description },
  );
  const state = parameters.get("state");
  if (state !== undefined) members.set("state", state);
  members.set("iss", issuer);
  return `${redirectUri}${redirectUri.includes("?") ? "&" : "?"}${members}`;
}
