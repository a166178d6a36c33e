// `kill -9` of a server that overflows to a cloud: what all of its lives have spent there stays within the cap.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { json, type ScriptedUpstream, startUpstream } from "../support/scripted-upstream.ts";
import { startServerProcess } from "../support/server-process.ts";

const kills = 5;
const clients = 16;
const directory = mkdtempSync(join(tmpdir(), "headrace-overflow-kill-"));
const config = join(directory, "headrace.yaml");
/** Nano-USD: at 1 for each token of prompt and answer. */
const cap = 6_000;
const usage = { prompt_tokens: 7, completion_tokens: 2, total_tokens: 9 };
let cloud: ScriptedUpstream;

beforeAll(async () => {
  cloud = await startUpstream(async (_, res) => {
    await Bun.sleep(5 + Math.random() * 10);
    json(res, 200, {
      ...{ id: "c", object: "chat.completion", created: 1, model: "m", usage },
      choices: [{ index: 0, message: { role: "assistant", content: "Yes." }, finish_reason: "stop" }],
    });
  });
  // Nothing listens at port 9: the model's own server is always down.
  writeFileSync(
    config,
    `
upstreams:
  - { name: own, url: "http://127.0.0.1:9", discover: false }
  - { name: cloud, url: "${cloud.url}", discover: false, apis: [chat] }
tiers: [{ name: enterprise, requests_per_minute: null, tokens_per_minute: null }]
models:
  - id: m
    deployments: [{ upstream: own, model: m }, { upstream: cloud, model: m }]
    policies:
      overflow:
        to: [{ upstream: cloud, cost: { input: 0.001, output: 0.001 } }]
        spend: { usd: ${cap / 1e9}, per: month }
`,
  );
});
afterAll(async () => {
  await cloud[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true, force: true });
});

const dataDir = join(directory, "data");
/** By estimate longer than the cloud says that it is. */
const body = { model: "m", messages: [{ role: "user", content: "one word and another ".repeat(4) }], max_tokens: 4 };

async function ask(url: string): Promise<number> {
  const { api_key: key } = JSON.parse(readFileSync(join(dataDir, "credentials.json"), "utf8")) as { api_key: string };
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  await response.text();
  return response.status;
}

test("spends exactly the monthly overflow cap, whenever a server is killed", async () => {
  for (let cycle = 0; cycle < kills; cycle++) {
    await using server = await startServerProcess({ config, dataDir });
    const before = cloud.requests.length;
    let goesOn = true;
    const all = Array.from({ length: clients }, async () => {
      while (goesOn) await ask(server.url).catch(() => Bun.sleep(1));
    });
    while (cloud.requests.length < before + 10) await Bun.sleep(1);
    await Bun.sleep(Math.random() * 30);
    server.process.kill("SIGKILL");
    await server.process.exited;
    goesOn = false;
    await Promise.all(all);
    expect(cloud.requests.length * usage.total_tokens).toBeLessThanOrEqual(cap);
  }
  await using server = await startServerProcess({ config, dataDir });
  let refused = 0;
  for (let asked = 0; refused < 3 && asked < cap; asked++) {
    const status = await ask(server.url);
    expect([200, 503]).toContain(status);
    if (status === 503) refused++;
  }
  expect(refused).toBe(3);
  const spent = cloud.requests.length * usage.total_tokens;
  expect(spent).toBeLessThanOrEqual(cap);
  // What was under way at a kill stays set aside: at most as many requests as there were clients, each at its estimate.
  expect(spent).toBeGreaterThan(cap - (kills * clients + 1) * 40);
}, 120_000);
