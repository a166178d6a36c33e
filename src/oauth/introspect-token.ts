// Token introspection (RFC 7662): an app asks whether one of its own tokens is valid, and for what.
import { keyStatus } from "../domain/principal.ts";
import { type FindTokenDeps, type FoundToken, findToken } from "./find-token.ts";
import { OAuthError } from "./oauth-error.ts";
import { type ClientRequest, required } from "./token/stage.ts";

export interface IntrospectionDeps extends FindTokenDeps {
  issuer(): string;
}

/** The introspection response (RFC 7662, 2.2). */
export type Introspection =
  | { active: false }
  | {
      active: true;
      scope: string;
      client_id: string;
      sub: string;
      iss: string;
      exp: number;
      iat?: number;
      /** Only for access tokens; left out for refresh tokens. */
      token_type?: "Bearer";
      aud?: string | string[];
      jti?: string;
    };

/**
 * Answers an introspection request. Throws `invalid_client` for a public client, which cannot prove its identity.
 * Otherwise, anybody who finds a token could ask what it permits.
 */
export async function introspectToken(request: ClientRequest, deps: IntrospectionDeps): Promise<Introspection> {
  const { client, origin } = request;
  if (client.type === "public") {
    throw new OAuthError(
      "invalid_client",
      "Only an app with a secret may ask about its tokens.",
      "public_introspection",
    );
  }
  const text = required(request, "token");
  const found = await findToken(text, client.id, deps);
  if (!found || !isGood(found, origin.nowSeconds)) return { active: false };
  const [grant] = found.grant.keys;
  const common = { active: true, client_id: client.id, sub: grant.personId ?? "", iss: deps.issuer() } as const;
  if ("refresh" in found) {
    const { createdAt: iat, expiresAt: exp } = found.refresh;
    const scope = grant.scopes.filter((name) => client.scopes.includes(name)).join(" ");
    return { ...common, scope, exp, iat };
  }
  const { scopes, expiresAt: exp } = found.access;
  const scope = grant.scopes.filter((name) => scopes.has(name)).join(" ");
  return { ...common, scope, exp, token_type: "Bearer", ...claimsOf(text) };
}

function isGood({ grant, ...token }: FoundToken, nowSeconds: number): boolean {
  if (grant.account.status !== "active") return false;
  if (grant.keys.some((key) => keyStatus(key, nowSeconds) !== "active")) return false;
  // An access token's signature and expiry were verified when it was read.
  if ("access" in token) return true;
  return token.refresh.usedAt === null && token.refresh.expiresAt > nowSeconds;
}

/** Returns the claims of a verified token. */
function claimsOf(token: string): { iat?: number; jti?: string; aud?: string | string[] } {
  const [, payload = ""] = token.split(".");
  const { iat, jti, aud } = JSON.parse(Buffer.from(payload, "base64url").toString("utf8")) as Record<string, unknown>;
  return {
    ...(typeof iat === "number" ? { iat } : {}),
    ...(typeof jti === "string" ? { jti } : {}),
    ...(typeof aud === "string" || isTexts(aud) ? { aud } : {}),
  };
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((one) => typeof one === "string");
}
