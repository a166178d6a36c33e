// A model that overflows to a cloud: its own server first, money counted over replicas, and not a byte of what must not leave.
import { afterEach, expect, test } from "bun:test";
import { createServer } from "node:net";
import { SQL } from "bun";
import { startHeadrace, type TestServer, type TestServerOptions, until } from "../support/headrace.ts";
import { mintKey } from "../support/mint-key.ts";
import { startReplicas } from "../support/replicas.ts";
import { chatScript, json, type Script, type ScriptedUpstream, startUpstream } from "../support/scripted-upstream.ts";

const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

function opened<Part extends AsyncDisposable>(part: Part): Part {
  stack.push(part);
  return part;
}

const broken: Script = (_, response) => json(response, 500, { error: { message: "out of order" } });
/** Seven tokens of prompt and two of answer, which cost 9 nano-USD. */
const cost = "cost: { input: 0.001, output: 0.001 }";

function yamlOf(own: string, cloud: string, policy: string): string {
  return `
upstreams:
  - { name: own, url: "${own}", local: true, discover: false }
  - { name: cloud, url: "${cloud}", discover: false, apis: [chat] }
models:
  - id: m
    deployments: [{ upstream: own, model: upstream-model }, { upstream: cloud, model: upstream-model, weight: 100 }]
    policies:
      overflow: { to: [{ upstream: cloud, ${cost} }], ${policy} }
`;
}

const start = async (yaml: string, more: TestServerOptions = {}) => opened(await startHeadrace({ yaml, ...more }));
const upstream = async (script: Script = chatScript()): Promise<ScriptedUpstream> =>
  opened(await startUpstream(script));

/** Longer by estimate than the upstream says that it is. */
const body = { model: "m", messages: [{ role: "user", content: "one word and another ".repeat(4) }], max_tokens: 4 };

async function ask(server: Pick<TestServer, "url" | "key">, more: object = {}, key = server.key) {
  const response = await fetch(`${server.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ ...body, ...more }),
  });
  return { status: response.status, text: await response.text(), headers: response.headers };
}

test("uses the model's own server while it works, and records why a request overflowed", async () => {
  const [own, cloud] = [await upstream(), await upstream()];
  const server = await start(yamlOf(own.url, cloud.url, "after_seconds: 30"));
  for (let i = 0; i < 5; i++) expect((await ask(server)).status).toBe(200);
  expect([own.requests.length, cloud.requests.length]).toEqual([5, 0]);
  own.script(broken);
  const { status, headers } = await ask(server, { stream: true });
  expect([status, cloud.requests.length]).toEqual([200, 1]);
  const operator = await mintKey(server.dataDir, { scopes: ["admin:manage", "usage:read"] });
  const path = `/v1/requests/${headers.get("x-request-id")}`;
  const record = (await (await server.request(path, { headers: { authorization: `Bearer ${operator}` } })).json()) as {
    trail: { result: string; upstream: string; reason: string | null }[];
  };
  expect(record.trail.map(({ result, upstream: at, reason }) => [result, at, reason]).slice(1)).toEqual([
    ["overflowed", "cloud", "down"],
    ["answered", "cloud", null],
  ]);
  const metrics = await (await server.request("/metrics", { headers: { authorization: `Bearer ${operator}` } })).text();
  expect(metrics).toContain('headrace_overflow_requests_total{model="m",upstream="cloud",reason="down"} 1');
});

test("overflows a request that its own server keeps waiting past the set time", async () => {
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const own = await upstream(async (request, response) => {
    await held;
    await chatScript()(request, response);
  });
  const cloud = await upstream();
  const yaml = yamlOf(own.url, cloud.url, "after_seconds: 0.2").replace(
    "local: true,",
    "local: true, max_concurrency: 1,",
  );
  const server = await start(yaml);
  const first = ask(server);
  while (own.requests.length === 0) await Bun.sleep(5);
  const since = performance.now();
  expect((await ask(server)).status).toBe(200);
  expect(performance.now() - since).toBeGreaterThan(190);
  expect([own.requests.length, cloud.requests.length]).toEqual([1, 1]);
  release();
  expect((await first).status).toBe(200);
});

test("spends exactly the overflow cap over two replicas, and remembers it in a new process", async () => {
  const [own, cloud] = [await upstream(broken), await upstream()];
  const yaml = yamlOf(own.url, cloud.url, "spend: { usd: 0.0000005, per: month }");
  const replicas = opened(await startReplicas({ yaml }));
  const answers = await Promise.all(
    Array.from({ length: 120 }, (_, i) => {
      const { url } = replicas.servers[i % 2] as TestServer;
      return ask({ url, key: replicas.key });
    }),
  );
  const late = await Promise.all(
    Array.from({ length: 60 }, async () => await ask({ url: replicas.url, key: replicas.key })),
  );
  const served = [...answers, ...late].filter(({ status }) => status === 200).length;
  expect(served).toBe(cloud.requests.length);
  // An answer costs 9 of 500 nano-USD.
  expect(served).toBeLessThanOrEqual(55);
  const refused = late.find(({ status }) => status === 503);
  expect(refused?.text).toContain("what its overflow may cost in this month is used up. It opens at ");
  await using db = new SQL(replicas.env["HEADRACE_DATABASE_URL"] ?? "", { max: 1 });
  const spent = async () => Number((await db`SELECT nano_usd FROM overflow_spend WHERE model = 'm'`)[0].nano_usd);
  // What was not needed comes back a moment after the answers.
  await until(async () => (await spent()) === 9 * served, "all is settled");
  const next = await start(yaml, { env: replicas.env, flags: { mode: "production", publicUrl: replicas.url } });
  for (let i = 0; i < 60; i++) await ask({ url: next.url, key: replicas.key });
  const all = cloud.requests.length;
  expect(all).toBeGreaterThan(48);
  expect(all).toBeLessThanOrEqual(55);
});

/** A cloud that counts who connects, and who sends anything: the gateway itself asks for lists of models, by GET. */
async function listener() {
  const seen = { posts: 0, bytes: 0 };
  const server = createServer((socket) => {
    socket.on("data", (data: Buffer) => {
      socket.destroy();
      if (data.subarray(0, 4).toString() === "GET ") return;
      seen.posts++;
      seen.bytes += data.length;
    });
    socket.on("error", () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address() as { port: number };
  const close = async () => void server.close();
  opened({ [Symbol.asyncDispose]: close });
  return { seen, url: `http://127.0.0.1:${address.port}/v1` };
}

test("sends no byte of a key that must stay local to the overflow, whatever fails, waits or changes", async () => {
  let busy = 0;
  const own = await upstream((request, response) => (busy++ % 3 === 0 ? broken : chatScript())(request, response));
  const cloud = await listener();
  const policies = ["after_seconds: 0", "hours: ['00:00-24:00']", "prompt_tokens_above: 1", "after_seconds: 0.01"];
  const server = await start(yamlOf(own.url, cloud.url, policies[0] ?? ""));
  const key = await mintKey(server.dataDir, { scopes: ["chat:write"], neverLeaves: true });
  let over = false;
  const asking = Array.from({ length: 8 }, async () => {
    for (let i = 0; !over; i++) await ask(server, { stream: i % 2 === 0 }, key).then(() => Bun.sleep(2));
  });
  try {
    for (let i = 0; i < 8; i++) {
      const yaml = yamlOf(own.url, cloud.url, policies[i % policies.length] ?? "");
      await server.reconfigure(i % 2 === 0 ? yaml : yaml.replace("weight: 100", "weight: 1"));
      await Bun.sleep(50);
    }
  } finally {
    over = true;
    await Promise.all(asking);
  }
  expect(cloud.seen).toEqual({ posts: 0, bytes: 0 });
  expect(own.requests.length).toBeGreaterThan(20);
  // It is asked for another key: the listener would have seen it.
  own.script(broken);
  await ask(server);
  expect(cloud.seen.bytes).toBeGreaterThan(0);
}, 30_000);
