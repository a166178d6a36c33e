// The endpoints for people on a real socket and database, without the rest of the server; each answer is held to its description.

import { expect } from "bun:test";
import { OneTimeLinks } from "../../src/accounts/links.ts";
import { OwnAccount } from "../../src/accounts/own-account.ts";
import { bufferedBytes } from "../../src/base/bytes/buffered-bytes.ts";
import { commandLineAppId } from "../../src/domain/people/app.ts";
import type { MailMessage } from "../../src/domain/people/mail.ts";
import { type Membership, membershipCredentialId, type Person } from "../../src/domain/people/person.ts";
import type { Role } from "../../src/domain/people/role.ts";
import { accountScopes, type Scope, scopes } from "../../src/domain/scope.ts";
import { adminKeyRoutes } from "../../src/http/api/admin/key-routes.ts";
import { adminPeopleRoutes } from "../../src/http/api/admin/people-routes.ts";
import { keyRoutes } from "../../src/http/api/key-routes.ts";
import { auditRoutes } from "../../src/http/api/people/audit-routes.ts";
import { invitationRoutes } from "../../src/http/api/people/invitation-routes.ts";
import { memberRoutes } from "../../src/http/api/people/member-routes.ts";
import { sessionRoutes } from "../../src/http/api/people/session-routes.ts";
import { isOwnOrigin } from "../../src/http/exchange/browser.ts";
import { trustedProxies } from "../../src/http/exchange/client-address.ts";
import { Locality } from "../../src/http/exchange/locality.ts";
import { RouteTable } from "../../src/http/exchange/route-table.ts";
import { startHttpServer } from "../../src/http/exchange/server.ts";
import { SessionPrincipals } from "../../src/http/exchange/session-principal.ts";
import { openApiDocument } from "../../src/http/reference/openapi.ts";
import { SqlPeopleUsage } from "../../src/ledger/usage/people-usage.ts";
import { MemoryLimits } from "../../src/limits/memory/memory-limits.ts";
import { OpenRequests } from "../../src/policy/open-requests.ts";
import { auditEvent } from "../../src/policy/records/audit.ts";
import { Throttle } from "../../src/policy/throttle.ts";
import { answerMismatches } from "../contract/json-schema.ts";
import { openTestPeople } from "./people.ts";
import { openPolicy } from "./policy.ts";
import { keyRecordFor } from "./principal.ts";
import { anyAddress } from "./unlimited.ts";

// biome-ignore lint/suspicious/noExplicitAny: each test says what must be in it
export type Answer = { status: number; headers: Headers; body: any };

export interface ApiMember {
  person: Person;
  membership: Membership;
  sessionId: string;
  /** What a page of ours sends. */
  headers: Record<string, string>;
}

export type PeopleApi = Awaited<ReturnType<typeof openPeopleApi>>;

const publicOrigin = "https://headrace.example";

export async function openPeopleApi({ mailing = false } = {}) {
  const world = await openTestPeople();
  const { db, people, sessionStore, sessions, keys, accounts, audit, clock, accountId } = world;
  const { authenticator, tokens, log, close } = await openPolicy({ db, keys, audit, clock });
  const limits = new MemoryLimits({
    clock,
    ledger: { readTotals: async (_span, use) => use({ requests: 0, tokens: 0, nanoUsd: 0, firstAt: undefined }) },
  });
  const sent: MailMessage[] = [];
  const mail = { send: async (message: MailMessage) => void sent.push(message) };
  const links = new OneTimeLinks({
    ...{ people, sessions, clock, limits, log, mail: mailing ? mail : undefined },
    publicOrigin: () => publicOrigin,
    firstAccountId: async () => accountId,
  });
  const requestLimits = () => ({ bodyBytes: 10_000, depth: 8 });
  const changed = () => authenticator.invalidate();
  const throttle = new Throttle(limits);
  const stores = { people, sessionStore, sessions, accounts, keys };
  const keptAnswers = { forgetAccounts: async () => {} };
  const connectFlow = { farewell: async () => () => {} };
  const usage = { peopleUsage: new SqlPeopleUsage(db), summedLedger: { flush: async () => {} } };
  const deps = {
    ...stores,
    ...usage,
    links,
    limits,
    throttle,
    clock,
    requestLimits,
    changed,
    keptAnswers,
    connectFlow,
  };
  const routes = [
    ...sessionRoutes({ ...deps, ownAccount: new OwnAccount({ people, limits, clock }) }),
    ...memberRoutes(deps),
    ...invitationRoutes(deps),
    ...auditRoutes({ audit, clock, requestLimits }),
    ...adminPeopleRoutes(deps),
    ...adminKeyRoutes({ ...deps, pepper: new Uint8Array(32) }),
    ...keyRoutes({
      ...{ keys, pepper: new Uint8Array(32), throttle, limits, clock, requestLimits, changed },
      keyRotations: { isDue: async () => false },
    }),
  ];
  const server = startHttpServer({
    openRequests: new OpenRequests(() => 1_000, bufferedBytes),
    addressThrottle: anyAddress,
    ...{ hostname: "127.0.0.1", port: 0, routes, authenticator, log, clock },
    sessions: new SessionPrincipals({
      ...{ sessions, authenticator, environment: "dev" },
      isOwnOrigin: (origin, req) => isOwnOrigin(origin, req, undefined, new Locality([])),
    }),
    trustedProxies: trustedProxies([]),
    locality: new Locality([]),
    baseUrl: () => "https://ai.example.com/v1",
    corsOrigins: () => [],
  });
  const url = `http://127.0.0.1:${server.port}`;
  const document = openApiDocument(routes, "1.0.0");
  const table = new RouteTable(routes);

  /** What is answered must be what the OpenAPI document says. */
  function hold(method: string, path: string, status: number, body: unknown): void {
    const route = table.find(method, path.split("?")[0] ?? "")?.route;
    if (!route) throw new Error(`No route ${method} ${path}`);
    const described = route.path.replace(/:(\w+)/g, "{$1}");
    expect(answerMismatches(document, [method, described, status], body)).toEqual([]);
  }

  async function send(headers: Record<string, string>, path: string, method = "GET", body?: unknown): Promise<Answer> {
    const response = await fetch(url + path, {
      method,
      headers: { ...headers, ...(body === undefined ? {} : { "content-type": "application/json" }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const answer = { status: response.status, headers: response.headers, body: await response.json() };
    hold(method, path, answer.status, answer.body);
    return answer;
  }

  async function signIn(person: Person, inAccount?: string) {
    const { session, cookie, csrfToken } = await world.startSession(person, inAccount);
    return { sessionId: session.id, headers: { cookie, origin: url, "x-csrf-token": csrfToken } };
  }

  async function issue(scopesOf: readonly Scope[], more: Parameters<typeof keyRecordFor>[0]) {
    const record = keyRecordFor({
      ...{ accountId, environment: "dev", scopes: scopesOf, createdAt: clock.nowSeconds(), ...more },
    });
    const origin = { nowSeconds: clock.nowSeconds(), clientAddress: null, requestId: null };
    const about = { accountId: record.accountId, targetId: record.id, detail: {} };
    await keys.insertKey(record, auditEvent("key.created", { type: "operator" }, origin, about));
    return record;
  }

  let made = 0;
  return {
    ...{ ...world, url, send, signIn, sent, authenticator },

    async addSignedIn(
      role: Role,
      { isOperator = false, inAccount = accountId, password = "" } = {},
    ): Promise<ApiMember> {
      const email = `${role}-${++made}@example.test`;
      const person = await world.addPerson({ email, isOperator, ...(password === "" ? {} : { password }) });
      const membership = await world.addMember(person, role, inAccount);
      return { person, membership, ...(await signIn(person, inAccount)) };
    },

    /** Headers with a token of an app that the member allowed; `headrace login` unless said otherwise. */
    async allow(
      { person, membership }: ApiMember,
      appId = commandLineAppId,
      granted: readonly Scope[] = accountScopes,
    ) {
      const id = `grt_${Bun.randomUUIDv7()}`;
      const grant = await issue(granted, {
        ...{ id, digest: id, kind: "grant", appId, personId: person.id, accountId: membership.accountId },
        parentId: membershipCredentialId(membership.id, "dev"),
      });
      const { accessToken } = await tokens.issueForGrant({
        ...{ grant, personId: person.id, appId, scopes: granted, resources: ["/v1"], expiresIn: 600 },
      });
      return { authorization: `Bearer ${accessToken}` };
    },

    /** Headers with a token that was made from an API key of the first account. */
    async keyHeaders(granted: readonly Scope[] = scopes) {
      const record = await issue(granted, { id: `key_${Bun.randomUUIDv7()}` });
      const chain = await keys.findChainById(record.id);
      if (!chain) throw new Error("The key is not there.");
      const limitsOfNothing = { requests: [], tokens: [], quotas: [] };
      const { accessToken } = await tokens.issue({
        principal: { ...chain, environment: "dev", scopes: new Set(granted), appId: null, limits: limitsOfNothing },
        expiresIn: 600,
        scope: granted.join(" "),
        origin: { nowSeconds: clock.nowSeconds(), clientAddress: null, requestId: null },
      });
      return { authorization: `Bearer ${accessToken}` };
    },

    async closeAll() {
      await server.close();
      await close();
      await world.close();
    },
  };
}
