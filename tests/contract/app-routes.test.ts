// The app endpoints over a real database: what is answered, what is stored, and who sees which app.
import { afterEach, beforeEach, describe, expect, spyOn, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { matchesSecret } from "../../src/accounts/manage-apps.ts";
import type { AuditEvent } from "../../src/domain/audit.ts";
import type { Role } from "../../src/domain/people/role.ts";
import type { Principal } from "../../src/domain/principal.ts";
import { appRoutes } from "../../src/http/api/people/app-routes.ts";
import type { ScopedRoute } from "../../src/http/exchange/route.ts";
import { openApiDocument } from "../../src/http/reference/openapi.ts";
import { SqlUsageReports } from "../../src/ledger/usage/usage-reports.ts";
import { MemoryLimits } from "../../src/limits/memory/memory-limits.ts";
import { requireScope } from "../../src/policy/authorize.ts";
import { Throttle } from "../../src/policy/throttle.ts";
import { type Database, openDatabase } from "../../src/storage/sql/database.ts";
import { SqlAccountStore } from "../../src/storage/tables/account-store.ts";
import { SqlAuditLog } from "../../src/storage/tables/audit-log.ts";
import { SqlKeyStore } from "../../src/storage/tables/key-store.ts";
import { SqlAppStore } from "../../src/storage/tables/people/app-store.ts";
import { testEvent } from "../support/credentials.ts";
import { exchangeFor, incoming, responseOf } from "../support/exchange.ts";
import { accountFor, keyRecordFor, principalFor } from "../support/principal.ts";
import { answerMismatches } from "./json-schema.ts";

const pepper = new Uint8Array(32).fill(3);
const start = 1_800_000_000;

let directory: string;
let db: Database;
let apps: SqlAppStore;
let keys: SqlKeyStore;
let routes: ScopedRoute[];
let accountId: string;
let admin: Principal;
let now: number;
let drops: number;
let throttle: Throttle;

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "headrace-app-routes-"));
  db = await openDatabase(join(directory, "headrace.db"));
  apps = new SqlAppStore(db);
  keys = new SqlKeyStore(db);
  accountId = await new SqlAccountStore(db).ensureFirstAccount(start);
  now = start;
  drops = 0;
  const clock = { nowSeconds: () => now, monotonicMs: () => 0 };
  throttle = new Throttle(new MemoryLimits({ clock, ledger: { readTotals: async () => {} } }));
  routes = appRoutes({
    apps,
    pepper,
    throttle,
    reports: new SqlUsageReports(db),
    ledger: { flush: async () => {} },
    clock,
    requestLimits: () => ({ bodyBytes: 100_000, depth: 8 }),
    changed: () => {
      drops += 1;
    },
  });
  admin = await withKey("key_admin");
});

afterEach(async () => {
  await db.close();
  rmSync(directory, { recursive: true, force: true });
});

/** A key in the database, as the authenticator makes a principal of it. */
async function withKey(id: string, more: Parameters<typeof keyRecordFor>[0] = {}): Promise<Principal> {
  const key = keyRecordFor({ id, accountId, ...more });
  await keys.insertKey(key, testEvent(now));
  const account = accountFor({ id: key.accountId, name: "An account" });
  return principalFor({ keys: [key], account, environment: key.environment, scopes: new Set(key.scopes) });
}

/** A person who is signed in, with the membership that makes the person one who may act. */
async function person(id: string, role: Role): Promise<Principal> {
  const flags = { email_proven: 0, is_operator: 0 };
  await db`INSERT INTO people ${db({ id, email: `${id}@example.com`, name: id, ...flags, created_at: now })}`;
  await db`INSERT INTO memberships ${db({ id: `mbr_${id}`, account_id: accountId, person_id: id, role, created_at: now })}`;
  const by = await withKey(`mbr_${id}_live`, { kind: "membership", personId: id, role });
  return { ...by, person: { id, role, isOperator: false, sessionId: null } };
}

interface Answer {
  status: number;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: the test says itself what must be in it
  body: any;
}

/** Sends a request as the server does: scope first, errors as answers. */
async function call(method: string, path: string, body?: unknown, by: Principal = admin): Promise<Answer> {
  const [plain = ""] = path.split("?");
  for (const route of routes) {
    const match = new RegExp(`^${route.path.replace(":id", "(?<id>[^/]+)")}$`).exec(plain);
    if (route.method !== method || !match) continue;
    const exchange = exchangeFor(incoming({ method, target: path, body }), {
      params: { ...match.groups },
      requestId: "req_7",
      clientAddress: "192.0.2.9",
    });
    const response = await responseOf(() => {
      requireScope(by, route.access);
      return route.handle(exchange, by);
    });
    return { status: response.status, headers: response.headers, body: await response.json() };
  }
  throw new Error(`No route ${method} ${path}`);
}

const audit = (filter = {}): Promise<AuditEvent[]> =>
  new SqlAuditLog(db).list(filter, { after: undefined, limit: 100 });
const refusal = ({ status, body }: Answer) => [status, body.error?.code];
const register = async (request = {}, by = admin) =>
  (await call("POST", "/v1/apps", { name: "Notes", redirect_uris: ["https://notes.example/cb"], ...request }, by)).body;

describe("POST /v1/apps", () => {
  test("returns a new app with its secret once, and forbids storing the answer", async () => {
    const request = {
      name: " Notes ",
      homepage_url: "https://notes.example/",
      redirect_uris: ["https://notes.example/cb", "http://127.0.0.1/cb"],
      scopes: ["models:read", "chat:write", "chat:read"],
      require_pkce: true,
    };
    const { status, headers, body } = await call("POST", "/v1/apps", request);
    expect([status, headers.get("cache-control")]).toEqual([200, "no-store"]);
    const { client_secret: secret, ...app } = body;
    expect(secret).toMatch(/^hrs_[A-Za-z0-9_-]{43}$/);
    expect(app).toEqual({
      object: "app",
      id: expect.stringMatching(/^app_/),
      client_id: app.id,
      name: "Notes",
      homepage_url: "https://notes.example/",
      type: "confidential",
      redirect_uris: ["https://notes.example/cb", "http://127.0.0.1/cb"],
      scopes: ["chat:read", "chat:write", "models:read"],
      status: "active",
      environment: "live",
      tools: null,
      require_pkce: true,
      publisher: "An account",
      created_by: "key_admin",
      created_at: now,
      secrets: [{ id: expect.stringMatching(/^sec_/), last4: secret.slice(-4), created_at: now, expires_at: null }],
    });
    expect((await call("GET", `/v1/apps/${app.id}`)).body).toEqual({ ...app, publisher: expect.any(String) });
    const stored = await apps.findApp(app.id);
    expect(stored && matchesSecret(stored, secret, pepper, now)).toBe(true);
    expect(JSON.stringify([stored, await audit()])).not.toContain(secret.slice(4, 20));
    expect(await audit({ action: "app.created" })).toMatchObject([
      { actor: { type: "key", id: "key_admin" }, targetId: app.id, clientAddress: "192.0.2.9", requestId: "req_7" },
    ]);
  });

  test("returns a new public app without a secret", async () => {
    const app = await register({ type: "public" });
    expect(app).toMatchObject({ type: "public", secrets: [], require_pkce: true });
    expect(app).not.toHaveProperty("client_secret");
  });

  test.each<[object, string]>([
    [{ name: undefined }, "name: "],
    [{ name: "" }, "name: "],
    [{ name: "x".repeat(101) }, "name: "],
    [{ scopes: [] }, "scopes: "],
    [{ scopes: ["keys:manage"] }, "scopes[0]: "],
    [{ scopes: ["admin:manage"] }, "scopes[0]: "],
    [{ type: "secret" }, "type: "],
    [{ redirect_uris: Array.from({ length: 21 }, (_, i) => `https://a.example/${i}`) }, "redirect_uris: "],
    [{ redirect_uris: [`https://a.example/${"x".repeat(2_031)}`] }, "redirect_uris[0]: "],
    [{ redirect_uris: ["https://a.example/", "http://a.example/"] }, "redirect_uris[1]: "],
    [{ homepage_url: "http://a.example/" }, "homepage_url: "],
    [{ type: "public", require_pkce: false }, "require_pkce: "],
    [{ environment: "test" }, "environment: is no member"],
    [{ redirect_uri: "https://a.example/" }, "redirect_uri: is no member"],
  ])("refuses the app %j and names the field", async (request, message) => {
    const answer = await call("POST", "/v1/apps", { name: "Notes", ...request });
    expect(refusal(answer)).toEqual([400, "invalid_request"]);
    expect(answer.body.error.message).toStartWith(message);
    expect((await call("GET", "/v1/apps")).body.data).toEqual([]);
  });

  test("accepts 20 redirect URIs of 2,048 characters, or none", async () => {
    const uris = Array.from({ length: 20 }, (_, i) => `https://a.example/${String(i).padStart(2_030, "x")}`);
    expect((await register({ redirect_uris: uris })).redirect_uris).toEqual(uris);
    expect((await register({ redirect_uris: [] })).redirect_uris).toEqual([]);
  });
});

test("refuses app routes without keys:manage and to apps", async () => {
  const { id } = await register();
  const narrow = { ...admin, scopes: new Set(["chat:write", "models:read", "usage:read"] as const) };
  const app = { ...admin, appId: id };
  for (const route of routes) {
    const path = route.path.replace(":id", id);
    const body = route.method === "GET" || route.method === "DELETE" ? undefined : { name: "mine" };
    expect(refusal(await call(route.method, path, body, narrow))).toEqual([403, "insufficient_scope"]);
    expect(refusal(await call(route.method, path, body, app))).toEqual([403, "permission_denied"]);
  }
  expect(await apps.findApp(id)).toMatchObject({ name: "Notes" });
});

describe("GET /v1/apps", () => {
  test("pages through an account and environment's apps, newest first", async () => {
    const ids: string[] = [];
    for (const name of ["a", "b", "c"]) ids.unshift((await register({ name })).id);
    await register({ name: "other" }, await withKey("key_test", { environment: "test" }));
    const first = (await call("GET", "/v1/apps?limit=2")).body;
    expect(first).toMatchObject({ object: "list", first_id: ids[0], last_id: ids[1], has_more: true });
    const second = (await call("GET", `/v1/apps?limit=2&after=${ids[1]}`)).body;
    expect(second.data.map(({ id }: { id: string }) => id)).toEqual([ids[2]]);
    expect(second.has_more).toBe(false);
    expect(JSON.stringify([first, second])).not.toContain("client_secret");
  });

  test("refuses a cursor that is no app of the list", async () => {
    const { id: theirs } = await register({}, await withKey("key_test", { environment: "test" }));
    for (const after of ["app_none", theirs]) {
      const answer = await call("GET", `/v1/apps?after=${after}`);
      expect(refusal(answer)).toEqual([400, "invalid_request"]);
      expect(answer.body.error.message).toStartWith("after: ");
    }
  });
});

test("answers 404 to every method for another owner's app and an unknown one", async () => {
  await new SqlAccountStore(db).insertAccount(accountFor({ id: "acct_2" }), testEvent());
  const { id: theirs } = await register({}, await withKey("key_2", { accountId: "acct_2" }));
  const { id: ofTest } = await register({}, await withKey("key_test", { environment: "test" }));
  const before = await audit();
  for (const id of [theirs, ofTest, "app_none", "..%2fkeys"]) {
    const answers = [
      await call("GET", `/v1/apps/${id}`),
      await call("PATCH", `/v1/apps/${id}`, { name: "mine" }),
      await call("DELETE", `/v1/apps/${id}`),
      await call("POST", `/v1/apps/${id}/rotate-secret`, {}),
      await call("GET", `/v1/apps/${id}/usage`),
    ];
    for (const answer of answers) expect(refusal(answer)).toEqual([404, "not_found"]);
  }
  expect(await audit()).toEqual(before);
  expect(await apps.findApp(theirs)).toMatchObject({ name: "Notes" });
});

describe("apps of members", () => {
  test("lets members manage only own apps, and owners and admins all of the account", async () => {
    const [owner, ada, ben] = [
      await person("usr_o", "admin"),
      await person("usr_a", "member"),
      await person("usr_b", "member"),
    ];
    const shared = await register({ name: "shared" }, owner);
    const hers = await register({ name: "hers" }, ada);
    expect(hers.created_by).toBe("usr_a");
    const names = async (by: Principal) =>
      (await call("GET", "/v1/apps", undefined, by)).body.data.map(({ name }: { name: string }) => name);
    expect(await names(owner)).toEqual(["hers", "shared"]);
    expect(await names(ada)).toEqual(["hers"]);
    expect(await names(ben)).toEqual([]);
    for (const [id, by] of [
      [shared.id, ada],
      [hers.id, ben],
    ] as const) {
      expect(refusal(await call("GET", `/v1/apps/${id}`, undefined, by))).toEqual([404, "not_found"]);
      expect(refusal(await call("PATCH", `/v1/apps/${id}`, { name: "x" }, by))).toEqual([404, "not_found"]);
      expect(refusal(await call("DELETE", `/v1/apps/${id}`, undefined, by))).toEqual([404, "not_found"]);
      expect(refusal(await call("GET", `/v1/apps?after=${id}`, undefined, by))).toEqual([400, "invalid_request"]);
    }
    expect((await call("PATCH", `/v1/apps/${hers.id}`, { name: "ours" }, owner)).body.name).toBe("ours");
    expect((await call("DELETE", `/v1/apps/${hers.id}`, undefined, ada)).status).toBe(200);
  });

  test("refuses an app registration by a member who left meanwhile", async () => {
    const ada = await person("usr_a", "member");
    await db`DELETE FROM memberships WHERE person_id = 'usr_a'`;
    expect(refusal(await call("POST", "/v1/apps", { name: "late" }, ada))).toEqual([401, "invalid_api_key"]);
    expect((await call("GET", "/v1/apps")).body.data).toEqual([]);
  });
});

describe("PATCH /v1/apps/{id}", () => {
  test("changes named fields of an app and audits old and new values", async () => {
    const { client_secret: _, ...app } = await register({ homepage_url: "https://notes.example/" });
    const { status, body } = await call("PATCH", `/v1/apps/${app.id}`, {
      homepage_url: null,
      redirect_uris: ["https://b.example/"],
      scopes: ["usage:read"],
    });
    expect(status).toBe(200);
    const changed = { homepage_url: null, redirect_uris: ["https://b.example/"], scopes: ["usage:read"] };
    expect(body).toEqual({ ...app, ...changed });
    expect((await call("GET", `/v1/apps/${app.id}`)).body).toMatchObject(changed);
    expect((await audit({ action: "app.updated" }))[0]?.detail).toEqual({
      homepage_url: { before: "https://notes.example/", after: null },
      redirect_uris: { before: ["https://notes.example/cb"], after: ["https://b.example/"] },
      scopes: { before: ["chat:write", "models:read"], after: ["usage:read"] },
    });
    expect(drops).toBe(1);
  });

  test("audits nothing if a PATCH of an app changes nothing", async () => {
    const { client_secret: _, ...app } = await register();
    expect((await call("PATCH", `/v1/apps/${app.id}`, { name: "Notes" })).body).toMatchObject({ id: app.id });
    expect(await audit({ action: "app.updated" })).toEqual([]);
    expect(drops).toBe(0);
  });

  test.each<[object, string]>([
    [{ redirect_uris: ["javascript:alert(1)"] }, "redirect_uris[0]: "],
    [{ redirect_uris: null }, "redirect_uris: "],
    [{ scopes: ["keys:manage"] }, "scopes[0]: "],
    [{ type: "public" }, "type: is no member"],
    [{ environment: "dev" }, "environment: is no member"],
    [{ client_secret: "hrs_x" }, "client_secret: is no member"],
  ])("refuses the app change %j", async (request, message) => {
    const { id } = await register();
    const answer = await call("PATCH", `/v1/apps/${id}`, request);
    expect(refusal(answer)).toEqual([400, "invalid_request"]);
    expect(answer.body.error.message).toStartWith(message);
  });
});

describe("POST /v1/apps/{id}/suspend and resume", () => {
  const set = (id: string, verb: "suspend" | "resume", by = admin) =>
    call("POST", `/v1/apps/${id}/${verb}`, undefined, by);

  test("limits the rate of suspensions, and does not count those that change nothing", async () => {
    const { id } = await register();
    for (let i = 1; i < 299; i++) await throttle.require("change", admin);
    expect([(await set(id, "suspend")).status, (await set(id, "suspend")).status]).toEqual([200, 200]);
    expect([refusal(await set(id, "resume")), drops]).toEqual([[429, "rate_limit_exceeded"], 1]);
  });

  test("refuses a resumption that an operator's suspension overtakes", async () => {
    const { id } = await register();
    await set(id, "suspend");
    const find = apps.findApp.bind(apps);
    const overtaken = spyOn(apps, "findApp").mockImplementation(async (one) => {
      const app = await find(one);
      await apps.setSuspended(one, { by: "operator", isSuspended: true }, testEvent(now));
      return app;
    });
    expect(refusal(await set(id, "resume"))).toEqual([403, "permission_denied"]);
    overtaken.mockRestore();
    expect((await find(id))?.suspendedBy).toBe("operator");
  });

  test("lets a member resume only apps that members suspended", async () => {
    const [member, owner] = [await person("usr_1", "member"), await person("usr_2", "owner")];
    const { id } = await register({}, member);
    expect([(await set(id, "suspend", member)).status, (await set(id, "resume", member)).status]).toEqual([200, 200]);
    await set(id, "suspend", owner);
    expect((await set(id, "suspend", member)).status).toBe(200);
    expect(refusal(await set(id, "resume", member))).toEqual([403, "permission_denied"]);
    expect((await set(id, "resume", owner)).body.status).toBe("active");
  });
});

describe("POST /v1/apps/{id}/rotate-secret", () => {
  test("returns a rotated app secret, forbids storing it, and accepts the old one for a day", async () => {
    const { id, client_secret: old } = await register();
    now += 10;
    const { status, headers, body } = await call("POST", `/v1/apps/${id}/rotate-secret`);
    expect([status, headers.get("cache-control")]).toEqual([200, "no-store"]);
    expect(body.secrets.map((one: { expires_at: number }) => one.expires_at)).toEqual([now + 86_400, null]);
    const matches = async (secret: string, at: number) => {
      const app = await apps.findApp(id);
      return app !== undefined && matchesSecret(app, secret, pepper, at);
    };
    expect([await matches(old, now + 86_399), await matches(old, now + 86_400)]).toEqual([true, false]);
    expect(await matches(body.client_secret, now)).toBe(true);
    expect((await audit({ action: "app.secret_rotated" }))[0]?.detail).toMatchObject({ overlap_seconds: 86_400 });
    expect(JSON.stringify(await audit())).not.toContain(body.client_secret.slice(4, 20));
    expect(drops).toBe(1);
  });

  test("keeps at most two app secrets, and one without an overlap", async () => {
    const { id } = await register();
    const rotate = async (overlap: number) =>
      (await call("POST", `/v1/apps/${id}/rotate-secret`, { overlap_seconds: overlap })).body.secrets.length;
    expect([await rotate(2_592_000), await rotate(60), await rotate(0)]).toEqual([2, 2, 1]);
  });

  test.each([-1, 2_592_001, 1.5, "1"])("refuses an app secret overlap of %p", async (overlap) => {
    const { id } = await register();
    const answer = await call("POST", `/v1/apps/${id}/rotate-secret`, { overlap_seconds: overlap });
    expect(refusal(answer)).toEqual([400, "invalid_request"]);
    expect(answer.body.error.message).toStartWith("overlap_seconds: ");
  });

  test("refuses a secret for a public app", async () => {
    const { id } = await register({ type: "public" });
    expect(refusal(await call("POST", `/v1/apps/${id}/rotate-secret`))).toEqual([400, "invalid_request"]);
  });
});

test("deletes an app with its grants permanently", async () => {
  const { id } = await register();
  await keys.insertKey(keyRecordFor({ id: "grt_1", kind: "grant", accountId, appId: id }), testEvent());
  const { status, body } = await call("DELETE", `/v1/apps/${id}`);
  expect([status, body]).toEqual([200, { object: "app", id, deleted: true }]);
  expect((await keys.findChainById("grt_1"))?.keys[0]).toMatchObject({ revoked: true, revokedAt: now });
  expect(refusal(await call("GET", `/v1/apps/${id}`))).toEqual([404, "not_found"]);
  expect(refusal(await call("DELETE", `/v1/apps/${id}`))).toEqual([404, "not_found"]);
  expect(await audit({ action: "app.deleted" })).toMatchObject([{ targetId: id, detail: { name: "Notes" } }]);
  expect(drops).toBe(1);
});

describe("GET /v1/apps/{id}/usage", () => {
  const used = (more: Record<string, unknown>) => {
    const row = { account_id: accountId, environment: "live", span: "day", start: start - (start % 86_400) };
    const figures = { requests: 1, prompt_tokens: 10, completion_tokens: 5, nano_usd: 0, errors: 0 };
    return db`INSERT INTO usage_rollups ${db({ ...row, key_id: "grt_1", app_id: "", model: "m", ...figures, ...more })}`;
  };

  test("reports an app's usage in all accounts, and no other's", async () => {
    const { id } = await register();
    await used({ app_id: id, requests: 3 });
    await used({ app_id: id, requests: 4, key_id: "grt_2" });
    await used({ requests: 50 });
    await used({ app_id: "app_2", requests: 60 });
    await used({ app_id: id, requests: 70, account_id: "acct_2" });
    await used({ app_id: id, requests: 80, environment: "test" });
    const { status, body } = await call("GET", `/v1/apps/${id}/usage`);
    expect(status).toBe(200);
    expect(body.data).toMatchObject([{ requests: 77, total_tokens: 45 }]);
    const byKey = (await call("GET", `/v1/apps/${id}/usage?group_by=key&limit=1`)).body;
    expect(byKey).toMatchObject({ data: [{ key: "grt_1", requests: 73 }], next: expect.any(String) });
    expect(refusal(await call("GET", `/v1/apps/${id}/usage?bucket=week`))).toEqual([400, "invalid_request"]);
  });
});

test("limits a key to 300 app changes a minute, but not deletions", async () => {
  const { id } = await register();
  const answers: number[] = [];
  for (let i = 0; i < 300; i++) {
    answers.push((await call("PATCH", `/v1/apps/${id}`, { name: `n${i}` })).status);
  }
  expect([answers.filter((status) => status === 200).length, answers.at(-1)]).toEqual([299, 429]);
  expect((await call("POST", `/v1/apps/${id}/rotate-secret`)).status).toBe(429);
  expect((await call("POST", "/v1/apps", { name: "more" })).status).toBe(429);
  expect((await call("DELETE", `/v1/apps/${id}`)).status).toBe(200);
});

test("requires keys:manage on all app routes, with answers that fit the OpenAPI document", async () => {
  expect(new Set(routes.map((route) => route.access))).toEqual(new Set(["keys:manage"]));
  const document = openApiDocument(routes, "1.0.0");
  const made = await call("POST", "/v1/apps", { name: "a", redirect_uris: ["com.example.a:/cb"] });
  const { id } = made.body;
  const answers: [string, string, Answer][] = [
    ["/v1/apps", "post", made],
    ["/v1/apps", "get", await call("GET", "/v1/apps")],
    ["/v1/apps/{id}", "get", await call("GET", `/v1/apps/${id}`)],
    ["/v1/apps/{id}", "patch", await call("PATCH", `/v1/apps/${id}`, { name: "b" })],
    ["/v1/apps/{id}/rotate-secret", "post", await call("POST", `/v1/apps/${id}/rotate-secret`, {})],
    ["/v1/apps/{id}/usage", "get", await call("GET", `/v1/apps/${id}/usage`)],
    ["/v1/apps/{id}", "delete", await call("DELETE", `/v1/apps/${id}`)],
  ];
  for (const [path, method, { status, body }] of answers) {
    expect(status).toBe(200);
    expect(answerMismatches(document, [method, path, 200], body)).toEqual([]);
  }
});
