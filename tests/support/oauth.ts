// An authorization server on a real socket and database, with people, apps and a clock that a test controls.

import { createHash, randomBytes } from "node:crypto";
import { bufferedBytes } from "../../src/base/bytes/buffered-bytes.ts";
import type { App } from "../../src/domain/people/app.ts";
import type { DeviceCode } from "../../src/domain/people/oauth.ts";
import { membershipCredentialId } from "../../src/domain/people/person.ts";
import { oauthRoutes } from "../../src/http/api/oauth-routes.ts";
import { trustedProxies } from "../../src/http/exchange/client-address.ts";
import { Locality } from "../../src/http/exchange/locality.ts";
import type { ScopedRoute } from "../../src/http/exchange/route.ts";
import { startHttpServer } from "../../src/http/exchange/server.ts";
import { MemoryLimits } from "../../src/limits/memory/memory-limits.ts";
import { ClientThrottle } from "../../src/oauth/client/client-throttle.ts";
import { tokenDigest } from "../../src/policy/credentials/opaque-token.ts";
import { OpenRequests } from "../../src/policy/open-requests.ts";
import { SqlAppStore } from "../../src/storage/tables/people/app-store.ts";
import { SqlOAuthStore } from "../../src/storage/tables/people/oauth-store.ts";
import { SqlOutsideClientStore } from "../../src/storage/tables/people/outside-client-store.ts";
import { audience, issuer, openCredentials, sealingKey, testEvent } from "./credentials.ts";
import { basicHeader, refreshFields } from "./oauth-apps.ts";
import { keyRecordFor, noSessions } from "./principal.ts";
import { anyAddress } from "./unlimited.ts";

export type OAuthServer = Awaited<ReturnType<typeof startOAuth>>;
export type Fields = Readonly<Record<string, string>>;

export interface OAuthReply {
  status: number;
  headers: Headers;
  /** `{}` where there is no body. */
  body: Record<string, unknown>;
}

export const secretOf = (appId: string) => `secret of ${appId}: ü+%&`;
export const verifier = randomBytes(32).toString("base64url");
export const challenge = createHash("sha256").update(verifier).digest("base64url");
export const redirectUri = "https://app.example/callback?from=headrace";
export const deviceGrantType = "urn:ietf:params:oauth:grant-type:device_code";

/** `web` and `other` are confidential, `native` and `foreign` public; `mbr_1` is the membership of `usr_1`. */
export async function startOAuth() {
  const all = await openCredentials();
  await all.signingKeys.start();
  const { db, clock, now, accountId, authenticator, tokens, keys, refusals, log } = all;
  const oauth = new SqlOAuthStore(db);
  const apps = new SqlAppStore(db);
  const limits = new MemoryLimits({ clock, ledger: { readTotals: () => Promise.reject(new Error("no quotas here")) } });
  for (const [id, type] of [
    ["web", "confidential"],
    ["other", "confidential"],
    ["native", "public"],
    ["foreign", "public"],
  ] as const) {
    const app: App = {
      ...{ id, accountId, personId: null, name: `The ${id} app`, homepageUrl: null, type, environment: "live" },
      ...{ redirectUris: [redirectUri], scopes: ["chat:write", "models:read", "usage:read"] },
      ...{
        tools: null,
        requirePkce: type === "public",
        secrets: [],
        suspendedBy: null,
        createdBy: null,
        createdAt: now.seconds,
      },
    };
    await apps.insertApp(app, testEvent(now.seconds));
  }
  for (const environment of ["live", "dev"] as const) {
    const id = membershipCredentialId("mbr_1", environment);
    const membership = { id, kind: "membership", accountId, environment, personId: "usr_1", role: "member" } as const;
    await keys.insertKey(keyRecordFor(membership), testEvent(now.seconds));
  }
  const changes = { count: 0 };
  const probe: ScopedRoute = {
    method: "GET",
    path: "/v1/probe",
    access: "models:read",
    doc: { operationId: "probe", summary: "", tag: "Service", response: { description: "" } },
    handle: (_, principal) => Response.json({ app: principal.appId, scopes: [...principal.scopes] }),
  };
  const tools = (path: string): ScopedRoute => ({ ...probe, path, access: "tools:use" });
  const server = startHttpServer({
    openRequests: new OpenRequests(() => 1_000, bufferedBytes),
    addressThrottle: anyAddress,
    ...{ hostname: "127.0.0.1", port: 0, authenticator, log, clock, sessions: noSessions },
    baseUrl: () => `${issuer}/v1`,
    routes: [
      probe,
      tools("/mcp"),
      tools("/mcp/:server"),
      ...oauthRoutes({
        ...{ oauth, apps, keys, tokens, refusals, clock, sealingKey, environment: "live" },
        clientThrottle: new ClientThrottle(limits),
        outsideClients: new SqlOutsideClientStore(db),
        mayRegister: true,
        matchesSecret: ({ id }, secret) => secret === secretOf(id),
        issuer: () => issuer,
        audience: () => audience,
        changed: () => {
          changes.count++;
          authenticator.invalidate();
        },
      }),
    ],
    trustedProxies: trustedProxies(["127.0.0.0/8"]),
    locality: new Locality([]),
    corsOrigins: () => ["https://page.example"],
  });
  const url = `http://127.0.0.1:${server.port}`;

  async function post(path: string, fields: Fields | string, headers: Fields = {}): Promise<OAuthReply> {
    const body = typeof fields === "string" ? fields : new URLSearchParams(fields).toString();
    const type = { "content-type": "application/x-www-form-urlencoded" };
    const response = await fetch(url + path, { method: "POST", headers: { ...type, ...headers }, body });
    const text = await response.text();
    return { status: response.status, headers: response.headers, body: text === "" ? {} : JSON.parse(text) };
  }

  let made = 0;
  return {
    ...all,
    ...{ oauth, apps, limits, changes, url, post },
    token: (fields: Fields, headers?: Fields) => post("/oauth/token", fields, headers),
    /** A code as the authorization endpoint makes them. */
    async code(appId = "web", more: Partial<Parameters<SqlOAuthStore["insertCode"]>[0]> = {}): Promise<string> {
      const code = `code-${++made}`;
      await oauth.insertCode(
        {
          ...{ digest: tokenDigest(code), appId, personId: "usr_1", accountId, membershipId: "mbr_1" },
          ...{
            environment: "live",
            scopes: ["chat:write", "models:read"],
            tools: null,
            quotas: null,
            redirectUri,
            codeChallenge: challenge,
          },
          ...{ resources: ["/v1"], createdAt: now.seconds, expiresAt: now.seconds + 60, grantId: null },
          ...more,
        },
        testEvent(now.seconds),
      );
      return code;
    },
    /** A person's word on a device's code. */
    decide(code: DeviceCode, state: "approved" | "denied") {
      const { appId, environment, scopes } = code;
      const authorization = {
        ...{ appId, environment, scopes, tools: null, quotas: null },
        ...{ personId: "usr_1", accountId, membershipId: "mbr_1" },
      };
      const decision = state === "denied" ? { state } : { state, authorization };
      return oauth.decideDeviceCode(code.userCode, decision, testEvent(now.seconds));
    },
    redeem: (code: string, more: Fields = {}, headers: Fields = basic("web")) =>
      post("/oauth/token", redemption(code, more), headers),
    rotate: (token: unknown, more: Fields = {}, headers: Fields = basic("web")) =>
      post("/oauth/token", refreshFields(token, more), headers),
    /** Ids of grants that have not ended. */
    async liveGrants(): Promise<string[]> {
      const rows: { id: string }[] = await db`SELECT id FROM api_keys WHERE kind = 'grant' AND revoked = 0`;
      return rows.map(({ id }) => id);
    },
    /** Status of an API request with an access token, or of one at `path`. */
    async probe(accessToken: unknown, path = "/v1/probe"): Promise<number> {
      const headers = { authorization: `Bearer ${String(accessToken)}` };
      return (await fetch(`${url}${path}`, { headers })).status;
    },
    /** `grant.…` events, oldest first. */
    async grantEvents() {
      const events = await all.audit.list({}, { after: undefined, limit: 100 });
      return events.filter(({ action }) => action.startsWith("grant.")).reverse();
    },
    async close() {
      server.close();
      await all.close();
    },
  };
}

export const basic = (id: string, secret = secretOf(id)) => basicHeader(id, secret);

export const redemption = (code: string, more: Fields = {}): Fields => ({
  ...{ grant_type: "authorization_code", code, redirect_uri: redirectUri, code_verifier: verifier },
  ...more,
});

export const invalidGrant = [400, "invalid_grant"];

export const times = <Value>(count: number, make: (n: number) => Value) =>
  Array.from({ length: count }, (_, n) => make(n));

/** The refusal in short: status and error. */
export const refusal = ({ status, body }: OAuthReply) => [status, body["error"]];
