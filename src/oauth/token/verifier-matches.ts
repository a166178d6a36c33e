// Proof that whoever redeems the code asked for it (RFC 7636, 4.6): a challenge is never without its verifier, nor the reverse.
import { createHash } from "node:crypto";
import type { AuthorizationCode } from "../../domain/people/oauth.ts";
import { sameSecret } from "../../policy/credentials/opaque-token.ts";
import { invalidGrant } from "../oauth-error.ts";
import type { ClientRequest } from "./stage.ts";

/** RFC 7636, 4.1. */
const verifierPattern = /^[A-Za-z0-9._~-]{43,128}$/;

export function verifierMatches(
  { codeChallenge }: AuthorizationCode,
  { parameters, client }: ClientRequest,
): undefined {
  const verifier = parameters.get("code_verifier");
  if (codeChallenge === null) {
    // RFC 9700, 2.1.1: somebody took the challenge out of the authorization request.
    if (verifier !== undefined) throw invalidGrant("verifier_without_challenge");
    if (client.type === "public") throw invalidGrant("challenge_missing");
    return;
  }
  if (verifier === undefined) throw invalidGrant("verifier_missing");
  if (!verifierPattern.test(verifier) || !isChallengeOf(verifier, codeChallenge)) throw invalidGrant("verifier");
}

function isChallengeOf(verifier: string, challenge: string): boolean {
  return sameSecret(challenge, createHash("sha256").update(verifier).digest("base64url"));
}
