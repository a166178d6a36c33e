// Puts another refresh token in the place of the presented one, and issues an access token (RFC 6749, 6; RFC 9700, 4.14.2).
import { invalidGrant } from "../oauth-error.ts";
import { newRefreshToken, signedAnswer } from "./answer.ts";
import type { FoundRefreshToken } from "./find-refresh-token.ts";
import { refreshed } from "./grant-events.ts";
import { refreshTokenIsUnused } from "./refresh-token-is-unused.ts";
import { sealAnswer } from "./sealed-answer.ts";
import type { ClientRequest, TokenAnswer, TokenDeps } from "./stage.ts";

/** What the grant allows stays as it is; a narrower `scope` is of this access token alone. */
export async function rotateRefreshToken(
  found: FoundRefreshToken,
  request: ClientRequest,
  deps: TokenDeps,
): Promise<TokenAnswer> {
  const { client, origin, parameters } = request;
  const [grant] = found.grant.keys;
  const successor = newRefreshToken(grant.id, origin.nowSeconds);
  const answer = await signedAnswer(grant, parameters.get("scope"), successor.token, client, deps);
  const outcome = await deps.oauth.rotateRefreshToken(
    found.token.digest,
    successor.record,
    { at: origin.nowSeconds, sealedAnswer: sealAnswer(answer, found.text, request, deps) },
    refreshed(request, grant, answer.scope.split(" ")),
  );
  if (outcome === "rotated") return answer;
  // Somebody was faster with the same token, or the grant ended meanwhile.
  const again = outcome && (await refreshTokenIsUnused({ ...found, token: outcome }, request, deps));
  if (again) return again;
  throw invalidGrant("grant_ended");
}
