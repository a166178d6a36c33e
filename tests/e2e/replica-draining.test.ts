// A replica that is drained at another one: its readiness, what it still answers, and what is left of it in the database.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { SQL } from "bun";
import { until } from "../support/headrace.ts";
import { makeOperatorKey } from "../support/operator-key.ts";
import { startReplicas, type TestReplicas } from "../support/replicas.ts";
import { startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

const stack: AsyncDisposable[] = [];
let all: TestReplicas;
let operator: string;

beforeAll(async () => {
  const upstream = await startUpstream();
  all = await startReplicas({ yaml: upstreamYaml(upstream) });
  stack.push(upstream, all);
  operator = await makeOperatorKey(all.servers[0]?.dataDir ?? "", [], all.env);
}, 60_000);

afterAll(async () => {
  for (const part of stack.reverse()) await part[Symbol.asyncDispose]();
});

const readiness = async (at: number) => (await fetch(`${all.servers[at]?.url}/readyz`)).status;

async function drain(at: number, id: string, draining: boolean): Promise<number> {
  const response = await fetch(`${all.servers[at]?.url}/v1/admin/replicas/${id}`, {
    method: "PATCH",
    headers: { authorization: `Bearer ${operator}`, "content-type": "application/json" },
    body: JSON.stringify({ draining }),
  });
  return response.status;
}

test("drains one replica from another, which still answers, undrains it, and forgets it when it stops", async () => {
  const [first, second] = all.servers;
  if (!first || !second) throw new Error("Two replicas are needed.");
  await until(async () => first.replicas.live().length === 2, "the replicas know each other", 20_000);
  expect(await drain(0, second.replicas.id, true)).toBe(200);
  await until(async () => (await readiness(1)) === 503, "the second replica is not ready");
  expect(await readiness(0)).toBe(200);
  expect((await second.request("/v1/models", { headers: { authorization: `Bearer ${all.key}` } })).status).toBe(200);
  expect(await drain(1, second.replicas.id, false)).toBe(200);
  await until(async () => (await readiness(1)) === 200, "the second replica is ready again");
  expect(await drain(0, "rep_0", true)).toBe(404);

  expect(await drain(0, second.replicas.id, true)).toBe(200);
  await second[Symbol.asyncDispose]();
  await using db = new SQL(all.env["HEADRACE_DATABASE_URL"] ?? "");
  await until(async () => (await db`SELECT name FROM drained_upstreams`).length === 0, "its mark is deleted");
});
