// Whose consent is there already, and for which of the person's accounts it can be given.
import type { OAuthStore } from "../../domain/people/oauth.ts";
import { membershipCredentialId, type OwnMembership } from "../../domain/people/person.ts";
import type { SignedIn } from "../../domain/people/session.ts";
import { type KeyStore, keyStatus } from "../../domain/principal.ts";
import { apiResource } from "../../policy/credentials/resources.ts";
import type { ValidRequest } from "./flow.ts";

/** Accounts that the person can act for; nobody can act for one that is suspended. */
export function usableMemberships({ memberships }: Pick<SignedIn, "memberships">): OwnMembership[] {
  return memberships.filter(({ accountStatus }) => accountStatus === "active");
}

/** Whether the person can act for the account in that environment: a grant hangs on that credential. */
export async function hasCredential(
  { id }: Pick<OwnMembership, "id">,
  environment: string,
  keys: Pick<KeyStore, "findChainById">,
  nowSeconds: number,
): Promise<boolean> {
  const chain = await keys.findChainById(membershipCredentialId(id, environment));
  if (chain?.account.status !== "active") return false;
  return chain.keys.every((key) => keyStatus(key, nowSeconds) === "active");
}

/**
 * Whether the person allowed the app all of it, for the only account there is, and the app can prove that it is this app: by
 * a secret, at an address that nobody else can take (RFC 8252, 8.6; RFC 9700, 4.11.1). Tools are asked for each time: at
 * which servers they were allowed is no part of what is kept of that.
 */
export async function isAllowedAlready(
  { app, redirectUri, scopes, resources }: ValidRequest,
  memberships: readonly OwnMembership[],
  oauth: Pick<OAuthStore, "allowedScopes">,
  nowSeconds: number,
): Promise<boolean> {
  const [membership] = memberships;
  if (!membership || memberships.length > 1) return false;
  if (resources.some((one) => one !== apiResource)) return false;
  if (app.type !== "confidential" || !redirectUri.startsWith("https://")) return false;
  const { id: membershipId, personId, accountId } = membership;
  const { id: appId, environment } = app;
  const allowed = await oauth.allowedScopes({ appId, personId, accountId, membershipId, environment }, nowSeconds);
  return scopes.every((scope) => allowed.includes(scope));
}
