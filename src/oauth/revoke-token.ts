// Token revocation (RFC 7009): an app gives up one of its tokens, and its grant ends.
import { type FindTokenDeps, findToken } from "./find-token.ts";
import { revoked } from "./token/grant-events.ts";
import { type ClientRequest, required } from "./token/stage.ts";

export interface RevocationDeps extends FindTokenDeps {
  /** Called after a revocation, so that this process reads the store again. */
  changed(ids?: readonly string[]): void;
}

/**
 * Revokes a token. Does nothing for another client's token (RFC 7009, 2.2). Throws `invalid_request` without a token.
 */
export async function revokeToken(request: ClientRequest, deps: RevocationDeps): Promise<void> {
  const found = await findToken(required(request, "token"), request.client.id, deps);
  if (!found) return;
  const [grant] = found.grant.keys;
  if (await deps.oauth.revokeGrant(grant.id, revoked(request, grant))) deps.changed([grant.id]);
}
