// What operators want of a model's requests beyond an answer: said over the API and in headrace.yaml, and shown to nobody else.
import { afterEach, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startHeadrace, type TestServerOptions } from "../support/headrace.ts";
import { type Operated, operated } from "../support/operated.ts";
import { startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

const guardToken = "guard-token-0123456789";
const guardrails = `guardrails:
  - { name: no-secrets, kind: secrets, action: mask }
  - { name: outside, kind: http, sides: [request], url: "https://guard.example.com/check", token: ${guardToken} }
`;

/** With an upstream `up`, and these lines of the file beside the guardrails. */
async function start(more = "", options: TestServerOptions = {}, operator?: string): Promise<Operated> {
  const upstream = await startUpstream();
  stack.push(upstream);
  const server = await startHeadrace({ yaml: upstreamYaml(upstream, guardrails + more), ...options });
  stack.push(server);
  return operated(server, operator);
}

const overflow = {
  to: [{ upstream: "up", cost: { input: 0.1, output: 0.4 }, cost_of: null }],
  ...{ after_seconds: 2.5, prompt_tokens_above: 30_000, hours: ["18:00-06:00"] },
  ...{ most_usd_per_request: 0.5, spend: { usd: 50, per: "day" } },
};
const cache = { requests: "all", ttl_seconds: 60, price_factor: 0.5, semantic: { model: "embedder", threshold: 0.95 } };
const all = {
  ...{ continuation: true, overflow, cache, guardrails: ["no-secrets", "outside"] },
  ...{ shadow: { model: "next", percent: 2.5 }, split: [{ model: "next", percent: 10 }] },
};

test("returns policies as declared, keeps those that a change omits, and removes one or all by null", async () => {
  const { server, admin } = await start();
  const made = await admin("POST", "/models", { id: "m", deployments: [{ upstream: "up" }], policies: all });
  expect(made).toMatchObject({ status: 200, body: { settings: { policies: all } } });
  expect(server.catalog.get("m")?.policies).toMatchObject({
    overflow: { mostNanoUsdPerRequest: 500_000_000, spend: { nanoUsd: 50_000_000_000 } },
  });
  const change = async (policies: unknown) => (await admin("PATCH", "/models/m", { policies })).body.settings.policies;
  const { cache: _, ...uncached } = all;
  expect(await change({ cache: null })).toEqual(uncached);
  const { overflow: __, ...others } = uncached;
  expect(await change({ overflow: null, continuation: false, guardrails: ["outside"] })).toEqual({
    ...{ guardrails: ["outside"], shadow: others.shadow, split: others.split },
  });
  expect(await change({ guardrails: [], shadow: null, split: [] })).toBeNull();
  expect(server.catalog.get("m")).not.toHaveProperty("policies");
  // What is left out is as usual, and says so.
  expect(await change({ cache: {} })).toEqual({
    cache: { requests: "deterministic", ttl_seconds: 3_600, price_factor: 0, semantic: null },
  });
  expect(await change(null)).toBeNull();
  const { data } = (await admin("GET", "/audit?target=m")).body;
  expect(data.map(({ action }: { action: string }) => action)).toEqual([
    ...Array(5).fill("model.updated"),
    "model.created",
  ]);
  expect(data[4].detail).toEqual({ policies: { before: all, after: uncached } });
});

test("applies declared policies to a found model, also after a restart", async () => {
  const directory = mkdtempSync(join(tmpdir(), "headrace-policies-"));
  stack.push({ [Symbol.asyncDispose]: async () => rmSync(directory, { recursive: true, force: true }) });
  const dataDir = join(directory, "data");
  const first = await start("", { dataDir });
  await first.admin("PATCH", "/models/upstream-model", { policies: { continuation: true, overflow } });
  await first.server.close();
  const { server, admin } = await start("", { dataDir }, first.operator);
  const { settings } = (await admin("GET", "/models/upstream-model")).body;
  expect(settings.policies).toEqual({ continuation: true, overflow });
  expect(server.catalog.get("upstream-model")?.policies?.continuation).toBe(true);
});

test("refuses wrong policies with the field, allowed values and remedy, and changes nothing", async () => {
  const { admin } = await start();
  await admin("POST", "/models", {
    id: "deaf",
    capabilities: { embeddings: false },
    deployments: [{ upstream: "up" }],
  });
  const to = [{ upstream: "up" }];
  const refusals: [policies: unknown, message: RegExp][] = [
    [{ continuaton: true }, /^policies.continuaton: is no member of policies; known are continuation, overflow/],
    [{ overflow: {} }, /^policies.overflow.to: is required and must be an array of 1 to 16 items/],
    [{ overflow: { to: [] } }, /^policies.overflow.to: must be an array of 1 to 16 items/],
    [
      { overflow: { to: [{ upstream: "uup" }] } },
      /^policies.overflow.to\[0\].upstream: has no deployment of m. Name one of up, or add a deployment there/,
    ],
    [{ overflow: { to: [...to, ...to] } }, /^policies.overflow.to\[1\].upstream: is named twice/],
    [
      { overflow: { to: [{ upstream: "up", cost_of: "openai/gpt5" }] } },
      /^policies.overflow.to\[0\].cost_of: is no model of the price list/,
    ],
    [
      { overflow: { to, spend: { usd: 1, per: "year" } } },
      /^policies.overflow.spend.per: must be one of "hour", "day"/,
    ],
    [
      { overflow: { to, most_usd_per_request: -1 } },
      /^policies.overflow.most_usd_per_request: must be a number from 0 to 1000000/,
    ],
    [{ cache: { ttl_seconds: 0 } }, /^policies.cache.ttl_seconds: must be an integer from 1 to 2592000/],
    [{ cache: { semantic: { model: "deaf", threshold: 0.9 } } }, /^policies.cache.semantic.model: makes no embeddings/],
    [
      { guardrails: ["no-secret"] },
      /^policies.guardrails\[0\]: names no guardrail of headrace.yaml. Did you mean no-secrets\?/,
    ],
    [{ shadow: { model: "m", percent: 1 } }, /^policies.shadow.model: is the model itself. Name another model/],
    [{ shadow: { model: "a b", percent: 1 } }, /^policies.shadow.model: must/],
    [{ shadow: { model: "n", percent: 101 } }, /^policies.shadow.percent: must be a number .* 100/],
    [
      {
        split: [
          { model: "a", percent: 60 },
          { model: "b", percent: 41 },
        ],
      },
      /^policies.split: has shares of 101 % together/,
    ],
  ];
  for (const [policies, message] of refusals) {
    const refused = await admin("POST", "/models", { id: "m", deployments: to, policies });
    expect(refused.body.error?.message).toMatch(message);
    expect(refused).toMatchObject({ status: 400, body: { error: { code: "invalid_request" } } });
  }
  const elsewhere = await admin("PATCH", "/models/upstream-model", {
    policies: { overflow: { to: [{ upstream: "x" }] } },
  });
  expect(elsewhere.body.error.message).toMatch(
    /^policies.overflow.to\[0\].upstream: names an upstream that there is not/,
  );
  expect((await admin("GET", "/models")).body.data.map(({ id }: { id: string }) => id)).not.toContain("m");
});

test("keeps a removed guardrail's name in a policy while the rest changes, and keeps deployments that an overflow needs", async () => {
  const { server, admin } = await start();
  await admin("POST", "/upstreams", { name: "far", url: "http://127.0.0.1:9/v1" });
  const deployments = [{ upstream: "up" }, { upstream: "far" }];
  const policies = { guardrails: ["outside"], overflow: { to: [{ upstream: "far" }] } };
  await admin("POST", "/models", { id: "m", deployments, policies });
  await server.reconfigure("");
  const { body } = await admin("PATCH", "/models/m", { context_length: 100, policies: { continuation: true } });
  expect(body.settings.policies).toMatchObject({ continuation: true, guardrails: ["outside"] });
  const taken = await admin("PATCH", "/models/m", { deployments: [{ upstream: "far", model: "x" }] });
  expect(taken.status).toBe(200);
  await admin("POST", "/upstreams", { name: "near", url: "http://127.0.0.1:9/v1" });
  expect((await admin("PATCH", "/models/m", { deployments: [{ upstream: "near" }] })).body.error.message).toBe(
    "policies.overflow.to[0].upstream: has no deployment of m. Name one of near, or add a deployment there.",
  );
});

test("shows guardrails and policies to operators, without tokens and without other models' policies", async () => {
  const { server, admin } = await start(
    "models: [{ id: m, deployments: [{ upstream: up, model: upstream-model }], policies: { guardrails: [outside] } }]\n",
  );
  expect((await admin("GET", "/guardrails")).body).toEqual({
    object: "list",
    data: [
      { object: "guardrail", name: "no-secrets", kind: "secrets", sides: ["request", "answer"], action: "mask" },
      { object: "guardrail", name: "outside", kind: "http", sides: ["request"], action: "block" },
    ],
  });
  expect((await admin("GET", "/models/m")).body.settings.policies).toEqual({ guardrails: ["outside"] });
  expect((await admin("PATCH", "/models/m", { policies: null })).status).toBe(403);
  expect((await server.request("/v1/admin/guardrails")).status).toBe(403);
  for (const path of ["/v1/models", "/v1/models/m", "/v1/model-status", "/v1/tiers"]) {
    const text = await (await server.request(path)).text();
    expect(text).not.toMatch(/policies|outside|guard/);
  }
  await server.governance.ledger.flush();
  const written = readdirSync(server.dataDir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), "latin1"));
  expect(written.join("\n")).not.toContain(guardToken);
  expect(server.logText()).not.toContain(guardToken);
});
