// A used refresh token: the same request gets the same answer for a moment, as answers are lost; anything else is a replay.
import { invalidGrant } from "../oauth-error.ts";
import type { FoundRefreshToken } from "./find-refresh-token.ts";
import { replayed } from "./grant-events.ts";
import { openAnswer } from "./sealed-answer.ts";
import type { ClientRequest, TokenAnswer, TokenDeps } from "./stage.ts";

const graceSeconds = 10;

/** RFC 9700, 4.14.2: it cannot be told who is the thief, so all that belongs together ends. */
export async function refreshTokenIsUnused(
  { text, token, grant }: FoundRefreshToken,
  request: ClientRequest,
  deps: TokenDeps,
): Promise<TokenAnswer | undefined> {
  if (token.usedAt === null) return undefined;
  // Either way: a clock that was set back does not make an old token a new one.
  const isSoon = Math.abs(request.origin.nowSeconds - token.usedAt) < graceSeconds;
  const answer =
    isSoon && token.sealedAnswer !== null ? openAnswer(token.sealedAnswer, text, request, deps) : undefined;
  if (answer) return answer;
  const [{ id, accountId }] = grant.keys;
  const event = replayed(request, { accountId, grantId: id }, "refresh_token_used_again");
  if (await deps.oauth.revokeGrant(id, event)) deps.changed([id]);
  throw invalidGrant("refresh_token_used_again");
}
