// A server, and two, whose records are in PostgreSQL: all that it keeps is there, for whoever starts with the same secret.
import { afterEach, describe, expect, test } from "bun:test";
import { SQL } from "bun";
import { migrationsFor } from "../../src/storage/sql/migrations.ts";
import { describedBy, type Operation } from "../hostile/operations.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { makeOperatorKey } from "../support/operator-key.ts";
import { freshDatabase, sharedPostgres } from "../support/postgres.ts";
import { type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

const secret = "5a".repeat(32);
const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

async function upstreamServer(): Promise<ScriptedUpstream> {
  const upstream = await startUpstream();
  stack.push(upstream);
  return upstream;
}

async function start(url: string, upstream: ScriptedUpstream): Promise<TestServer> {
  const server = await startHeadrace({
    yaml: upstreamYaml(upstream),
    env: { HEADRACE_DATABASE_URL: url, HEADRACE_SECRET: secret },
  });
  stack.push(server);
  return server;
}

function chat(server: TestServer, key: string, more: object = {}): Promise<Response> {
  return server.request("/v1/chat/completions", {
    headers: { authorization: `Bearer ${key}` },
    body: { model: "upstream-model", messages: [{ role: "user", content: "Hi" }], ...more },
  });
}

async function createKey(
  server: TestServer,
  by: string,
  name: string,
  scopes: readonly string[],
): Promise<{ id: string; key: string }> {
  const response = await server.request("/v1/keys", {
    headers: { authorization: `Bearer ${by}` },
    body: { name, scopes },
  });
  expect(response.status).toBe(200);
  return (await response.json()) as { id: string; key: string };
}

async function read<Body>(server: TestServer, path: string, key = server.key): Promise<Body> {
  const response = await server.request(path, { headers: { authorization: `Bearer ${key}` } });
  expect(response.status).toBe(200);
  return (await response.json()) as Body;
}

const january = "start=2020-01-01T00:00:00Z";

describe("one server", () => {
  test("serves, meters and stores keys and chats on PostgreSQL, and continues with an empty data directory", async () => {
    const [url, upstream] = [await freshDatabase(), await upstreamServer()];
    const first = await start(url, upstream);
    const { key } = await createKey(first, first.key, "of the test", ["chat:write", "usage:read", "chat:read"]);
    expect((await chat(first, key, { store: true, metadata: { topic: "ünï" } })).status).toBe(200);
    const streamed = await chat(first, key, { stream: true });
    expect(await streamed.text()).toEndWith("data: [DONE]\n\n");
    type Usage = { data: { requests: number; total_tokens: number }[] };
    const usage = () => read<Usage>(first, `/v1/usage?${january}`, key);
    const booked = await until(async () => {
      const { data } = await usage();
      return data[0]?.requests === 2 ? data : undefined;
    }, "both requests are in the report");
    expect(booked).toMatchObject([{ requests: 2, total_tokens: 18 }]);
    const requests = await read<{ data: unknown[] }>(first, `/v1/requests?${january}`, first.key);
    expect(requests.data).toHaveLength(2);
    type Chats = { data: { metadata: unknown }[] };
    const chats = await until(async () => {
      const { data } = await read<Chats>(first, "/v1/chat/completions?metadata[topic]=ünï", key);
      return data.length === 1 ? data : undefined;
    }, "the chat is stored");
    expect(chats).toMatchObject([{ metadata: { topic: "ünï" } }]);
    await stack.pop()?.[Symbol.asyncDispose]();

    const second = await start(url, upstream);
    expect(second.firstKey.key).toBeUndefined();
    expect((await chat(second, key)).status).toBe(200);
    const { data } = await read<{ data: { name: string }[] }>(second, "/v1/keys", first.key);
    expect(data.map(({ name }) => name)).toContain("of the test");
  });

  test("shows operators the database in use, with a key made by a command beside the server", async () => {
    const url = await freshDatabase();
    const server = await start(url, await upstreamServer());
    const operator = await makeOperatorKey(server.dataDir, [], { HEADRACE_DATABASE_URL: url, HEADRACE_SECRET: secret });
    type System = { database: { kind: string; size_bytes: number; wal_bytes: number | null; state: string } };
    const { database } = await read<System>(server, "/v1/admin/system", operator);
    expect(database).toEqual({ kind: "postgres", size_bytes: expect.any(Number), wal_bytes: null, state: "ok" });
    expect(database.size_bytes).toBeGreaterThan(1_000_000);
    expect(server.logText()).not.toContain(new URL(url).password);
  });

  // hardening: K11
  test("refuses text with U+0000, which PostgreSQL cannot store, by its parameter or field", async () => {
    const url = await freshDatabase();
    const server = await start(url, await upstreamServer());
    const operator = await makeOperatorKey(server.dataDir, [], { HEADRACE_DATABASE_URL: url, HEADRACE_SECRET: secret });
    const { operations } = await describedBy(server);
    const texts: string[] = [];
    const ask = async ({ method }: Operation, path: string, body?: unknown) => {
      const response = await server.request(path, { method, body, headers: { authorization: `Bearer ${operator}` } });
      texts.push(`${response.status} ${method} ${path} ${await response.text()}`);
    };
    for (const operation of operations.filter(({ body }) => !body?.isForm)) {
      const path = operation.path.replaceAll(/\{\w+\}/g, "a%00b");
      const example = operation.body?.example ?? {};
      if (path !== operation.path) await ask(operation, path, operation.body && example);
      for (const { name } of operation.query) await ask(operation, `${path.replaceAll("%00", "")}?${name}=a%00b`);
      for (const [name, value] of Object.entries(example)) {
        const spoilt = { [name]: Array.isArray(value) ? ["a\0b"] : "a\0b" };
        await ask(operation, path.replaceAll("%00", ""), { ...example, ...spoilt });
      }
    }
    for (const kept of [{ metadata: { topic: "a\0b" } }, { metadata: { "a\0b": "x" } }, { user: "a\0b" }]) {
      const answer = await chat(server, server.key, { store: true, ...kept });
      texts.push(`${answer.status} ${await answer.text()}`);
    }
    const labelled = await server.request("/v1/chat/completions?metadata[topic]=a%00b");
    texts.push(`${labelled.status} ${await labelled.text()}`);
    expect(texts.length).toBeGreaterThan(150);
    expect(texts.filter((text) => text.includes("A text has") || text.startsWith("5"))).toEqual([]);
    expect(texts.filter((text) => text.includes("must not have the character U+0000")).length).toBeGreaterThan(80);
  });
});

describe("two servers on one PostgreSQL", () => {
  test("shares schema, account and keys between two servers that start at once on an empty database", async () => {
    const url = await (await sharedPostgres()).emptyDatabase();
    const upstream = await upstreamServer();
    const [one, other] = await Promise.all([start(url, upstream), start(url, upstream)]);
    const db = new SQL(url, { max: 1 });
    const counts = await db`
      SELECT (SELECT count(*) FROM schema_migrations) AS steps, (SELECT count(*) FROM accounts) AS accounts,
        (SELECT count(*) FROM signing_keys) AS keys`;
    await db.close();
    expect([...counts]).toEqual([{ steps: String(migrationsFor("postgres").length), accounts: "1", keys: "1" }]);
    const firstKey = one.key || other.key;
    const { id, key } = await createKey(one, firstKey, "shared", ["chat:write"]);
    expect((await chat(other, key)).status).toBe(200);
    expect((await chat(one, key)).status).toBe(200);
    const { data } = await read<{ data: { id: string }[] }>(other, "/v1/keys", firstKey);
    expect(data.map((one) => one.id)).toContain(id);
    const revoked = await one.request(`/v1/keys/${id}`, {
      method: "DELETE",
      headers: { authorization: `Bearer ${firstKey}` },
    });
    expect(revoked.status).toBe(200);
    await until(async () => (await chat(other, key)).status === 401, "the other one refuses it as well", 3_000);
  });
});
