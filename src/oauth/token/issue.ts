// Issues tokens: a signed access token, a random refresh token, and their grant.
import type { Authorization, RefreshToken } from "../../domain/people/oauth.ts";
import { membershipCredentialId } from "../../domain/people/person.ts";
import { type ApiKeyRecord, newAndUnbounded } from "../../domain/principal.ts";
import { newOpaqueToken, tokenDigest } from "../../policy/credentials/opaque-token.ts";
import { OAuthError } from "../oauth-error.ts";
import { narrowedResources } from "../resources.ts";
import { requestedScopes } from "../scopes.ts";
import type { ClientRequest, TokenAnswer, TokenDeps } from "./stage.ts";

const accessTokenSeconds = 3_600;
/** The lifetime of an unused refresh token. */
const refreshTokenSeconds = 30 * 86_400;
export const refreshTokenPrefix = "hrr_";

export function newRefreshToken(
  { grantId, resources }: Pick<RefreshToken, "grantId" | "resources">,
  nowSeconds: number,
): { token: string; record: RefreshToken } {
  const token = newOpaqueToken(refreshTokenPrefix);
  const record: RefreshToken = {
    digest: tokenDigest(token),
    grantId,
    resources,
    createdAt: nowSeconds,
    expiresAt: nowSeconds + refreshTokenSeconds,
    usedAt: null,
    sealedAnswer: null,
  };
  return { token, record };
}

/** The app that gets the token, with its current registration, and the resources that the request names. */
interface Issued extends Pick<ClientRequest, "resources"> {
  readonly client: Pick<ClientRequest["client"], "id" | "scopes">;
}

interface IssueDeps extends Pick<TokenDeps, "issuer"> {
  readonly tokens: Pick<TokenDeps["tokens"], "issueForGrant">;
}

/**
 * Returns the token response. `scope` narrows the access token within the grant and the app's current registration. The
 * requested resources narrow it within those of the refresh token. Throws `invalid_scope` or `invalid_target`.
 */
export async function signedAnswer(
  grant: ApiKeyRecord,
  scope: string | undefined,
  refreshToken: { token: string; record: Pick<RefreshToken, "resources"> },
  { client, resources: named }: Issued,
  { tokens, issuer }: IssueDeps,
): Promise<TokenAnswer> {
  const resources = narrowedResources(named, refreshToken.record.resources, issuer());
  if ("fault" in resources) throw new OAuthError("invalid_target", resources.fault);
  const granted = grant.scopes.filter((name) => client.scopes.includes(name));
  const scopes = requestedScopes(scope, { scopes: granted });
  if ("fault" in scopes) throw new OAuthError("invalid_scope", scopes.fault);
  if (scopes.length === 0) {
    throw new OAuthError(
      "invalid_scope",
      "The app may no longer have any of the scopes that were allowed.",
      "no_scope",
    );
  }
  const {
    accessToken,
    expiresIn,
    scope: given,
  } = await tokens.issueForGrant({
    grant,
    personId: grant.personId ?? "",
    appId: client.id,
    scopes,
    resources,
    expiresIn: accessTokenSeconds,
  });
  return {
    access_token: accessToken,
    token_type: "Bearer",
    expires_in: expiresIn,
    refresh_token: refreshToken.token,
    scope: given,
  };
}

/**
 * Creates a grant with its first tokens, without storing them: the store does that together with redeeming the code.
 * Throws `invalid_scope` if the app is no longer registered for any of the scopes.
 */
export async function newGrant(
  {
    personId,
    accountId,
    membershipId,
    environment,
    scopes,
    tools,
    quotas,
    resources,
  }: Authorization & Pick<RefreshToken, "resources">,
  request: ClientRequest,
  deps: TokenDeps,
): Promise<{ grant: ApiKeyRecord; refreshToken: RefreshToken; answer: TokenAnswer }> {
  const { client, origin } = request;
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
    // The grant itself is never presented, so it has no secret: its tokens contain its id.
    digest: id,
    prefix: "",
    last4: "",
    scopes,
    createdBy: personId,
    parentId: membershipCredentialId(membershipId, environment),
    limitId: id,
    createdAt: origin.nowSeconds,
    ...newAndUnbounded,
    tools,
    quotas: quotas ?? [],
  };
  const refreshToken = newRefreshToken({ grantId: id, resources }, origin.nowSeconds);
  const answer = await signedAnswer(grant, undefined, refreshToken, request, deps);
  return { grant, refreshToken: refreshToken.record, answer };
}
