// The grant type of an authorization code (RFC 6749, 4.1.3; RFC 7636, 4.6): its checks in order, and its result.
import { createHash } from "node:crypto";
import type { AuthorizationCode } from "../../domain/people/oauth.ts";
import { sameSecret, tokenDigest } from "../../policy/credentials/opaque-token.ts";
import { codeSeconds } from "../authorize/code.ts";
import { invalidGrant, OAuthError } from "../oauth-error.ts";
import { created, replayed } from "./grant-events.ts";
import { newGrant } from "./issue.ts";
import { type ClientRequest, type GrantType, required, type TokenAnswer, type TokenDeps } from "./stage.ts";

export const authorizationCode: GrantType<AuthorizationCode> = {
  find: findCode,
  stages: [codeIsOfClient, codeIsUnused, codeIsFresh, redirectUriIsRepeated, verifierMatches, redeemCode],
};

/** Finds the authorization code that a request presents. */
async function findCode(request: ClientRequest, { oauth }: TokenDeps): Promise<AuthorizationCode> {
  const code = await oauth.findCode(tokenDigest(required(request, "code")));
  if (code) return code;
  throw invalidGrant("code_unknown");
}

/** A code works only for the client that it was issued to (RFC 6749, 4.1.3). */
function codeIsOfClient(code: AuthorizationCode, { client }: ClientRequest): undefined {
  if (code.appId !== client.id) throw invalidGrant("code_of_other_client");
}

/**
 * If a code is sent a second time, another party has seen it: its grant ends (RFC 6749, 4.1.2), even if the code has
 * expired.
 */
async function codeIsUnused(
  code: AuthorizationCode,
  request: ClientRequest,
  { oauth, changed }: TokenDeps,
): Promise<undefined> {
  if (code.grantId === null) return;
  const event = replayed(request, { accountId: code.accountId, grantId: code.grantId }, "code_used_again");
  if (await oauth.revokeGrant(code.grantId, event)) changed([code.grantId]);
  throw invalidGrant("code_used_again");
}

/** Refuses an expired code. */
function codeIsFresh(code: AuthorizationCode, { origin }: ClientRequest): undefined {
  if (origin.nowSeconds >= code.expiresAt) throw invalidGrant("code_expired");
  // A clock that was set back must not prolong a code. The clocks of two processes may differ, but only by less than
  // the lifetime of a code.
  if (origin.nowSeconds < code.createdAt - codeSeconds) throw invalidGrant("code_of_the_future");
}

/**
 * Requires the redirect URI of the authorization request again, byte for byte (RFC 6749, 4.1.3). If that request named
 * none, the app has only one, which may be left out here too.
 */
function redirectUriIsRepeated({ redirectUri }: AuthorizationCode, { parameters, client }: ClientRequest): undefined {
  const sent = parameters.get("redirect_uri");
  if (redirectUri === null && (sent === undefined || client.redirectUris.includes(sent))) return;
  if (sent === undefined) {
    // RFC 6749, 5.2: a required parameter is missing. Only the app that the code was issued to learns this.
    throw new OAuthError("invalid_request", "redirect_uri: is required, as it was in the authorization request.");
  }
  if (sent !== redirectUri) throw invalidGrant("redirect_uri");
}

/** The form of a verifier (RFC 7636, 4.1). */
const verifierPattern = /^[A-Za-z0-9._~-]{43,128}$/;

/**
 * Proves that the redeeming app requested the code (RFC 7636, 4.6): a challenge requires its verifier, and a verifier
 * its challenge.
 */
function verifierMatches({ codeChallenge }: AuthorizationCode, { parameters, client }: ClientRequest): undefined {
  const verifier = parameters.get("code_verifier");
  if (codeChallenge === null) {
    // RFC 9700, 2.1.1: an attacker removed the challenge from the authorization request.
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

/** Redeems the code and issues its tokens in one step, so that only one of several parallel requests gets tokens. */
async function redeemCode(code: AuthorizationCode, request: ClientRequest, deps: TokenDeps): Promise<TokenAnswer> {
  const { answer, ...issued } = await newGrant(code, request, deps);
  const outcome = await deps.oauth.redeemCode(code.digest, issued, {
    issued: created(request, issued.grant, "authorization_code"),
    replayed: replayed(request, { accountId: code.accountId, grantId: null }, "code_used_again"),
  });
  if (outcome === "issued") return answer;
  if (outcome === "replayed") deps.changed();
  throw invalidGrant(outcome === "replayed" ? "code_used_again" : "membership_or_app_gone");
}
