// The header Idempotency-Key of management requests, and the store that replicas share.
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { GatewayError } from "../../src/base/errors.ts";
import { idempotencySeconds } from "../../src/domain/idempotency.ts";
import { SqlIdempotentRequests } from "../../src/storage/tables/operations/idempotent-requests.ts";
import { onEachDatabase, type TestDatabase } from "../support/databases.ts";
import { type Gateway, startGateway } from "../support/nodes.ts";

let server: Gateway;

beforeAll(async () => {
  server = await startGateway();
});

afterAll(() => server[Symbol.asyncDispose]());

async function post(path: string, key: string, body: unknown, credential = server.operator) {
  const headers = { authorization: `Bearer ${credential}`, "idempotency-key": key };
  const response = await server.request(path, { method: "POST", headers, body });
  return {
    status: response.status,
    repeated: response.headers.get("idempotent-replayed"),
    body: await response.json(),
  };
}

const accounts = async () => (await server.admin("GET", "/accounts")).body.data.length;

test("answers a repeated request like the first one and creates one account", async () => {
  const before = await accounts();
  const first = await post("/v1/admin/accounts", "make-1", { name: "Books" });
  expect([first.status, first.repeated]).toEqual([200, null]);
  const second = await post("/v1/admin/accounts", "make-1", { name: "Books" });
  expect(second).toEqual({ ...first, repeated: "true" });
  expect(await accounts()).toBe(before + 1);
});

test("repeats the secret of a new key, which is not readable in the database", async () => {
  const first = await post("/v1/keys", "key-1", { name: "CI" }, server.key);
  expect((await post("/v1/keys", "key-1", { name: "CI" }, server.key)).body.key).toBe(first.body.key);
  using db = new Database(join(server.dataDir, "headrace.db"), { readonly: true });
  const rows = JSON.stringify(db.query("SELECT * FROM idempotent_requests").all());
  expect(rows).toContain("v1.");
  expect(rows).not.toContain(first.body.key);
});

test("refuses another body or path with the same key, but not another credential", async () => {
  await post("/v1/admin/accounts", "same", { name: "One" });
  const other = await post("/v1/admin/accounts", "same", { name: "Two" });
  expect([other.status, other.body.error.message]).toEqual([400, expect.stringContaining("with another request")]);
  expect((await post("/v1/admin/node-tokens", "same", {})).status).toBe(400);
  expect((await post("/v1/keys", "same", { name: "Own" }, server.key)).status).toBe(200);
});

test("keeps no refused request, and refuses a key that is no plain text", async () => {
  expect((await post("/v1/admin/accounts", "fix", { name: "A", tier: "none" })).status).toBe(400);
  expect((await post("/v1/admin/accounts", "fix", { name: "A", tier: "pro" })).status).toBe(200);
  expect((await post("/v1/admin/accounts", "two words", { name: "A" })).status).toBe(400);
});

test("makes one account of requests that arrive at the same time", async () => {
  const before = await accounts();
  const answers = await Promise.all([1, 2, 3, 4].map(() => post("/v1/admin/accounts", "burst", { name: "Burst" })));
  expect(answers.map(({ status }) => status).filter((status) => status !== 503)).not.toHaveLength(0);
  expect(await accounts()).toBe(before + 1);
});

test("refuses to repeat a request that failed after its change, and makes no second account", async () => {
  const store = server.governance.accounts;
  const insert = store.insertAccount.bind(store);
  store.insertAccount = async (...given) => {
    await insert(...given);
    throw new GatewayError("service_unavailable", "No answer from the database.");
  };
  const before = await accounts();
  const first = await post("/v1/admin/accounts", "unclear", { name: "Once" });
  store.insertAccount = insert;
  const second = await post("/v1/admin/accounts", "unclear", { name: "Once" });
  expect([first.status, second.status]).toEqual([503, 400]);
  expect(second.body.error.message).toContain("the answer to the first request is not known");
  expect(await accounts()).toBe(before + 1);
});

test("refuses to repeat a request whose answer was too long to store", async () => {
  const spec = { requests_per_minute: 5, tokens_per_minute: 6 };
  const documents = Array.from({ length: 150 }, (_, index) => ({ kind: "tier", name: `long-${index}`, spec }));
  const body = { managed_by: "long", documents, plan: true };
  const first = await post("/v1/admin/apply", "long", body);
  expect([first.status, JSON.stringify(first.body).length > 16 * 1024]).toEqual([200, true]);
  const second = await post("/v1/admin/apply", "long", body);
  expect([second.status, second.body.error.message]).toEqual([400, expect.stringContaining("was carried out")]);
});

test("stores no request over the rate limit of its key", async () => {
  const { throttle } = server.governance;
  using db = new Database(join(server.dataDir, "headrace.db"), { readonly: true });
  const stored = () => db.query("SELECT 1 FROM idempotent_requests").all().length;
  const before = stored();
  const require = throttle.require.bind(throttle);
  throttle.require = async (what) => {
    if (what === "repeatable") throw new GatewayError("rate_limit_exceeded", "Too many.");
  };
  const refused = await post("/v1/admin/accounts", "over", { name: "Over" });
  throttle.require = require;
  expect([refused.status, stored()]).toEqual([429, before]);
});

let opened: TestDatabase;

onEachDatabase((databases) => {
  const first = { owner: "key_1", key: "k", request: "r", at: 1_800_000_000, answer: null };

  test("knows the first request of a credential until it is a day old", async () => {
    opened = await databases.open();
    const store = new SqlIdempotentRequests(opened.db);
    const replica = new SqlIdempotentRequests(await opened.openAgain());
    expect(await store.claim(first)).toBeUndefined();
    expect(await replica.claim({ ...first, request: "other" })).toEqual(first);
    await store.finish({ ...first, answer: "sealed" });
    expect(await replica.claim(first)).toEqual({ ...first, answer: "sealed" });
    expect(await store.claim({ ...first, owner: "key_2" })).toBeUndefined();
    expect(await store.claim({ ...first, at: first.at + idempotencySeconds })).toBeUndefined();
    expect(await store.deleteExpired(first.at + 2 * idempotencySeconds, 10)).toBe(2);
    await opened.close();
  });

  test("keeps a bounded number of requests of a credential, the newest ones and those that still run", async () => {
    opened = await databases.open();
    const store = new SqlIdempotentRequests(opened.db, 5);
    expect(await store.claim({ ...first, key: "running" })).toBeUndefined();
    for (let n = 0; n <= 6; n++) {
      const one = { ...first, key: `k${n}`, at: first.at + n };
      await store.claim(one);
      await store.finish({ ...one, answer: "sealed" });
    }
    const rows: unknown[] = await opened.db`SELECT 1 FROM idempotent_requests WHERE answer IS NOT NULL`;
    expect(rows).toHaveLength(6);
    expect(await store.claim({ ...first, key: "k0", at: first.at + 5_000 })).toBeUndefined();
    // A request that still runs would be carried out twice.
    expect(await store.claim({ ...first, key: "running" })).toMatchObject({ key: "running" });
    await opened.close();
  });
});
