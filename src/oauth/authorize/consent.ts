// Finds earlier consent of a person, and the accounts for which the person can consent.
import type { App } from "../../domain/people/app.ts";
import type { Authorization, OAuthStore } from "../../domain/people/oauth.ts";
import { membershipCredentialId, type OwnMembership } from "../../domain/people/person.ts";
import type { SignedIn } from "../../domain/people/session.ts";
import { type KeyStore, keyStatus } from "../../domain/principal.ts";
import { apiResource } from "../../policy/credentials/resources.ts";
import type { ValidRequest } from "./flow.ts";

/** Returns the accounts that the person can act for, without suspended ones. */
export function usableMemberships({ memberships }: Pick<SignedIn, "memberships">): OwnMembership[] {
  return memberships.filter(({ accountStatus }) => accountStatus === "active");
}

/** Reports whether the membership has a valid credential in that environment, on which a grant depends. */
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
 * Returns the earlier grant if no further consent is needed. The person must have allowed the app everything requested,
 * for their only account. The app must prove its identity by a secret. Its redirect URI must be https, so that no other
 * app can take it (RFC 8252, 8.6; RFC 9700, 4.11.1). MCP servers need consent each time, because the grant does not
 * store at which of them tokens may be used.
 */
export async function allowedAlready(
  { app, redirectUri, scopes, resources }: ValidRequest,
  memberships: readonly OwnMembership[],
  oauth: Pick<OAuthStore, "allowedBefore">,
  nowSeconds: number,
): Promise<Pick<Authorization, "tools"> | undefined> {
  const [membership] = memberships;
  if (!membership || memberships.length > 1) return undefined;
  if (resources.some((one) => one !== apiResource)) return undefined;
  if (app.type !== "confidential" || !redirectUri.startsWith("https://")) return undefined;
  const allowed = await oauth.allowedBefore(ownerOf(app, membership), nowSeconds);
  return scopes.every((scope) => allowed.scopes.includes(scope)) ? allowed : undefined;
}

/** Returns the tools that the person allowed the app before; null for all, or if there is no grant. */
export async function toolsBefore(
  app: Pick<App, "id" | "environment">,
  membership: OwnMembership | undefined,
  oauth: Pick<OAuthStore, "allowedBefore">,
  nowSeconds: number,
): Promise<Authorization["tools"]> {
  return membership ? (await oauth.allowedBefore(ownerOf(app, membership), nowSeconds)).tools : null;
}

function ownerOf({ id: appId, environment }: Pick<App, "id" | "environment">, membership: OwnMembership) {
  const { id: membershipId, personId, accountId } = membership;
  return { appId, personId, accountId, membershipId, environment };
}
