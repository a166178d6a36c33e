// The authorization endpoint and the device page on real stores and real sockets, for browsers that behave or do not.

import { expect } from "bun:test";
import { createHash } from "node:crypto";
import { bufferedBytes } from "../../src/base/bytes/buffered-bytes.ts";
import type { App, PublishedApp } from "../../src/domain/people/app.ts";
import type { AuthorizationCode, DeviceCode } from "../../src/domain/people/oauth.ts";
import type { Person } from "../../src/domain/people/person.ts";
import type { Role } from "../../src/domain/people/role.ts";
import type { McpServer } from "../../src/domain/tools/mcp-server.ts";
import { trustedProxies } from "../../src/http/exchange/client-address.ts";
import { Locality } from "../../src/http/exchange/locality.ts";
import { startHttpServer } from "../../src/http/exchange/server.ts";
import { authorizeRoutes } from "../../src/http/pages/authorize-routes.ts";
import { deviceRoutes } from "../../src/http/pages/device-routes.ts";
import { MemoryLimits } from "../../src/limits/memory/memory-limits.ts";
import type { Authenticator } from "../../src/policy/credentials/authenticate.ts";
import { OpenRequests } from "../../src/policy/open-requests.ts";
import { SqlAppStore } from "../../src/storage/tables/people/app-store.ts";
import { SqlOAuthStore } from "../../src/storage/tables/people/oauth-store.ts";
import { SqlOutsideClientStore } from "../../src/storage/tables/people/outside-client-store.ts";
import { testEvent } from "../support/credentials.ts";
import { hiddenIn, partsOf } from "../support/page-parts.ts";
import { openTestPeople, type StartedSession } from "../support/people.ts";
import { keyRecordFor, noSessions } from "../support/principal.ts";
import { anyAddress } from "../support/unlimited.ts";

export const issuer = "https://headrace.example";
export const challenge = createHash("sha256").update("v".repeat(43)).digest("base64url");

export type AuthorizeServer = Awaited<ReturnType<typeof startAuthorizeServer>>;

/** `X-Forwarded-For` is believed. Forms come from `ownOrigin`; pages of any other origin would be allowed by CORS wherever that is for APIs. */
export async function startAuthorizeServer() {
  const people = await openTestPeople();
  const { db, clock, accountId } = people;
  const apps = new SqlAppStore(db);
  const oauth = new SqlOAuthStore(db);
  const outsideClients = new SqlOutsideClientStore(db);
  const limits = new MemoryLimits({ clock, ledger: { readTotals: () => Promise.reject(new Error("no quotas here")) } });
  const pages = { sessions: people.sessions, isOwnOrigin: (origin: string) => origin === ownOrigin };
  const formKey = new Uint8Array(32).fill(3);
  const deps = {
    ...pages,
    apps,
    outsideClients,
    oauth,
    keys: people.keys,
    limits,
    issuer: () => issuer,
    formKey,
    clock,
  };
  /** MCP servers by their names. */
  const tools = new Map<string, McpServer>();
  const mcpServers = { all: () => [...tools.values()] };
  const lines: string[] = [];
  const write = (event: string, fields?: unknown) => void lines.push(JSON.stringify({ event, fields }));
  const server = startHttpServer({
    openRequests: new OpenRequests(() => 1_000, bufferedBytes),
    addressThrottle: anyAddress,
    hostname: "127.0.0.1",
    port: 0,
    routes: [...authorizeRoutes({ ...deps, mcpServers }), ...deviceRoutes({ ...deps, mcpServers, environment: "dev" })],
    authenticator: {} as Authenticator,
    sessions: noSessions,
    trustedProxies: trustedProxies(["127.0.0.1"]),
    locality: new Locality([]),
    baseUrl: () => "https://ai.example.com/v1",
    corsOrigins: () => ["*"],
    log: { info: write, warn: write, error: write },
    clock,
  });
  const ownOrigin = `http://127.0.0.1:${server.port}`;
  const browser = (session?: StartedSession) => new TestBrowser(ownOrigin, session);
  let made = 0;

  return {
    ...people,
    apps,
    outsideClients,
    tools,
    oauth,
    url: ownOrigin,
    browser,
    logText: () => lines.join("\n"),

    async addApp(changes: Partial<App> = {}): Promise<App> {
      const app: App = {
        ...{ id: `app_${++made}`, accountId, personId: null, name: "Notes", homepageUrl: "https://notes.example/" },
        ...{ type: "public", redirectUris: ["https://notes.example/callback"], scopes: ["chat:read", "chat:write"] },
        ...{
          environment: "live",
          tools: null,
          requirePkce: true,
          suspendedBy: null,
          secrets: [],
          createdBy: null,
          createdAt: clock.nowSeconds(),
        },
        ...changes,
      };
      await apps.insertApp(app, testEvent(clock.nowSeconds()));
      return app;
    },

    /** Somebody new, who is a member of the first account, or of those given. */
    async signIn(email: string, accounts: readonly string[] = [accountId], role: Role = "member") {
      const person = await people.addPerson({ email });
      for (const account of accounts) await people.addMember(person, role, account);
      return { person, browser: browser(await people.startSession(person)) };
    },

    /** Does it once, between the moment at which a form's session was found and what the form asks for. */
    meanwhile(work: () => Promise<unknown>): void {
      const findApp = apps.findApp.bind(apps);
      apps.findApp = async (id) => {
        apps.findApp = findApp;
        await work();
        return findApp(id);
      };
    },

    async codeOf(location: string | null): Promise<AuthorizationCode | undefined> {
      const code = new URL(location ?? "").searchParams.get("code") ?? "";
      return oauth.findCode(createHash("sha256").update(code).digest("hex"));
    },

    async countCodes(): Promise<number> {
      const [row] = await db`SELECT count(*) AS count FROM authorization_codes`;
      return Number(row.count);
    },

    /** Redeems a code as the token endpoint does. */
    async redeem(code: AuthorizationCode): Promise<void> {
      const id = `grt_${++made}`;
      const { personId, accountId: inAccount, environment, scopes, membershipId, appId } = code;
      const grant = keyRecordFor({
        ...{ id, kind: "grant", personId, appId, accountId: inAccount, environment, scopes },
        ...{ digest: id, limitId: id, parentId: `${membershipId}_${environment}`, createdAt: clock.nowSeconds() },
      });
      const now = clock.nowSeconds();
      const token = {
        digest: `token of ${id}`,
        grantId: id,
        resources: ["/v1"],
        createdAt: now,
        expiresAt: now + 86_400,
      };
      const event = { ...testEvent(now), action: "grant.created" as const, accountId: inAccount };
      const refreshToken = { ...token, usedAt: null, sealedAnswer: null };
      await oauth.redeemCode(code.digest, { grant, refreshToken }, { issued: event, replayed: testEvent(now) });
    },

    async addDeviceCode(userCode: string, app: Pick<PublishedApp, "id">, changes: Partial<DeviceCode> = {}) {
      const now = clock.nowSeconds();
      await oauth.insertDeviceCode({
        ...{
          digest: `digest of ${userCode} ${++made}`,
          userCode,
          appId: app.id,
          environment: "live",
          resources: ["/v1"],
          tools: null,
          quotas: null,
        },
        ...{ scopes: ["chat:write"], createdAt: now, expiresAt: now + 600, intervalSeconds: 5, polledAt: null },
        ...{ state: "pending", personId: null, accountId: null, membershipId: null, grantId: null },
        ...changes,
      });
    },

    async membershipOf(person: Person) {
      const [first] = await people.people.membershipsOf(person.id);
      if (!first) throw new Error(`${person.email} is a member of nothing.`);
      return first;
    },

    async close() {
      server.close();
      await people.close();
    },
  };
}

/** Follows nothing; sends forms as browsers do from pages with `Referrer-Policy: no-referrer`. */
class TestBrowser {
  readonly #origin: string;
  readonly session: StartedSession | undefined;

  constructor(origin: string, session: StartedSession | undefined) {
    this.#origin = origin;
    this.session = session;
  }

  get(path: string, headers: Record<string, string> = {}, method = "GET"): Promise<Response> {
    return fetch(this.#origin + path, { method, redirect: "manual", headers: { ...this.#cookie(), ...headers } });
  }

  /** `fields`: in place of, or besides, those that the page's form has. */
  async submit(page: Response, fields: Record<string, string> = {}, headers: Record<string, string> = {}) {
    const form = formOf(await page.text());
    return this.post(form.action, { ...form.fields, ...fields }, headers);
  }

  post(path: string, fields: Record<string, string>, headers: Record<string, string> = {}): Promise<Response> {
    return fetch(this.#origin + path, {
      method: "POST",
      redirect: "manual",
      headers: { origin: "null", "sec-fetch-site": "same-origin", ...this.#cookie(), ...headers },
      body: new URLSearchParams(fields),
    });
  }

  #cookie(): Record<string, string> {
    return this.session ? { cookie: this.session.cookie } : {};
  }
}

/** The form of a page, apart from that of the menu, with the fields that are sent whatever the person does. */
export function formOf(text: string): { action: string; fields: Record<string, string> } {
  const form = partsOf(text.slice(text.indexOf("<main"))).forms.find(({ method }) => method === "post");
  if (!form) throw new Error(`There is no form: ${text.slice(0, 500)}`);
  return { action: form.action ?? "", fields: hiddenIn(form) };
}

/** `changes`: undefined leaves the parameter out. */
export function authorizePath(app: Pick<App, "id">, changes: Record<string, string | undefined> = {}): string {
  const parameters = {
    ...{ response_type: "code", client_id: app.id, redirect_uri: "https://notes.example/callback" },
    ...{ state: "s1", code_challenge: challenge, code_challenge_method: "S256" },
    ...changes,
  };
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined) query.set(name, value);
  return `/oauth/authorize?${query}`;
}

/** The parameters that an answer brings the app. */
export function answered(response: Response): Record<string, string> {
  const location = response.headers.get("location");
  if (response.status !== 303 || location === null) throw new Error(`No redirect: ${response.status}`);
  return Object.fromEntries(new URL(location).searchParams);
}

/** A page of ours that leads nowhere. */
export async function expectErrorPage(response: Response, status = 400): Promise<string> {
  expect([response.status, response.headers.get("location")]).toEqual([status, null]);
  expect(response.headers.get("content-type")).toBe("text/html; charset=utf-8");
  expectPageHeaders(response);
  return response.text();
}

export function expectPageHeaders({ headers }: Response): void {
  expect(headers.get("referrer-policy")).toBe("no-referrer");
  expect(headers.get("cache-control")).toBe("no-store");
  expect(headers.get("x-frame-options")).toBe("DENY");
  expect(headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
  expect(headers.get("access-control-allow-origin")).toBeNull();
}
