// The key endpoints over a real database: what is answered, what is stored, what the audit log is told.
import { afterEach, beforeEach, describe, expect, spyOn, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { invalidApiKeyMessage } from "../../src/base/invalid-api-key.ts";
import { generateApiKey } from "../../src/domain/api-key.ts";
import type { AuditEvent } from "../../src/domain/audit.ts";
import type { ApiKeyRecord, Principal } from "../../src/domain/principal.ts";
import type { Scope } from "../../src/domain/scope.ts";
import { keyRoutes } from "../../src/http/api/key-routes.ts";
import type { ScopedRoute } from "../../src/http/exchange/route.ts";
import { openApiDocument } from "../../src/http/reference/openapi.ts";
import { MemoryLimits } from "../../src/limits/memory/memory-limits.ts";
import { requireScope } from "../../src/policy/authorize.ts";
import { keyDigest } from "../../src/policy/credentials/key-digest.ts";
import { auditEvent } from "../../src/policy/records/audit.ts";
import { Throttle } from "../../src/policy/throttle.ts";
import { type Database, openDatabase } from "../../src/storage/sql/database.ts";
import { SqlAccountStore } from "../../src/storage/tables/account-store.ts";
import { SqlAuditLog } from "../../src/storage/tables/audit-log.ts";
import { apiKeys } from "../../src/storage/tables/credential-rows.ts";
import { SqlKeyStore } from "../../src/storage/tables/key-store.ts";
import { testEvent } from "../support/credentials.ts";
import { exchangeFor, incoming, responseOf } from "../support/exchange.ts";
import { keyRecordFor, principalFor } from "../support/principal.ts";
import { answerMismatches } from "./json-schema.ts";

const pepper = new Uint8Array(32).fill(3);
const start = 1_800_000_000;

let directory: string;
let db: Database;
let keys: SqlKeyStore;
let routes: ScopedRoute[];
let accountId: string;
let now: number;
let drops: number;
let throttle: Throttle;

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "headrace-key-routes-"));
  db = await openDatabase(join(directory, "headrace.db"));
  keys = new SqlKeyStore(db);
  accountId = await new SqlAccountStore(db).ensureFirstAccount(start);
  now = start;
  drops = 0;
  const clock = { nowSeconds: () => now, monotonicMs: () => 0 };
  const limits = new MemoryLimits({
    clock,
    ledger: { readTotals: async (_, use) => use({ requests: 2, tokens: 30, nanoUsd: 4e8, firstAt: now - 60 }) },
  });
  throttle = new Throttle(limits);
  routes = keyRoutes({
    keys,
    keyRotations: { isDue: async () => false },
    pepper,
    limits,
    throttle,
    clock,
    requestLimits: () => ({ bodyBytes: 10_000, depth: 8 }),
    changed: () => {
      drops += 1;
    },
  });
  await add({ id: "key_admin" });
});

afterEach(async () => {
  await db.close();
  rmSync(directory, { recursive: true, force: true });
});

/** A key in the database, as an operator might have made it. */
async function add(more: Partial<ApiKeyRecord> & { id: string }): Promise<void> {
  const origin = { nowSeconds: now, clientAddress: null, requestId: null };
  const about = { accountId, targetId: more.id, detail: {} };
  const record = keyRecordFor({ accountId, createdAt: now, ...more });
  await keys.insertKey(record, auditEvent("key.created", { type: "operator" }, origin, about));
}

/** Uses up this many changes of the minute of `key_admin`. */
async function takeChanges(count: number): Promise<void> {
  const principal = await principalOf("key_admin");
  for (let i = 0; i < count; i++) await throttle.require("change", principal);
}

/** The principal of a key, as the authenticator makes it. */
async function principalOf(id: string): Promise<Principal> {
  const chain = await keys.findChainById(id);
  if (!chain) throw new Error(`No key ${id}`);
  const [key, ...makers] = chain.keys;
  const common = key.scopes.filter((scope) => makers.every((maker) => maker.scopes.includes(scope)));
  const models = chain.keys.flatMap((one) => (one.models ? [one.models] : []));
  const modelAccess = { models, neverLeaves: chain.keys.some(({ neverLeaves }) => neverLeaves) };
  return principalFor({ ...chain, environment: key.environment, scopes: new Set<Scope>(common), modelAccess });
}

interface Answer {
  status: number;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: the test says itself what must be in it
  body: any;
}

/** Sends a request as the server does: scope first, errors as answers. */
async function call(
  method: string,
  path: string,
  body?: unknown,
  by: string | Principal = "key_admin",
): Promise<Answer> {
  const [plain = ""] = path.split("?");
  for (const route of routes) {
    const match = new RegExp(`^${route.path.replace(":id", "(?<id>[^/]+)")}$`).exec(plain);
    if (route.method !== method || !match) continue;
    const exchange = exchangeFor(incoming({ method, target: path, body }), {
      params: { ...match.groups },
      requestId: "req_7",
      clientAddress: "192.0.2.9",
    });
    const principal = typeof by === "string" ? await principalOf(by) : by;
    const response = await responseOf(() => {
      requireScope(principal, route.access);
      return route.handle(exchange, principal);
    });
    return { status: response.status, headers: response.headers, body: await response.json() };
  }
  throw new Error(`No route ${method} ${path}`);
}

const audit = (filter = {}): Promise<AuditEvent[]> =>
  new SqlAuditLog(db).list(filter, { after: undefined, limit: 100 });

describe("POST /v1/keys", () => {
  test("returns a new key with its secret once, forbids storing it, and accepts it at once", async () => {
    const { status, headers, body } = await call("POST", "/v1/keys", { name: "Shop", rate_limit: 5 });
    expect(status).toBe(200);
    expect(headers.get("cache-control")).toBe("no-store");
    const { key, ...record } = body;
    expect(key).toMatch(/^sk_live_hr_/);
    expect(record).toEqual({
      object: "api_key",
      id: expect.stringMatching(/^key_/),
      name: "Shop",
      prefix: "sk_live_hr_",
      last4: key.slice(-4),
      environment: "live",
      scopes: ["chat:read", "chat:write", "models:read"],
      status: "active",
      created_by: "key_admin",
      created_at: now,
      expires_at: null,
      last_used_at: null,
      revoked_at: null,
      allowed_ips: [],
      rate_limit: 5,
      rate_limit_window: 60,
      monthly_tokens: null,
      monthly_spend: null,
      quotas: [],
      models: null,
      tools: null,
      never_leaves: false,
      priority: null,
      response_cache: null,
      tags: [],
      note: null,
    });
    // Nobody can have remembered anything of it.
    expect(drops).toBe(0);
    const found = await keys.findChainByDigest(keyDigest(key, pepper));
    expect(found?.keys.map(({ id }) => id)).toEqual([record.id, "key_admin"]);
    expect((await call("GET", `/v1/keys/${record.id}`)).body).toEqual({ ...record, quotas_used: [] });
    expect(await audit({ targetId: record.id })).toMatchObject([
      {
        action: "key.created",
        actor: { type: "key", id: "key_admin" },
        clientAddress: "192.0.2.9",
        requestId: "req_7",
      },
    ]);
    // The secret is nowhere but in the answer.
    const dump = JSON.stringify([await audit(), ...(await db`SELECT * FROM api_keys`)]);
    expect(dump).not.toContain(key);
    expect(dump).not.toContain(key.slice(11, 30));
  });

  test.each<[string, unknown, string]>([
    ["no name", {}, "name: is required and must be a string of 1 to 100 characters."],
    [
      "a long name",
      { name: "x".repeat(101) },
      "name: must be a string of 1 to 100 characters (got a string of 101 characters).",
    ],
    [
      "a misspelt member",
      { name: "a", expire_at: 1 },
      "expire_at: is no member of this request; known are name, scopes, ",
    ],
    ["an unknown scope", { name: "a", scopes: ["chat:all"] }, 'scopes[0]: must be one of "chat:read", "chat:write"'],
    ["no scopes", { name: "a", scopes: [] }, "scopes: must be an array of strings of 1 to 20 items"],
    [
      "milliseconds",
      { name: "a", expires_at: 1_800_000_000_000 },
      "expires_at: must be an integer from 1 to 253402300799",
    ],
    ["a limit of nothing", { name: "a", rate_limit: 0 }, "rate_limit: must be an integer from 1 to 1000000 (got 0)."],
    ["a limit beyond all", { name: "a", rate_limit: 1_000_001 }, "rate_limit: must be an integer from 1 to 1000000"],
    [
      "a window over a day",
      { name: "a", rate_limit: 1, rate_limit_window: 86_401 },
      "rate_limit_window: must be an integer from 1 to 86400",
    ],
    ["a window alone", { name: "a", rate_limit_window: 60 }, "rate_limit_window: is the window of rate_limit"],
    [
      "101 addresses",
      { name: "a", allowed_ips: Array(101).fill("::1") },
      "allowed_ips: must be an array of strings of at most 100 items",
    ],
    ["a negative quota", { name: "a", monthly_spend: -1 }, "monthly_spend: must be a number from 0 to"],
    ["half a token", { name: "a", monthly_tokens: 0.5 }, "monthly_tokens: must be an integer from 0 to"],
    ["no models at all", { name: "a", models: [] }, "models: must be an array of strings of 1 to 100 items"],
    ["an asterisk inside", { name: "a", models: ["a*b"] }, "models[0]: must"],
    ["an asterisk alone", { name: "a", models: ["a", "*"] }, "models[1]: must"],
    ["a model that hides", { name: "a", models: ["a", "b\u202ec"] }, "models[1]: must be printable characters"],
    ["101 models", { name: "a", models: Array(101).fill("m") }, "models: must be an array of strings of 1 to 100"],
    ["no priority", { name: "a", priority: "urgent" }, "priority: must be"],
    ["no yes or no", { name: "a", never_leaves: "yes" }, "never_leaves: must be"],
    ["eleven tags", { name: "a", tags: Array(11).fill("t") }, "tags: must be an array of strings of at most 10 items"],
    ["a tag with a space", { name: "a", tags: ["fine", "not fine"] }, "tags[1]: must"],
    ["a long tag", { name: "a", tags: ["t".repeat(65)] }, "tags[0]: must"],
    ["a long note", { name: "a", note: "x".repeat(1_001) }, "note: must be a string of at most 1000 characters"],
    [
      "an unseen character",
      { name: "a", note: "a\u202eb" },
      "note: must be printable characters, tabs and line feeds.",
    ],
    ["a key in a note", { name: "a", note: `old: ${generateApiKey("live")}` }, "note: holds a whole API key."],
    ["no object", "[]", "The body must be a JSON object."],
  ])("refuses %s with the allowed values, and stores nothing", async (_what, request, message) => {
    const before = await audit();
    const { status, body } = await call("POST", "/v1/keys", request);
    expect({ status, code: body.error.code }).toEqual({ status: 400, code: "invalid_request" });
    expect(body.error.message).toContain(message);
    expect(await audit()).toEqual(before);
    expect(drops).toBe(0);
  });

  test("refuses a wider key by scope, or by field and bound", async () => {
    await add({ id: "key_small", scopes: ["keys:manage", "chat:read"], expiresAt: now + 60, parentId: "key_admin" });
    const scope = await call("POST", "/v1/keys", { name: "a", scopes: ["chat:write"] }, "key_small");
    expect(scope.status).toBe(403);
    expect(scope.body.error).toMatchObject({
      code: "insufficient_scope",
      message: "API key lacks required scope: chat:write",
    });
    const expiry = await call("POST", "/v1/keys", { name: "a", scopes: ["chat:read"], expires_in: 61 }, "key_small");
    expect(expiry.status).toBe(403);
    expect(expiry.body.error).toEqual({
      code: "permission_denied",
      type: "permission_error",
      message: `expires_at: must be at most ${now + 60}, the expiry of the key that makes it.`,
    });
    expect((await call("POST", "/v1/keys", { name: "a" }, "key_small")).body).toMatchObject({
      scopes: ["chat:read"],
      expires_at: now + 60,
      created_by: "key_small",
    });
  });

  test("passes a key's models and local setting to its children, which may narrow but not widen them", async () => {
    const scopes = ["keys:manage", "chat:write"] as const;
    await add({ id: "key_agent", scopes, models: ["gpt-*", "tiny"], neverLeaves: true, parentId: "key_admin" });
    const make = (more: object) =>
      call("POST", "/v1/keys", { name: "a", scopes: ["chat:write"], ...more }, "key_agent");
    expect((await make({})).body).toMatchObject({ models: ["gpt-*", "tiny"], never_leaves: true });
    expect((await make({ models: ["tiny"] })).body).toMatchObject({ models: ["tiny"], never_leaves: true });
    for (const [more, field] of [
      [{ models: ["g*"] }, "models[0]"],
      [{ never_leaves: false }, "never_leaves"],
    ] as const) {
      const { status, body } = await make(more);
      expect([status, body.error.code]).toEqual([403, "permission_denied"]);
      expect(body.error.message).toStartWith(`${field}: must be `);
    }
    // A key lets itself go no more than it lets others go.
    for (const change of [{ models: null }, { models: ["gpt-*", "tiny", "more"] }, { never_leaves: false }]) {
      expect((await call("PATCH", "/v1/keys/key_agent", change, "key_agent")).status).toBe(403);
    }
    const { status, body } = await call("PATCH", "/v1/keys/key_agent", { models: ["tiny"] }, "key_agent");
    expect([status, body.models]).toEqual([200, ["tiny"]]);
  });

  test("limits a chain of keys to eight", async () => {
    let maker = "key_admin";
    for (let depth = 2; depth <= 8; depth++) {
      maker = (await call("POST", "/v1/keys", { name: `${depth}`, scopes: ["keys:manage"] }, maker)).body.id;
    }
    const ninth = await call("POST", "/v1/keys", { name: "9", scopes: ["keys:manage"] }, maker);
    expect({ status: ninth.status, code: ninth.body.error.code }).toEqual({ status: 403, code: "permission_denied" });
  });

  test("creates nothing by a key revoked during its request", async () => {
    const principal = await principalOf("key_admin");
    await call("DELETE", "/v1/keys/key_admin");
    const { status, body } = await call("POST", "/v1/keys", { name: "late" }, principal);
    expect({ status, message: body.error.message }).toEqual({ status: 401, message: invalidApiKeyMessage });
    expect((await call("POST", "/v1/keys/key_admin/rotate", {}, principal)).status).toBe(400);
    expect(await keys.listKeys({ accountId, environment: "live" }, { after: undefined, limit: 9 })).toHaveLength(1);
  });
});

describe("GET /v1/keys", () => {
  test("lists an account and environment's keys, newest first, in pages", async () => {
    for (const id of ["key_b1", "key_b2", "key_b3"]) await add({ id });
    await add({ id: "key_b4", environment: "dev" });
    const first = (await call("GET", "/v1/keys?limit=3")).body;
    expect(first).toMatchObject({ object: "list", first_id: "key_b3", last_id: "key_b1", has_more: true });
    expect(first.data).toHaveLength(3);
    const second = (await call("GET", "/v1/keys?limit=3&after=key_b1")).body;
    expect(second).toMatchObject({ first_id: "key_admin", last_id: "key_admin", has_more: false });
    expect(JSON.stringify([first, second])).not.toContain("digest");
    expect((await call("GET", "/v1/keys?limit=101")).status).toBe(400);
  });

  describe("GET /v1/keys with a search", () => {
    const listed = async (query: string, by?: string) =>
      (await call("GET", `/v1/keys?${query}`, undefined, by)).body.data.map(({ id }: { id: string }) => id);

    beforeEach(async () => {
      await add({ id: "key_b1", name: "Web Shop", last4: "Zx9k" });
      await add({ id: "key_b2", name: "Batch 100%", expiresAt: now + 50 });
      await add({ id: "key_b3", name: "web old", revoked: true, revokedAt: now });
      await add({ id: "key_b4", name: "ÖKO-Web", parentId: "key_b2" });
      await add({ id: "key_b5", name: "web of a member", personId: "usr_1" });
      await add({ id: "key_b6", name: "web elsewhere", environment: "dev" });
    });

    test("finds keys by part of the name in any case, by id or its beginning, and by the last four characters", async () => {
      expect(await listed("search=WEB")).toEqual(["key_b5", "key_b4", "key_b3", "key_b1"]);
      expect(await listed("search=%C3%B6ko")).toEqual(["key_b4"]);
      expect(await listed("search=zx9K")).toEqual(["key_b1"]);
      expect(await listed("search=x9k")).toEqual([]);
      expect(await listed("search=key_b2")).toEqual(["key_b2"]);
      expect(await listed("search=key_a")).toEqual(["key_admin"]);
      expect(await listed("search=key_")).toEqual([]);
      expect(await listed("search=%25")).toEqual(["key_b2"]);
      expect(await listed("search=_")).toEqual([]);
    });

    test("filters keys by the shown status, which includes the creators'", async () => {
      now += 60;
      expect(await listed("status=expired")).toEqual(["key_b4", "key_b2"]);
      expect(await listed("status=revoked")).toEqual(["key_b3"]);
      expect(await listed("status=active&search=web")).toEqual(["key_b5", "key_b1"]);
    });

    test("shows a member, and a member's key, only the member's own keys", async () => {
      expect(await listed("search=web", "key_b5")).toEqual(["key_b5"]);
      expect(await listed("status=revoked", "key_b5")).toEqual([]);
    });

    test("returns every match of a key search once over all pages", async () => {
      const seen: string[] = [];
      for (let after = ""; ; ) {
        const { body } = await call("GET", `/v1/keys?search=web&limit=1${after}`);
        seen.push(...body.data.map(({ id }: { id: string }) => id));
        if (!body.has_more) break;
        after = `&after=${body.last_id}`;
      }
      expect(seen).toEqual(["key_b5", "key_b4", "key_b3", "key_b1"]);
    });

    test("examines five thousand keys for one page, and says where the next begins", async () => {
      const many = Array.from({ length: 5_010 }, (_, i) =>
        keyRecordFor({ accountId, createdAt: now, id: `key_c${String(i).padStart(4, "0")}`, name: "One of many" }),
      );
      await db.begin("IMMEDIATE", async (tx) => {
        for (let from = 0; from < many.length; from += 500) {
          await tx`INSERT INTO api_keys ${tx(many.slice(from, from + 500).map(apiKeys.row))}`;
        }
      });
      const { body } = await call("GET", "/v1/keys?search=shop");
      expect(body).toEqual({ object: "list", data: [], first_id: null, last_id: "key_c0010", has_more: true });
      expect(await listed("search=shop&after=key_c0010")).toEqual(["key_b1"]);
      const full = await call("GET", "/v1/keys?search=many&limit=2");
      expect(full.body).toMatchObject({ last_id: "key_c5008", has_more: true });
    });

    test("yields to other work while a key search examines keys", async () => {
      for (let i = 100; i < 200; i++) await add({ id: `key_d${i}`, parentId: i === 100 ? "key_b1" : `key_d${i - 1}` });
      let [reads, most] = [0, 0];
      const findChainById = keys.findChainById.bind(keys);
      const read = spyOn(keys, "findChainById").mockImplementation((id) => {
        most = Math.max(most, ++reads);
        return findChainById(id === "key_admin" ? id : "key_b1");
      });
      let turn = setImmediate(function tick() {
        reads = 0;
        turn = setImmediate(tick);
      });
      await listed("status=revoked&limit=100");
      clearImmediate(turn);
      expect(read.mock.calls.length).toBeGreaterThan(100);
      expect(most).toBeLessThan(50);
      read.mockRestore();
    });

    test("names the error of a key query", async () => {
      const message = async (query: string) => (await call("GET", `/v1/keys?${query}`)).body.error.message;
      expect(await message("status=ended")).toBe(
        'status: must be one of active, expired, revoked, suspended (got "ended").',
      );
      expect(await message("search=")).toStartWith("search: must be 1 to 100 characters");
      expect(await message("search=web&after=key_b6")).toStartWith("after: must be the id of a key of this list");
    });
  });

  test("shows a key as ended once one of its creators ends", async () => {
    await add({ id: "key_b1", parentId: "key_admin", expiresAt: now + 50 });
    await add({ id: "key_b2", parentId: "key_b1" });
    await add({ id: "key_c" });
    const states = async () =>
      (await call("GET", "/v1/keys", undefined, "key_c")).body.data.map((key: { status: string }) => key.status);
    expect(await states()).toEqual(["active", "active", "active", "active"]);
    now += 50;
    expect(await states()).toEqual(["active", "expired", "expired", "active"]);
    await call("DELETE", "/v1/keys/key_admin", undefined, "key_c");
    expect(await states()).toEqual(["active", "revoked", "revoked", "revoked"]);
    expect((await call("GET", "/v1/keys/key_b2", undefined, "key_c")).body.status).toBe("revoked");
  });
});

describe("quotas of a key", () => {
  const quotas = [
    { unit: "requests", amount: 100, per: "5h" },
    { unit: "usd", amount: 2.5, per: "week", models: ["gpt-*"], hard_stop: true },
  ];
  const shown = [
    { unit: "requests", amount: 100, per: "5h", window: "rolling" },
    { unit: "usd", amount: 2.5, per: "week", window: "calendar", models: ["gpt-*"], hard_stop: true },
  ];

  test("sets, changes, removes and shows quotas of a key with windows and usage", async () => {
    const { status, body } = await call("POST", "/v1/keys", { name: "a", quotas });
    expect([status, body.quotas]).toEqual([200, shown]);
    const found = (await call("GET", `/v1/keys/${body.id}`)).body;
    const monday = 1_799_971_200 - 4 * 86_400;
    expect(found.quotas).toEqual(shown);
    expect(found.quotas_used).toEqual([
      {
        ...{ owner: "key", owner_id: body.id, unit: "requests", amount: 100, used: 2, per: "5h", window: "rolling" },
        ...{ left: 98, models: null, tag: null, hard_stop: false, starts_at: now - 60, resets_at: now - 60 + 18_000 },
        ...{ reason: "key_quota", ask: "the owner of the key" },
      },
      {
        ...{ owner: "key", owner_id: body.id, unit: "usd", amount: 2.5, used: 0.4, per: "week", window: "calendar" },
        ...{ left: 2.1, models: ["gpt-*"], tag: null, hard_stop: true, starts_at: monday, resets_at: monday + 604_800 },
        ...{ reason: "key_quota", ask: "the owner of the key" },
      },
    ]);
    const changed = await call("PATCH", `/v1/keys/${body.id}`, { quotas: [{ ...shown[0], amount: 50 }] });
    expect(changed.body.quotas).toEqual([{ ...shown[0], amount: 50 }]);
    expect((await call("PATCH", `/v1/keys/${body.id}`, { name: "b" })).body.quotas).toHaveLength(1);
    expect((await call("PATCH", `/v1/keys/${body.id}`, { quotas: null })).body.quotas).toEqual([]);
    expect(await audit({ targetId: body.id })).toMatchObject([
      { detail: { quotas: { before: [{ amount: 50 }], after: [] } } },
      {},
      { detail: { quotas: { before: shown } } },
      { detail: { quotas: shown } },
    ]);
  });

  test.each([
    [[{ unit: "words", amount: 1, per: "day" }], "quotas[0].unit: must be"],
    [[{ unit: "tokens", amount: -1, per: "day" }], "quotas[0].amount: must be"],
    [[{ unit: "tokens", amount: 0.5, per: "day" }], "quotas[0].amount: must be a whole number of tokens"],
    [[{ unit: "tokens", amount: 1, per: 30 }], "quotas[0].per: must be"],
    [[{ unit: "tokens", amount: 1, per: "5h", window: "calendar" }], "quotas[0].window: must be rolling"],
    [[{ unit: "tokens", amount: 1, per: "day", models: [] }], "quotas[0].models: must"],
    [[{ unit: "tokens", amount: 1, per: "day", models: ["a*b"] }], "quotas[0].models[0]: must"],
    [[{ unit: "tokens", amount: 1, per: "day", tag: "a b" }], "quotas[0].tag: must"],
    [[{ ...quotas[0], hard_stop: true }], "quotas[0].hard_stop: must be left out of a quota of requests"],
    [[quotas[0], quotas[0]], "quotas[1].per: must not be that of another quota"],
    [Array.from({ length: 17 }, (_, i) => ({ unit: "tokens", amount: 1, per: 60 + i })), "quotas: must"],
  ])("refuses an invalid quota by position and field: %j", async (wrong, message) => {
    const { status, body } = await call("POST", "/v1/keys", { name: "a", quotas: wrong });
    expect([status, body.error.message]).toEqual([400, expect.stringContaining(message)]);
  });
});

test("sets, changes and clears a key's models, priority, tags and note, each list deduplicated and sorted", async () => {
  const given = {
    models: ["tiny", "gpt-*", "tiny"],
    tools: ["github/search", "crm", "crm"],
    never_leaves: true,
    priority: "low",
    response_cache: "off",
    tags: ["b", "a", "b"],
    note: " for\nthe batch ",
  };
  const said = { response_cache: "off", tags: ["a", "b"], note: "for\nthe batch" };
  const kept = {
    models: ["gpt-*", "tiny"],
    tools: ["crm", "github/search"],
    never_leaves: true,
    priority: "low",
    ...said,
  };
  const { body } = await call("POST", "/v1/keys", { name: "a", ...given });
  expect(body).toMatchObject(kept);
  const change = (request: object) => call("PATCH", `/v1/keys/${body.id}`, request);
  expect((await change({ name: "b" })).body).toMatchObject(kept);
  const none = {
    ...{ models: null, tools: null, never_leaves: false, priority: null, response_cache: null },
    ...{ tags: [], note: null },
  };
  expect((await change({ ...none, tags: null })).body).toMatchObject(none);
  expect((await change({ note: "  " })).body.note).toBeNull();
  expect((await audit({ targetId: body.id })).map(({ detail }) => detail)).toMatchObject([
    {
      models: { before: kept.models, after: null },
      tools: { before: kept.tools, after: null },
      never_leaves: { before: true, after: false },
      priority: { before: "low", after: null },
      response_cache: { before: "off", after: null },
      tags: { before: kept.tags, after: [] },
      note: { before: kept.note, after: null },
    },
    { name: { before: "a", after: "b" } },
    kept,
  ]);
  expect(await audit({ targetId: body.id })).toHaveLength(3);
});

describe("a single key", () => {
  test("answers 404 to every method for another owner's key and an unknown one", async () => {
    const other = {
      id: "acct_2",
      name: "B",
      tier: "free",
      status: "active",
      overrides: {},
      storeChats: false,
      tools: null,
      createdAt: 1,
    } as const;
    const about = { accountId: "acct_2", targetId: "acct_2", detail: {} };
    const origin = { nowSeconds: now, clientAddress: null, requestId: null };
    await new SqlAccountStore(db).insertAccount(
      other,
      auditEvent("account.created", { type: "operator" }, origin, about),
    );
    await add({ id: "key_theirs", accountId: "acct_2" });
    await add({ id: "key_dev", environment: "dev" });
    const before = await audit();
    for (const id of ["key_theirs", "key_dev", "key_none", "..%2fkeys"]) {
      const answers = [
        await call("GET", `/v1/keys/${id}`),
        await call("PATCH", `/v1/keys/${id}`, { name: "mine" }),
        await call("DELETE", `/v1/keys/${id}`),
        await call("POST", `/v1/keys/${id}/rotate`, {}),
      ];
      for (const { status, body } of answers)
        expect({ status, code: body.error.code }).toEqual({ status: 404, code: "not_found" });
    }
    expect(await audit()).toEqual(before);
  });

  test("changes and clears fields of a key, and audits old and new values", async () => {
    await add({ id: "key_b", expiresAt: now + 99, rateLimit: 5, rateLimitWindow: 60, name: "old" });
    const request = { name: " new ", expires_at: null, rate_limit: null, allowed_ips: ["192.0.2.7/24"] };
    const { status, body } = await call("PATCH", "/v1/keys/key_b", request);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      name: "new",
      expires_at: null,
      rate_limit: null,
      rate_limit_window: null,
      allowed_ips: ["192.0.2.0/24"],
    });
    expect((await call("GET", "/v1/keys/key_b")).body).toEqual({ ...body, quotas_used: [] });
    const [event] = await audit({ action: "key.updated" });
    expect(event?.detail).toEqual({
      name: { before: "old", after: "new" },
      expires_at: { before: now + 99, after: null },
      allowed_ips: { before: [], after: ["192.0.2.0/24"] },
      rate_limit: { before: 5, after: null },
      rate_limit_window: { before: 60, after: null },
    });
    expect(drops).toBe(1);
    expect((await call("PATCH", "/v1/keys/key_b", { name: "new" })).body).toEqual(body);
    expect(await audit({ action: "key.updated" })).toHaveLength(1);
    expect((await call("PATCH", "/v1/keys/key_b", { scopes: null })).status).toBe(400);
  });

  test("revokes a key permanently, repeats without an error, and refuses changing or rotating it", async () => {
    await add({ id: "key_b" });
    const first = await call("DELETE", "/v1/keys/key_b");
    expect(first.status).toBe(200);
    expect(first.body).toMatchObject({ id: "key_b", status: "revoked", revoked_at: now });
    now += 5;
    expect((await call("DELETE", "/v1/keys/key_b")).body).toEqual(first.body);
    expect(await audit({ action: "key.revoked" })).toHaveLength(1);
    for (const [method, path] of [
      ["PATCH", "/v1/keys/key_b"],
      ["POST", "/v1/keys/key_b/rotate"],
    ] as const) {
      const { status, body } = await call(method, path, {});
      expect({ status, code: body.error.code }).toEqual({ status: 400, code: "invalid_request" });
    }
  });

  test("lets no app manage or read a key", async () => {
    const app = { ...(await principalOf("key_admin")), appId: "app_1" };
    for (const [method, path] of [
      ["GET", "/v1/keys"],
      ["POST", "/v1/keys"],
      ["DELETE", "/v1/keys/key_admin"],
    ] as const) {
      const { status, body } = await call(method, path, method === "POST" ? { name: "a" } : undefined, app);
      expect({ status, code: body.error.code }).toEqual({ status: 403, code: "permission_denied" });
    }
  });
});

describe("POST /v1/keys/{id}/suspend and resume", () => {
  test("limits the rate of suspensions, and does not count those that change nothing", async () => {
    await add({ id: "key_a" });
    await takeChanges(299);
    const by = async (verb: string) => (await call("POST", `/v1/keys/key_a/${verb}`)).status;
    expect([await by("suspend"), await by("suspend"), await by("resume"), drops]).toEqual([200, 200, 429, 1]);
  });

  test("refuses a resumption that an operator's suspension overtakes", async () => {
    await add({ id: "key_a" });
    await call("POST", "/v1/keys/key_a/suspend");
    const find = keys.findChainById.bind(keys);
    const overtaken = spyOn(keys, "findChainById").mockImplementation(async (id) => {
      const chain = await find(id);
      if (id === "key_a") await keys.setSuspended(id, { by: "operator", isSuspended: true }, testEvent(now));
      return chain;
    });
    const { status, body } = await call("POST", "/v1/keys/key_a/resume");
    overtaken.mockRestore();
    expect([status, body.error.message]).toEqual([403, expect.stringContaining("An operator suspended this key")]);
    expect((await find("key_a"))?.keys[0].suspendedBy).toBe("operator");
  });

  test("lets a member resume only keys that members suspended", async () => {
    await add({ id: "key_member", personId: "usr_1" });
    await add({ id: "key_a", personId: "usr_1" });
    const by = async (who: string, verb: string) =>
      (await call("POST", `/v1/keys/key_a/${verb}`, undefined, who)).status;
    expect([await by("key_member", "suspend"), await by("key_member", "resume")]).toEqual([200, 200]);
    await by("key_admin", "suspend");
    expect([await by("key_member", "suspend"), await by("key_member", "resume")]).toEqual([200, 403]);
    expect(await by("key_admin", "resume")).toBe(200);
  });
});

describe("POST /v1/keys/revoke", () => {
  const revoke = (madeBy: string, by?: string) => call("POST", "/v1/keys/revoke", { made_by: madeBy }, by);

  test("keeps the caller's own key, and revokes all others of its maker", async () => {
    for (const id of ["key_a", "key_b", "key_c"]) await add({ id, createdBy: "usr_1" });
    const { body } = await revoke("usr_1", "key_b");
    expect(body).toMatchObject({ revoked: ["key_c", "key_a"], kept: ["key_b"] });
    expect((await keys.findChainById("key_b"))?.keys[0].revoked).toBe(false);
  });

  test("limits the rate of such requests, and revokes a maker's keys among hundreds of others", async () => {
    await add({ id: "key_a", createdBy: "usr_1" });
    for (let i = 0; i < 260; i++) await add({ id: `key_b${i}`, digest: `d${i}`, createdBy: "usr_2" });
    expect((await revoke("usr_1")).body.revoked).toEqual(["key_a"]);
    await takeChanges(299);
    expect((await revoke("usr_1")).status).toBe(429);
  });
});

describe("POST /v1/keys/{id}/rotate", () => {
  test("returns a rotated key, keeps the old one for a day by default, and moves its children", async () => {
    await add({ id: "key_b", parentId: "key_admin", rateLimit: 5, rateLimitWindow: 60, expiresAt: now + 1_000_000 });
    await add({ id: "key_c", parentId: "key_b" });
    const { status, headers, body } = await call("POST", "/v1/keys/key_b/rotate");
    expect(status).toBe(200);
    expect(headers.get("cache-control")).toBe("no-store");
    expect(body).toMatchObject({
      replaces: "key_b",
      status: "active",
      rate_limit: 5,
      expires_at: now + 1_000_000,
      revoked_at: null,
    });
    expect((await keys.findChainByDigest(keyDigest(body.key, pepper)))?.keys[0].limitId).toBe("key_b");
    expect((await call("GET", "/v1/keys/key_b")).body).toMatchObject({ status: "active", revoked_at: now + 86_400 });
    expect((await keys.findChainById("key_c"))?.keys.map(({ id }) => id)).toEqual(["key_c", body.id, "key_admin"]);
    expect(await audit({ action: "key.rotated" })).toMatchObject([
      { targetId: "key_b", detail: { successor_id: body.id, overlap_seconds: 86_400, revoked_at: now + 86_400 } },
    ]);
    now += 86_400;
    expect((await call("GET", "/v1/keys/key_b")).body.status).toBe("revoked");
    expect((await call("GET", "/v1/keys/key_c")).body.status).toBe("active");
  });

  test("ends the old key at once without an overlap, rotates a key by itself, and refuses a second rotation", async () => {
    const { body } = await call("POST", "/v1/keys/key_admin/rotate", { overlap_seconds: 0 });
    expect((await keys.findChainById("key_admin"))?.keys[0].revokedAt).toBe(now);
    expect((await call("GET", "/v1/keys/key_admin", undefined, body.id)).body.status).toBe("revoked");
    const next = await call("POST", `/v1/keys/${body.id}/rotate`, { overlap_seconds: 60 }, body.id);
    expect(next.status).toBe(200);
    const again = await call("POST", `/v1/keys/${body.id}/rotate`, {}, body.id);
    expect(again.status).toBe(400);
    expect(again.body.error.message).toContain("rotate its successor");
    expect((await call("POST", `/v1/keys/${next.body.id}/rotate`, {}, body.id)).status).toBe(403);
    expect(
      (await call("POST", `/v1/keys/${next.body.id}/rotate`, { overlap_seconds: 2_592_001 }, next.body.id)).status,
    ).toBe(400);
  });
});

test("requires keys:manage on all key routes, with answers that fit the OpenAPI document", async () => {
  expect(new Set(routes.map((route) => route.access))).toEqual(new Set(["keys:manage"]));
  const document = openApiDocument(routes, "1.0.0");
  const answers: [string, string, Answer][] = [
    ["/v1/keys", "post", await call("POST", "/v1/keys", { name: "a", monthly_spend: 0.5 })],
    ["/v1/keys", "get", await call("GET", "/v1/keys")],
    ["/v1/keys/{id}", "get", await call("GET", "/v1/keys/key_admin")],
    ["/v1/keys/{id}", "patch", await call("PATCH", "/v1/keys/key_admin", { name: "b" })],
    ["/v1/keys/{id}/rotate", "post", await call("POST", "/v1/keys/key_admin/rotate", {})],
    ["/v1/keys/{id}", "delete", await call("DELETE", "/v1/keys/key_admin")],
  ];
  for (const [path, method, { status, body }] of answers) {
    expect(status).toBe(200);
    expect(answerMismatches(document, [method, path, 200], body)).toEqual([]);
  }
});
