// Creates the code that an app gets when a person allows it (RFC 6749, 4.1.2).
import type { Authorization, AuthorizationCode } from "../../domain/people/oauth.ts";
import type { OwnMembership } from "../../domain/people/person.ts";
import { newOpaqueToken, tokenDigest } from "../../policy/credentials/opaque-token.ts";
import type { ValidRequest } from "./flow.ts";

/** Lifetime of a code in seconds, long enough for the app's server to redeem the code. */
export const codeSeconds = 60;

/** Creates a code. Only the app sees `code`; `record` is stored. */
export function newCode(
  { app, scopes, tools, quotas, resources, parameters }: ValidRequest & Pick<Authorization, "tools" | "quotas">,
  { id, personId, accountId }: OwnMembership,
  nowSeconds: number,
): { code: string; record: AuthorizationCode } {
  const code = newOpaqueToken("");
  const record: AuthorizationCode = {
    digest: tokenDigest(code),
    appId: app.id,
    personId,
    accountId,
    membershipId: id,
    environment: app.environment,
    scopes,
    tools,
    quotas,
    resources,
    redirectUri: parameters.get("redirect_uri") ?? null,
    codeChallenge: parameters.get("code_challenge") ?? null,
    createdAt: nowSeconds,
    expiresAt: nowSeconds + codeSeconds,
    grantId: null,
  };
  return { code, record };
}
