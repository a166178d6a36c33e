// One budget for the accounts of an organization: exact over replicas, after kill -9, and when accounts join and leave.
import { afterEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { makeOperatorKey } from "../support/operator-key.ts";
import { freshDatabase } from "../support/postgres.ts";
import { startRedis } from "../support/redis.ts";
import { startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";
import { startServerProcess } from "../support/server-process.ts";

const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

function opened<Part extends AsyncDisposable>(part: Part): Part {
  stack.push(part);
  return part;
}

// biome-ignore lint/suspicious/noExplicitAny: each test states what must be in the answer
type Body = any;

type At = Pick<TestServer, "url">;

function send({ url }: At, key: string, method: string, path: string, body?: unknown): Promise<Response> {
  return fetch(`${url}/v1${path}`, {
    ...{ method, headers: { authorization: `Bearer ${key}`, "content-type": "application/json" } },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

async function call(server: At, key: string, method: string, path: string, body?: unknown): Promise<Body> {
  const response = await send(server, key, method, path, body);
  const answer = (await response.json()) as Body;
  expect([path, response.status, answer]).toEqual([path, 200, answer]);
  return answer;
}

function chat(server: At, key: string): Promise<Response> {
  const messages = [{ role: "user", content: "Hi" }];
  return send(server, key, "POST", "/chat/completions", { model: "upstream-model", max_tokens: 5, messages });
}

async function account(server: At, operator: string, name: string): Promise<{ id: string; key: string }> {
  const { id } = await call(server, operator, "POST", "/admin/accounts", { name, tier: "enterprise" });
  const made = await call(server, operator, "POST", `/admin/accounts/${id}/keys`, { name, environment: "live" });
  return { id, key: made.key };
}

test("admits exactly the organization's budget for parallel requests of two accounts at two replicas", async () => {
  const redis = opened(await startRedis());
  const env = {
    HEADRACE_DATABASE_URL: await freshDatabase(),
    HEADRACE_REDIS_URL: redis.url,
    HEADRACE_SECRET: "7b".repeat(32),
  };
  const yaml = upstreamYaml(opened(await startUpstream()));
  const start = async () => opened(await startHeadrace({ yaml, env }));
  const [one, two] = [await start(), await start()];
  const operator = await makeOperatorKey(one.dataDir, [], env);
  const [shop, lab] = [await account(one, operator, "Shop"), await account(one, operator, "Lab")];
  const quotas = [{ unit: "requests", amount: 20, per: "day" }];
  const { id } = await call(one, operator, "POST", "/admin/organizations", { name: "Group", quotas });
  // The usage from before an account joins counts as well.
  expect((await chat(one, shop.key)).status).toBe(200);
  for (const joining of [shop, lab]) {
    await call(one, operator, "PUT", `/admin/organizations/${id}/accounts/${joining.id}`);
  }
  const knows = async (server: At) => {
    // A replica that cannot read the usage in time refuses, and reads it again.
    const { quotas = [] } = (await (await send(server, lab.key, "GET", "/limits")).json()) as Body;
    return quotas[0]?.reason === "organization_quota" && quotas[0].used === 1;
  };
  await until(async () => (await knows(one)) && (await knows(two)), "both replicas know the organization", 60_000);
  const statuses: Record<number, number> = {};
  await Promise.all(
    Array.from({ length: 60 }, async (_, i) => {
      const response = await chat([one, two][i % 2] as TestServer, (i % 4 < 2 ? shop : lab).key);
      await response.arrayBuffer();
      statuses[response.status] = (statuses[response.status] ?? 0) + 1;
    }),
  );
  expect(statuses).toEqual({ 200: 19, 403: 41 });
  const refused = (await (await chat(two, shop.key)).json()) as Body;
  expect(refused.error.message).toContain("the quota of the organization per day");
  expect(refused.quota).toMatchObject({
    ...{ reason: "organization_quota", owner: "organization", unit: "requests", limit: 20, used: 20 },
    ask: "an operator of this server",
    resets_at: expect.any(Number),
  });
  const raised = { quotas: [{ unit: "requests", amount: 21, per: "day" }] };
  await call(two, operator, "PATCH", `/admin/organizations/${id}`, raised);
  await until(async () => (await chat(one, lab.key)).status === 200, "the raised budget applies at the other replica");
  expect((await chat(two, shop.key)).status).toBe(403);
}, 240_000);

test("keeps the organization's usage over kill -9, and counts the accounts that belong to it", async () => {
  const directory = mkdtempSync(join(tmpdir(), "headrace-organizations-"));
  opened({ [Symbol.asyncDispose]: async () => rmSync(directory, { recursive: true }) });
  const config = join(directory, "headrace.yaml");
  writeFileSync(config, upstreamYaml(opened(await startUpstream())));
  const start = async () => opened(await startServerProcess({ config, dataDir: join(directory, "data") }));
  let server = await start();
  const operator = await makeOperatorKey(server.dataDir);
  const [shop, lab] = [await account(server, operator, "Shop"), await account(server, operator, "Lab")];
  // An answer of the scripted server uses 9 tokens.
  const limits = { name: "Group", monthly_tokens: 30 };
  const { id } = await call(server, operator, "POST", "/admin/organizations", limits);
  const path = (of: { id: string }) => `/admin/organizations/${id}/accounts/${of.id}`;
  for (const joining of [shop, lab]) await call(server, operator, "PUT", path(joining));
  const served = [await chat(server, shop.key), await chat(server, lab.key), await chat(server, shop.key)];
  expect(served.map(({ status }) => status)).toEqual([200, 200, 200]);
  server.process.kill("SIGKILL");
  await server.process.exited;
  server = await start();
  expect((await chat(server, lab.key)).status).toBe(403);
  const usedTokens = async () =>
    (await call(server, operator, "GET", `/admin/organizations/${id}`)).quota.environments.find(
      ({ environment }: Body) => environment === "live",
    ).tokens;
  expect(await usedTokens()).toEqual({ limit: 30, used: 27 });
  await call(server, operator, "DELETE", path(shop));
  expect(await usedTokens()).toEqual({ limit: 30, used: 9 });
  expect((await chat(server, shop.key)).status).toBe(200);
  expect((await chat(server, lab.key)).status).toBe(200);
  await call(server, operator, "PUT", path(shop));
  expect(await usedTokens()).toEqual({ limit: 30, used: 45 });
  expect((await chat(server, lab.key)).status).toBe(403);

  const usage = await call(server, operator, "GET", "/admin/usage?environment=live&group_by=organization");
  expect(usage.data).toMatchObject([{ organization: id, requests: 5 }]);
  expect(usage.names).toMatchObject({ [id]: "Group" });
  const others = await account(server, operator, "Elsewhere");
  expect((await chat(server, others.key)).status).toBe(200);
  for (const [filter, requests] of [
    ["", 6],
    [`&organization=${id}`, 5],
    [`&organization=${id}&account=${others.id}`, undefined],
  ] as const) {
    const { data } = await call(server, operator, "GET", `/admin/usage?environment=live&bucket=month${filter}`);
    expect([filter, data[0]?.requests]).toEqual([filter, requests]);
  }
  const statement = await call(server, operator, "GET", `/admin/statement?environment=live&organization=${id}`);
  expect(statement).toMatchObject({ organization: { id, name: "Group" }, total: { requests: 5 } });
  expect(statement.lines.map(({ account_name: name }: Body) => name)).toEqual(["Shop", "Lab"]);
}, 240_000);
