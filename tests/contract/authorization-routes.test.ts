// What people see of the apps that they allowed, and how they take it back, over a real database.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createApp } from "../../src/accounts/manage-apps.ts";
import { commandLineAppId } from "../../src/domain/people/app.ts";
import type { ApiKeyRecord } from "../../src/domain/principal.ts";
import type { Ledger } from "../../src/domain/usage/usage.ts";
import { authorizationRoutes } from "../../src/http/api/people/authorization-routes.ts";
import type { PersonPrincipal, PersonRoute } from "../../src/http/exchange/route.ts";
import { openApiDocument } from "../../src/http/reference/openapi.ts";
import { MemoryLimits } from "../../src/limits/memory/memory-limits.ts";
import { windowsOfKey } from "../../src/policy/limits-of.ts";
import { type Database, openDatabase } from "../../src/storage/sql/database.ts";
import { SqlAccountStore } from "../../src/storage/tables/account-store.ts";
import { SqlAuditLog } from "../../src/storage/tables/audit-log.ts";
import { SqlKeyStore } from "../../src/storage/tables/key-store.ts";
import { SqlAppStore } from "../../src/storage/tables/people/app-store.ts";
import { addGrant } from "../../src/storage/tables/people/grants.ts";
import { SqlOAuthStore } from "../../src/storage/tables/people/oauth-store.ts";
import { testEvent } from "../support/credentials.ts";
import { exchangeFor, incoming, responseOf } from "../support/exchange.ts";
import { accountFor, keyRecordFor, principalFor } from "../support/principal.ts";
import { answerMismatches } from "./json-schema.ts";

const now = 1_800_000_000;
const origin = { nowSeconds: now, clientAddress: null, requestId: null };

let directory: string;
let db: Database;
let keys: SqlKeyStore;
let routes: PersonRoute[];
let appId: string;
let drops: number;
let limits: MemoryLimits;

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "headrace-authorizations-"));
  db = await openDatabase(join(directory, "headrace.db"));
  keys = new SqlKeyStore(db);
  drops = 0;
  const readTotals: Ledger["readTotals"] = async (_span, use) =>
    use({ requests: 0, tokens: 0, nanoUsd: 0, firstAt: undefined });
  limits = new MemoryLimits({ clock: { nowSeconds: () => now, monotonicMs: () => 0 }, ledger: { readTotals } });
  routes = authorizationRoutes({
    oauth: new SqlOAuthStore(db),
    limits,
    clock: { nowSeconds: () => now, monotonicMs: () => 0 },
    requestLimits: () => ({ bodyBytes: 10_000, depth: 8 }),
    changed: () => {
      drops += 1;
    },
  });
  const accounts = new SqlAccountStore(db);
  for (const id of ["acct_1", "acct_2"])
    await accounts.insertAccount(accountFor({ id, name: `Of ${id}` }), testEvent());
  for (const id of ["usr_1", "usr_2"]) {
    const flags = { email_proven: 0, is_operator: 0 };
    await db`INSERT INTO people ${db({ id, email: `${id}@example.com`, name: id, ...flags, created_at: now })}`;
    for (const account of ["acct_1", "acct_2"]) await addMembership(id, account);
  }
  const by = principalFor({ account: accountFor({ id: "acct_2" }) });
  const { app, event } = createApp(
    by,
    { name: "Notes", homepage_url: "https://notes.example/" },
    { pepper: new Uint8Array(32), origin },
  );
  await new SqlAppStore(db).insertApp({ ...app, createdBy: null }, { ...event, actor: { type: "operator" } });
  appId = app.id;
});

afterEach(async () => {
  await db.close();
  rmSync(directory, { recursive: true, force: true });
});

const membershipId = (person: string, account: string) => `mbr_${person}_${account}_live`;

async function addMembership(person: string, account: string): Promise<void> {
  const row = {
    id: `mbr_${person}_${account}`,
    account_id: account,
    person_id: person,
    role: "member",
    created_at: now,
  };
  await db`INSERT INTO memberships ${db(row)}`;
  const id = membershipId(person, account);
  const own = { kind: "membership", accountId: account, personId: person, role: "member" } as const;
  await keys.insertKey(keyRecordFor({ id, ...own }), testEvent());
}

async function allow(id: string, person: string, account: string, more: Partial<ApiKeyRecord> = {}): Promise<void> {
  const own = { kind: "grant", accountId: account, personId: person, parentId: membershipId(person, account) } as const;
  const grant = keyRecordFor({ id, ...own, appId, scopes: ["chat:write"], createdAt: now - 100, ...more });
  await keys.insertKey(grant, testEvent());
  const token = { digest: `of ${id}`, grant_id: id, created_at: now, expires_at: now + 1_000 };
  await db`INSERT INTO refresh_tokens ${db({ ...token, used_at: null, sealed_answer: null })}`;
}

async function call(method: string, path: string, person = "usr_1", body?: unknown) {
  const id = /^\/v1\/authorizations\/(.+)$/.exec(path)?.[1];
  const route = routes.find((one) => one.method === method && one.path.endsWith("/:id") === (id !== undefined));
  const membership = (await keys.findChainById(membershipId(person, "acct_1")))?.keys[0];
  if (!route || !membership) throw new Error(`No route ${method} ${path}`);
  const principal: PersonPrincipal = {
    ...principalFor({ keys: [membership] }),
    person: { id: person, role: "member", isOperator: false, sessionId: null },
  };
  const exchange = exchangeFor(incoming({ method, target: path, body }), { params: id === undefined ? {} : { id } });
  const response = await responseOf(() => route.handle(exchange, principal));
  // biome-ignore lint/suspicious/noExplicitAny: the test says itself what must be in it
  return { status: response.status, body: (await response.json()) as any };
}

const list = async (person?: string, query = "") =>
  (await call("GET", `/v1/authorizations${query}`, person)).body.data as { id: string }[];
const isRevoked = async (id: string) => (await keys.findChainById(id))?.keys[0].revoked;

describe("GET /v1/authorizations", () => {
  test("lists each allowed app once per account, with all its rights and publisher", async () => {
    await allow("grt_1", "usr_1", "acct_1", { lastUsedAt: now - 5 });
    await allow("grt_2", "usr_1", "acct_1", { scopes: ["models:read"], createdAt: now - 50 });
    await allow("grt_3", "usr_1", "acct_2", { createdAt: now - 20 });
    await allow("grt_4", "usr_1", "acct_1", { appId: commandLineAppId, createdAt: now - 10 });
    const app = { id: appId, name: "Notes", publisher: "Of acct_2", homepage_url: "https://notes.example/" };
    expect((await call("GET", "/v1/authorizations")).body).toMatchObject({
      object: "list",
      data: [
        {
          object: "authorization",
          id: `${appId}:acct_1`,
          app,
          account: { id: "acct_1", name: "Of acct_1" },
          environment: "live",
          scopes: ["chat:write", "models:read"],
          allowed_at: now - 100,
          last_used_at: now - 5,
        },
        { id: `${appId}:acct_2`, app, account: { id: "acct_2" }, scopes: ["chat:write"], last_used_at: null },
        { id: `${commandLineAppId}:acct_1`, app: { id: commandLineAppId, homepage_url: null } },
      ],
      first_id: `${appId}:acct_1`,
      last_id: `${commandLineAppId}:acct_1`,
      has_more: false,
    });
  });

  test("lists only a person's own allowed apps", async () => {
    await allow("grt_1", "usr_1", "acct_1");
    expect(await list("usr_2")).toEqual([]);
  });

  test("continues the list of allowed apps after the last one shown, and only after an own one", async () => {
    await allow("grt_1", "usr_1", "acct_1");
    await allow("grt_2", "usr_1", "acct_2", { createdAt: now - 50 });
    const first = (await call("GET", "/v1/authorizations?limit=1")).body;
    expect([first.last_id, first.has_more]).toEqual([`${appId}:acct_1`, true]);
    expect((await list("usr_1", `?limit=1&after=${first.last_id}`)).map(({ id }) => id)).toEqual([`${appId}:acct_2`]);
    const { status, body } = await call("GET", `/v1/authorizations?after=${first.last_id}`, "usr_2");
    expect([status, body.error.message]).toEqual([400, expect.stringMatching(/^after: /)]);
  });
});

describe("DELETE /v1/authorizations/{id}", () => {
  beforeEach(async () => {
    await allow("grt_1", "usr_1", "acct_1");
    await allow("grt_2", "usr_1", "acct_1");
    await allow("grt_other", "usr_1", "acct_2");
    await allow("grt_login", "usr_1", "acct_1", { appId: commandLineAppId });
    await allow("grt_hers", "usr_2", "acct_1");
  });

  test("ends all grants of a withdrawn app for one account, and nothing else", async () => {
    const id = `${appId}:acct_1`;
    expect(await call("DELETE", `/v1/authorizations/${id}`)).toEqual({
      status: 200,
      body: { object: "authorization", id, deleted: true },
    });
    expect([await isRevoked("grt_1"), await isRevoked("grt_2")]).toEqual([true, true]);
    for (const other of ["grt_other", "grt_login", "grt_hers"]) expect(await isRevoked(other)).toBe(false);
    expect((await list()).map((one) => one.id).sort()).toEqual([`${appId}:acct_2`, `${commandLineAppId}:acct_1`]);
    expect(drops).toBe(1);
    const filter = { action: "grant.revoked" } as const;
    expect(await new SqlAuditLog(db).list(filter, { after: undefined, limit: 9 })).toMatchObject([
      { actor: { type: "person", id: "usr_1" }, accountId: "acct_1", targetId: appId, clientAddress: "127.0.0.1" },
    ]);
  });

  test("ends command line logins with a withdrawn authorization", async () => {
    expect((await call("DELETE", `/v1/authorizations/${commandLineAppId}:acct_1`)).status).toBe(200);
    expect(await isRevoked("grt_login")).toBe(true);
    expect(await isRevoked("grt_1")).toBe(false);
  });

  test("limits all present and later grants of an app together", async () => {
    const id = `${appId}:acct_1`;
    const quotas = [{ unit: "requests", amount: 5, per: "5h", window: "rolling" }] as const;
    const limited = await call("PATCH", `/v1/authorizations/${id}`, "usr_1", { quotas });
    expect([limited.status, limited.body.quotas]).toEqual([200, quotas]);
    expect(drops).toBe(1);
    const grantOf = async (grant: string) => (await keys.findChainById(grant))?.keys[0];
    expect(await grantOf("grt_1")).toMatchObject({ quotas, limitId: "grt_1" });
    expect(await grantOf("grt_2")).toMatchObject({ quotas, limitId: "grt_1" });
    for (const other of ["grt_other", "grt_login", "grt_hers"]) expect((await grantOf(other))?.quotas).toEqual([]);
    const own = { kind: "grant", accountId: "acct_1", personId: "usr_1", environment: "live", appId } as const;
    const grant = keyRecordFor({ id: "grt_3", ...own, parentId: membershipId("usr_1", "acct_1") });
    const refreshToken = { digest: "of grt_3", grantId: "grt_3", resources: [], createdAt: now, expiresAt: now + 9 };
    await addGrant(db, { grant, refreshToken: { ...refreshToken, usedAt: null, sealedAnswer: null } }, testEvent());
    expect(await grantOf("grt_3")).toMatchObject({ quotas, limitId: "grt_1" });
    const [event] = await new SqlAuditLog(db).list({ action: "grant.limited" }, { after: undefined, limit: 9 });
    expect(event).toMatchObject({ targetId: appId, detail: { quotas: { before: [], after: quotas } } });
    expect((await call("PATCH", `/v1/authorizations/${id}`, "usr_1", { quotas: null })).body.quotas).toEqual([]);
    expect((await call("PATCH", "/v1/authorizations/app_9:acct_1", "usr_1", { quotas })).status).toBe(404);
  });

  test("shows an app's usage of its quotas over all grants, with remainder and reset", async () => {
    const id = `${appId}:acct_1`;
    await call("PATCH", `/v1/authorizations/${id}`, "usr_1", { quotas: [{ unit: "requests", amount: 5, per: "5h" }] });
    for (const grant of ["grt_1", "grt_2"]) {
      const record = (await keys.findChainById(grant))?.keys[0];
      if (!record) throw new Error(`There is no ${grant}.`);
      const set = { requests: [], tokens: [], quotas: [], windows: windowsOfKey(record) };
      const admission = await limits.admit(set, { tokens: 0, nanoUsd: 0, minTokens: 0, minNanoUsd: 0 });
      if ("lease" in admission) admission.lease.settle(0, 0);
    }
    const { status, body } = await call("GET", `/v1/authorizations/${id}`);
    expect([status, body.id, body.environment]).toEqual([200, id, "live"]);
    expect(body.quotas_used).toMatchObject([
      { owner: "app", unit: "requests", amount: 5, used: 2, left: 3, per: "5h", resets_at: now + 18_000 },
    ]);
    expect((await call("GET", `/v1/authorizations/${commandLineAppId}:acct_1`, "usr_2")).status).toBe(404);
  });

  test("answers 404 without changes to a withdrawal of an unknown or ended authorization", async () => {
    await call("DELETE", `/v1/authorizations/${appId}:acct_1`);
    for (const id of [`${appId}:acct_1`, `${appId}:acct_9`, "app_9:acct_1", appId, ":", "%3a", `${appId}:acct_2:x`]) {
      const { status, body } = await call("DELETE", `/v1/authorizations/${id}`);
      expect([status, body.error.code]).toEqual([404, "not_found"]);
    }
    expect(drops).toBe(1);
    expect([await isRevoked("grt_other"), await isRevoked("grt_hers")]).toEqual([false, false]);
  });
});

test("serves authorization routes to people only, with answers that fit the OpenAPI document", async () => {
  await allow("grt_1", "usr_1", "acct_1");
  expect(routes.map(({ access }) => access)).toEqual(["person", "person", "person", "person"]);
  const document = openApiDocument(routes, "1.0.0");
  const answers = [
    ["/v1/authorizations", "get", await call("GET", "/v1/authorizations")],
    ["/v1/authorizations/{id}", "get", await call("GET", `/v1/authorizations/${appId}:acct_1`)],
    ["/v1/authorizations/{id}", "patch", await call("PATCH", `/v1/authorizations/${appId}:acct_1`, "usr_1", {})],
    ["/v1/authorizations/{id}", "delete", await call("DELETE", `/v1/authorizations/${appId}:acct_1`)],
  ] as const;
  for (const [path, method, { status, body }] of answers) {
    expect(status).toBe(200);
    expect(answerMismatches(document, [method, path, 200], body)).toEqual([]);
  }
});
