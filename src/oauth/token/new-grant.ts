// Makes a grant with its first tokens. Nothing is stored: that, and taking what was presented, is one step of the store.
import type { Authorization, RefreshToken } from "../../domain/people/oauth.ts";
import { membershipCredentialId } from "../../domain/people/person.ts";
import { type ApiKeyRecord, newAndUnbounded } from "../../domain/principal.ts";
import { newRefreshToken, signedAnswer } from "./answer.ts";
import type { ClientRequest, TokenAnswer, TokenDeps } from "./stage.ts";

/** Throws `invalid_scope` where the app was registered for none of the scopes any more. */
export async function newGrant(
  { personId, accountId, membershipId, environment, scopes }: Authorization,
  { client, origin }: ClientRequest,
  deps: TokenDeps,
): Promise<{ grant: ApiKeyRecord; refreshToken: RefreshToken; answer: TokenAnswer }> {
  const id = `grt_${Bun.randomUUIDv7()}`;
  const grant: ApiKeyRecord = {
    id,
    kind: "grant",
    personId,
    appId: client.id,
    role: null,
    accountId,
    name: client.name,
    environment,
    // Nobody presents it, and it has no secret: its tokens lead to its id.
    digest: id,
    prefix: "",
    last4: "",
    scopes,
    createdBy: personId,
    parentId: membershipCredentialId(membershipId, environment),
    limitId: id,
    createdAt: origin.nowSeconds,
    ...newAndUnbounded,
  };
  const { token, record } = newRefreshToken(id, origin.nowSeconds);
  const answer = await signedAnswer(grant, undefined, token, client, deps);
  return { grant, refreshToken: record, answer };
}
