// Every kind of credential that a request may bring, good and bad, for a running server.
import { generateApiKey } from "../../src/domain/api-key.ts";
import { accountScopes, scopes } from "../../src/domain/scope.ts";
import { addressLimits } from "../../src/policy/address-throttle.ts";
import type { TestServer } from "../support/headrace.ts";
import { registerApp } from "../support/oauth-apps.ts";
import { openServerPeople } from "../support/server-people.ts";
import { addKey } from "./keys.ts";

/** All tests are of one address. How often it may ask is a test of its own. */
export const unlimited = Object.fromEntries(Object.keys(addressLimits).map((name) => [name, 1e9]));

export const credentialKinds = [
  "operator key",
  "key of an account",
  "token of a key",
  "owner's session",
  "operator's session",
  "member's session",
  "login of an owner",
  "token of an app",
  "key without scopes",
  "key of another environment",
  "revoked key",
  "expired key",
  "fabricated key",
  "fabricated token",
  "fabricated session",
  "session without its page's token",
  "session of another site's page",
  "two keys",
  "no key at all",
  "visitor of our pages",
  "nothing",
] as const;

export type CredentialKind = (typeof credentialKinds)[number];

/** Those with which something can be done; others are refused wherever somebody has to be known. */
export const goodKinds = credentialKinds.slice(0, 8);

type Headers = Record<string, string>;

const base64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");

/** Well formed in everything but its signature. */
export function fabricatedToken(issuer = "http://127.0.0.1:7545"): string {
  const now = Math.floor(Date.now() / 1000);
  const claims = {
    ...{ iss: issuer, aud: `${issuer}/v1`, sub: "acct_1", client_id: "acct_1", scope: scopes.join(" "), jti: "tok_1" },
    ...{ iat: now - 5, exp: now + 600, key_id: "key_1", environment: "dev" },
  };
  const signature = Buffer.alloc(64, 7).toString("base64url");
  return `${base64({ alg: "ES256", typ: "at+jwt", kid: "sig_1" })}.${base64(claims)}.${signature}`;
}

export const fabricatedCookie = (name = "headrace_session") => `${name}=${Buffer.alloc(32, 7).toString("base64url")}`;

/** Headers for each kind. What was ended by a request that it served is made anew by `renew`. */
export async function openCredentials(server: TestServer) {
  const people = openServerPeople(server);
  const { id: appId } = await registerApp(server);
  const bearer = (secret: string): Headers => ({ authorization: `Bearer ${secret}` });
  const past = Math.floor(Date.now() / 1000) - 60;
  const tokenOf = async (key: string): Promise<string> => {
    const response = await fetch(`${server.url}/v1/auth/token`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ api_key: key }),
    });
    return String(((await response.json()) as { access_token: string }).access_token);
  };
  const session = async (role: "owner" | "member", isOperator = false) =>
    (await people.addMember(role, { isOperator })).headers;

  const makers: Record<CredentialKind, () => Promise<Headers> | Headers> = {
    "operator key": async () => bearer(await addKey(server)),
    "key of an account": async () => ({ "x-api-key": await addKey(server, { scopes: accountScopes }) }),
    "token of a key": async () => bearer(await tokenOf(await addKey(server, { scopes: accountScopes }))),
    "owner's session": () => session("owner"),
    "operator's session": () => session("owner", true),
    "member's session": () => session("member"),
    "login of an owner": async () => (await people.allow(await people.addMember("owner"))).headers,
    "token of an app": async () =>
      (await people.allow(await people.addMember("owner"), { appId, scopes: ["chat:write", "models:read"] })).headers,
    "key without scopes": async () => bearer(await addKey(server, { scopes: [] })),
    "key of another environment": async () => bearer(await addKey(server, { environment: "test" })),
    "revoked key": async () => bearer(await addKey(server, { revokedAt: past })),
    "expired key": async () => bearer(await addKey(server, { expiresAt: past })),
    "fabricated key": () => bearer(generateApiKey("dev")),
    "fabricated token": () => bearer(fabricatedToken(server.url)),
    "fabricated session": () => ({ cookie: fabricatedCookie() }),
    "session without its page's token": async () => (await people.addMember("owner")).reading,
    "session of another site's page": async () => ({ ...(await session("owner")), origin: "https://evil.example" }),
    "two keys": async () => ({ ...bearer(await addKey(server)), "x-api-key": await addKey(server) }),
    "no key at all": () => ({ authorization: "Basic OjpAOjo=" }),
    "visitor of our pages": () => ({ origin: server.url }),
    nothing: () => ({}),
  };
  const made = new Map<CredentialKind, Headers>();
  const renew = async (kind: CredentialKind) => void made.set(kind, await makers[kind]());
  for (const kind of credentialKinds) await renew(kind);
  return { people, appId, headersOf: (kind: CredentialKind) => made.get(kind) ?? {}, renew };
}
