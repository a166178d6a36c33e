// Takes the code and issues what it stands for, in one step: of several that come at once, one gets it.
import type { AuthorizationCode } from "../../domain/people/oauth.ts";
import { invalidGrant } from "../oauth-error.ts";
import { created, replayed } from "./grant-events.ts";
import { newGrant } from "./new-grant.ts";
import type { ClientRequest, TokenAnswer, TokenDeps } from "./stage.ts";

export async function redeemCode(
  code: AuthorizationCode,
  request: ClientRequest,
  deps: TokenDeps,
): Promise<TokenAnswer> {
  const { answer, ...issued } = await newGrant(code, request, deps);
  const outcome = await deps.oauth.redeemCode(code.digest, issued, {
    issued: created(request, issued.grant, "authorization_code"),
    replayed: replayed(request, { accountId: code.accountId, grantId: null }, "code_used_again"),
  });
  if (outcome === "issued") return answer;
  if (outcome === "replayed") deps.changed();
  throw invalidGrant(outcome === "replayed" ? "code_used_again" : "membership_or_app_gone");
}
