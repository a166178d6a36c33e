// The grant type of a refresh token (RFC 6749, 6; RFC 9700, 4.14.2): its checks in order, and its result.
import type { RefreshToken } from "../../domain/people/oauth.ts";
import { type KeyChain, keyStatus } from "../../domain/principal.ts";
import { tokenDigest } from "../../policy/credentials/opaque-token.ts";
import { invalidGrant, OAuthError } from "../oauth-error.ts";
import { refreshed, replayed } from "./grant-events.ts";
import { newRefreshToken, signedAnswer } from "./issue.ts";
import { openAnswer, sealAnswer } from "./sealed-answer.ts";
import { type ClientRequest, type GrantType, required, type TokenAnswer, type TokenDeps } from "./stage.ts";

export const refreshToken: GrantType<FoundRefreshToken> = {
  find: findRefreshToken,
  stages: [refreshTokenIsOfClient, grantStands, refreshTokenIsUnused, refreshTokenIsFresh, rotateRefreshToken],
};

interface FoundRefreshToken {
  /** The refresh token as the client sent it. */
  text: string;
  token: RefreshToken;
  /** The grant, with the membership whose rights limit it. */
  grant: KeyChain;
}

/** Finds the refresh token that a request presents, with its grant. */
async function findRefreshToken(request: ClientRequest, { oauth }: TokenDeps): Promise<FoundRefreshToken> {
  const text = required(request, "refresh_token");
  const found = await oauth.findRefreshToken(tokenDigest(text));
  if (found) return { text, ...found };
  throw invalidGrant("refresh_token_unknown");
}

/** A refresh token works only for the client that it was issued to (RFC 6749, 6). */
function refreshTokenIsOfClient({ grant }: FoundRefreshToken, { client }: ClientRequest): undefined {
  if (grant.keys[0].appId !== client.id) throw invalidGrant("refresh_token_of_other_client");
}

/** Refuses a revoked grant, and the grant of a member who has left the account. */
function grantStands({ grant }: FoundRefreshToken, { origin }: ClientRequest): undefined {
  if (grant.account.status !== "active") throw invalidGrant("account_suspended");
  const states = grant.keys.map((key) => keyStatus(key, origin.nowSeconds));
  if (states.some((status) => status === "revoked" || status === "expired")) throw invalidGrant("grant_ended");
  // Clients keep their tokens on this error, so that they work again after the person or app is resumed.
  if (states.includes("suspended")) {
    throw new OAuthError(
      "temporarily_unavailable",
      "The app, or the person who allowed it, is suspended.",
      "suspended",
    );
  }
}

const graceSeconds = 10;

/**
 * Handles a refresh token that was used before. For a moment, the same request gets the same answer again, because
 * answers get lost. Any other use is a replay: the thief cannot be identified, so the whole grant ends (RFC 9700,
 * 4.14.2).
 */
async function refreshTokenIsUnused(
  { text, token, grant }: FoundRefreshToken,
  request: ClientRequest,
  deps: TokenDeps,
): Promise<TokenAnswer | undefined> {
  if (token.usedAt === null) return undefined;
  // The absolute difference counts, because a clock that was set back must not make an old token valid again.
  const isSoon = Math.abs(request.origin.nowSeconds - token.usedAt) < graceSeconds;
  const answer =
    isSoon && token.sealedAnswer !== null ? openAnswer(token.sealedAnswer, text, request, deps) : undefined;
  if (answer) return answer;
  const [{ id, accountId }] = grant.keys;
  const event = replayed(request, { accountId, grantId: id }, "refresh_token_used_again");
  if (await deps.oauth.revokeGrant(id, event)) deps.changed([id]);
  throw invalidGrant("refresh_token_used_again");
}

/** Refuses a refresh token that was unused for too long. */
function refreshTokenIsFresh({ token }: FoundRefreshToken, { origin }: ClientRequest): undefined {
  if (origin.nowSeconds >= token.expiresAt) throw invalidGrant("refresh_token_expired");
}

/**
 * Replaces the presented refresh token, and issues an access token (RFC 6749, 6; RFC 9700, 4.14.2). The grant stays as
 * it is; a narrower `scope` or `resource` applies only to this access token.
 */
async function rotateRefreshToken(
  found: FoundRefreshToken,
  request: ClientRequest,
  deps: TokenDeps,
): Promise<TokenAnswer> {
  const { origin, parameters } = request;
  const [grant] = found.grant.keys;
  const successor = newRefreshToken(found.token, origin.nowSeconds);
  const answer = await signedAnswer(grant, parameters.get("scope"), successor, request, deps);
  const outcome = await deps.oauth.rotateRefreshToken(
    found.token.digest,
    successor.record,
    { at: origin.nowSeconds, sealedAnswer: sealAnswer(answer, found.text, request, deps) },
    refreshed(request, grant, answer.scope.split(" ")),
  );
  if (outcome === "rotated") return answer;
  // A concurrent request used the same token, or the grant ended meanwhile.
  const again = outcome && (await refreshTokenIsUnused({ ...found, token: outcome }, request, deps));
  if (again) return again;
  throw invalidGrant("grant_ended");
}
