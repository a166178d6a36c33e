// `headrace models` and `headrace status` as operators use them, against a real server and in a narrow terminal.

import { afterAll, beforeAll, expect, test } from "bun:test";
import { copyFileSync, existsSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { saveManifest } from "../../src/engines/llama/model-store.ts";
import { demoModelFile } from "../../src/installation/paths.ts";
import { type CommandOutcome, type CommandSurroundings, runCommand } from "../fixtures/command-line.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { makeOperatorKey } from "../support/operator-key.ts";
import { defaultModel, type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

const longId = "meta-llama/Llama-3.3-70B-Instruct-with-a-name-that-is-far-too-long-for-a-line-of-a-terminal";
let upstream: ScriptedUpstream;
let server: TestServer;
let operator: string;

beforeAll(async () => {
  upstream = await startUpstream();
  upstream.serves([defaultModel, { ...defaultModel, id: longId }]);
  server = await startHeadrace({ yaml: upstreamYaml(upstream) });
  operator = await makeOperatorKey(server.dataDir);
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

function run(args: readonly string[], surroundings: CommandSurroundings = {}): Promise<CommandOutcome> {
  const { env, ...others } = surroundings;
  const own = { HEADRACE_BASE_URL: server.baseUrl, HEADRACE_API_KEY: operator, LANG: "C.UTF-8" };
  return runCommand([...args], { env: { ...own, ...env }, ...others });
}

/** The demo model's file, as if it had been pulled as `id`. */
async function pulled(id: string): Promise<string> {
  const folder = join(server.dataDir, "models");
  mkdirSync(folder, { recursive: true });
  const file = join(folder, `${id}.gguf`);
  copyFileSync(demoModelFile, file);
  await saveManifest(server.dataDir, {
    ...{ id, file, otherFiles: [], bytes: statSync(file).size, sha256: "0".repeat(64), source: `hf:acme/x:${id}.gguf` },
    ...{ pulledAt: 1, context: 1024, capabilities: { chat: true, completion: true, embeddings: true }, tools: false },
  });
  await server.catalog.refresh();
  return file;
}

const json = (outcome: CommandOutcome) => JSON.parse(outcome.stdout);
const upstreamName = "up";

test("declares, prices, shows and deletes a model from an operator's command line", async () => {
  const added = await run([
    ...["models", "add", "team/fast", "--deployment", `${upstreamName}*2=upstream-model`],
    ...["--capabilities", "chat,no-embeddings", "--context", "4096", "--environments", "dev,live", "--json"],
  ]);
  expect(added.stderr).toBe("");
  expect(json(added)).toMatchObject({
    ...{ id: "team/fast", status: "ok", price: null, capabilities: { chat: true, embeddings: false } },
    ...{ context_length: 4096, environments: ["live", "dev"] },
    deployments: [{ upstream: upstreamName, model: "upstream-model", weight: 2 }],
  });
  const set = await run([
    "models",
    "set",
    "team/fast",
    "--price",
    "input=0.15,output=0.6",
    "--fallbacks",
    longId,
    "--aliases",
    "claude-*,gpt-5",
  ]);
  expect(set.code).toBe(0);
  expect(set.stdout).toMatch(/^team\/fast\n/);
  expect(set.stdout).toContain("$0.15 in, $0.6 out per million tokens");
  expect(set.stdout).toContain(`${upstreamName}: ok (as upstream-model)`);
  const shown = await run(["models", "show", "team/fast", "--json"]);
  expect(json(shown)).toMatchObject({ price: { input: 0.15, output: 0.6 }, fallbacks: [longId], context_length: 4096 });
  expect(json(shown)).toMatchObject({ aliases: ["claude-*", "gpt-5"] });
  expect(set.stdout).toMatch(/Aliases +claude-\*, gpt-5/);
  expect((await run(["models", "--all"])).stdout).toMatch(/^team\/fast +ok +\$0.15 in, \$0.6 out +\w+ +declared$/m);
  const parts = "input=4,cached_input=0.2,cache_write_1h=8,output=20,request=0.001";
  expect((await run(["models", "set", "team/fast", "--price", parts])).stdout).toMatch(
    /Price +\$4 in \(\$0\.2 cached\), \$20 out per million tokens\n +cache_write_1h: 8, request: 0\.001\n/,
  );
  expect(json(await run(["models", "set", "team/fast", "--price", "none", "--json"]))).toMatchObject({ price: null });

  const unasked = await run(["models", "remove", "team/fast"]);
  expect([unasked.code, unasked.stderr]).toEqual([2, expect.stringContaining("add --yes")]);
  expect((await run(["models", "remove", "team/fast", "--yes"])).stdout).toContain("team/fast is removed");
  const gone = await run(["models", "show", "team/fast"]);
  expect([gone.code, gone.stderr]).toEqual([1, expect.stringContaining("There is no model team/fast")]);
});

test("sets the policies of a model from a file, standard input or flags, shows them, and removes them", async () => {
  const overflow = { to: [{ upstream: upstreamName }], after_seconds: 5, spend: { usd: 50, per: "day" } };
  const said = { overflow, cache: { requests: "all", ttl_seconds: 60 }, split: [{ model: "next", percent: 2.5 }] };
  const file = join(server.dataDir, "policies.json");
  writeFileSync(file, JSON.stringify(said));
  const set = await run(["models", "set", "upstream-model", "--policies", file, "--continuation", "on"]);
  expect([set.code, set.stderr]).toEqual([0, ""]);
  expect(set.stdout).toMatch(
    /Policies +goes on elsewhere with streams that are cut\n +overflows to up, after 5 s, \$50 a day at most\n +gives answers again for 60 s \(all\), for nothing\n +2\.5 % are answered by next\n/,
  );
  const change = async (args: readonly string[], stdin = "") =>
    json(await run(["models", "set", "upstream-model", ...args, "--json"], { stdin })).settings.policies;
  expect(await change(["--continuation", "off", "--shadow", "a=b=10", "--split", "none"])).toEqual({
    ...{ overflow: expect.objectContaining({ after_seconds: 5 }), cache: expect.objectContaining({ ttl_seconds: 60 }) },
    shadow: { model: "a=b", percent: 10 },
  });
  expect(await change(["--policies", "-"], '{"overflow": null, "cache": null}')).toEqual({
    shadow: { model: "a=b", percent: 10 },
  });
  const places = `${upstreamName},after=2.5,tokens=30000,hours=18:00-08:00,hours=12:00-13:00,request=0.5,spend=50/week`;
  const cached = "asked,ttl=600,price=0.5";
  expect(await change(["--shadow", "none", "--overflow", places, "--cache", cached])).toEqual({
    overflow: {
      to: [{ upstream: upstreamName, cost: null, cost_of: null }],
      ...{ after_seconds: 2.5, prompt_tokens_above: 30_000, hours: ["18:00-08:00", "12:00-13:00"] },
      ...{ most_usd_per_request: 0.5, spend: { usd: 50, per: "week" } },
    },
    cache: { requests: "asked", ttl_seconds: 600, price_factor: 0.5, semantic: null },
  });
  expect(await change(["--overflow", "none"])).toEqual({ cache: expect.objectContaining({ requests: "asked" }) });
  expect(await change(["--policies", "none"])).toBeNull();
  expect((await run(["models", "show", "upstream-model"])).stdout).toMatch(/Policies +none\n/);
  const added = await run(["models", "add", "kept", "--deployment", upstreamName, "--continuation", "on", "--json"]);
  expect(json(added).settings.policies).toEqual({ continuation: true });
  await run(["models", "remove", "kept", "--yes"]);
});

test("refuses unreadable policies with a remedy before sending anything", async () => {
  const wrong: [args: string[], stdin: string, said: string][] = [
    [
      ["--policies", join(server.dataDir, "none.json")],
      "",
      "cannot be read. Give a file with JSON, or - for standard input.",
    ],
    [["--policies", "-"], "[]", 'Standard input is no JSON object. Write one such as {"continuation": true}.'],
    [["--policies", "-"], "{", "Standard input is no JSON object."],
    [["--policies", "-", "--api-key-stdin"], "{}", "Standard input cannot give both the policies and the key"],
    [["--policies", "none", "--continuation", "on"], "", "--policies none takes all of them away"],
    [["--split", "next"], "", "Give a model and its percent, such as next=10, or none."],
    [["--overflow", "up,soon=5"], "", "Give after, tokens, hours, request or spend=50/day, of hour, day"],
    [["--overflow", "up,spend=50/year"], "", "got spend=50/year"],
    [["--overflow", "up,after=soon"], "", "Give a number (got soon)."],
    [["--overflow", "after=5"], "", "policies.overflow.to: must be an array of 1 to 16 items"],
    [["--cache", "most"], "", "Give one of deterministic, asked, all, or none."],
    [["--cache", "all,size=5"], "", "Give ttl or price behind it (got size=5)."],
    [["--cache", "all,ttl=0"], "", "policies.cache.ttl_seconds: must be an integer from 1 to 2592000"],
    [["--guardrails", "nobody"], "", "policies.guardrails[0]: names no guardrail of headrace.yaml"],
  ];
  for (const [args, stdin, said] of wrong) {
    const { code, stderr } = await run(["models", "set", "upstream-model", ...args], { stdin });
    expect([code === 0, stderr]).toEqual([false, expect.stringContaining(said)]);
  }
});

test("refuses a wrong model option with the allowed values before sending anything", async () => {
  const wrong: [args: string[], said: string][] = [
    [["--price", "0.15"], "input=0.15,output=0.60"],
    [["--price", "input=x,output=1"], "input=0.15,output=0.60"],
    [["--deployment", "=m"], "Give a place such as vllm"],
    [["--capabilities", "vision"], "It must be of chat, completion, embeddings"],
    [["--context", "many"], "Give a whole number of tokens"],
    [["--environments", "prod"], "It must be of live, test, dev"],
    [[], "Nothing to change: give at least one option"],
  ];
  for (const [args, said] of wrong) {
    const { code, stderr } = await run(["models", "set", "upstream-model", ...args]);
    expect([code, stderr]).toEqual([2, expect.stringContaining(said)]);
  }
  const halfPrice = await run(["models", "set", "upstream-model", "--price", "input=1"]);
  expect([halfPrice.code, halfPrice.stderr]).toEqual([1, expect.stringContaining("price.output: is required")]);
});

test("fits lists of models and status into 80 columns without omitting anything", async () => {
  for (const args of [["models"], ["models", "--all"], ["models", "show", longId], ["status"]]) {
    const wide = (await run(args)).stdout;
    const narrow = (await run(args, { isTTY: true, columns: 80, env: { NO_COLOR: "1" } })).stdout;
    expect(Math.max(...wide.split("\n").map((line) => Bun.stringWidth(line)))).toBeGreaterThan(80);
    expect(Math.max(...narrow.split("\n").map((line) => Bun.stringWidth(line)))).toBeLessThanOrEqual(80);
    const letters = (text: string) => [...text.replace(/\s/g, "")].sort().join("");
    expect(letters(narrow)).toBe(letters(wide));
  }
});

test("lists files and processes with the first key on a development machine", async () => {
  const first = { HEADRACE_API_KEY: server.key };
  expect((await run(["models", "list", "--files"], { env: first })).code).toBe(0);
  expect((await run(["models", "ps"], { env: first })).code).toBe(0);
  const reads = ["/v1/admin/pulled-models", "/v1/admin/model-processes"];
  for (const path of reads) {
    const status = async (headers: Record<string, string> = {}) => (await server.request(path, { headers })).status;
    expect([path, await status()]).toEqual([path, 200]);
    // A proxy, a tunnel or a page that rebinds its name is not the machine.
    expect([path, await status({ "x-forwarded-for": "203.0.113.7" })]).not.toEqual([path, 200]);
    expect([path, await status({ host: "ai.example.com" })]).not.toEqual([path, 200]);
    expect([path, await status({ host: "box" })]).toEqual([path, 403]);
  }
  // Nothing that changes anything, and no other key.
  expect((await server.request("/v1/admin/pulled-models", { body: { source: "hf:a/b" } })).status).toBe(403);
  expect((await server.request("/v1/admin/models")).status).toBe(403);
  const made = await server.request("/v1/keys", { body: { name: "another", scopes: ["usage:read"] } });
  const { key } = (await made.json()) as { key: string };
  const token = await server.request("/v1/auth/token", { body: { api_key: server.key } });
  const { access_token: fromFirst } = (await token.json()) as { access_token: string };
  expect(token.status).toBe(200);
  for (const other of [key, fromFirst]) {
    const headers = { authorization: `Bearer ${other}` };
    for (const path of reads) expect((await server.request(path, { headers })).status).toBe(403);
  }
});

test.each(["production", "development"])(
  "requires an operator key for files and processes of a hosted server in %s",
  async (mode) => {
    await using hosted = await startHeadrace({ flags: { mode, publicUrl: "https://ai.example.com" } });
    expect((await hosted.request("/v1/models")).status).toBe(200);
    for (const path of ["/v1/admin/pulled-models", "/v1/admin/model-processes"]) {
      expect((await hosted.request(path)).status).toBe(403);
    }
  },
);

test("lists and shows model files with memory needs and fit, and deletes only files, not declarations", async () => {
  const file = await pulled("small");
  const listed = await run(["models", "list", "--files"]);
  expect(listed.stdout).toMatch(/^small +unloaded +4.64 MB +4.3 M +Q8_0 +159 MB +yes$/m);
  expect(listed.stderr).toMatch(/Memory for models: .+ of .+ are free/);
  const shown = await run(["models", "show", "small"]);
  expect(shown.stdout).toContain("4.64 MB, stored as Q8_0");
  expect(shown.stdout).toContain("159 MB with 8 × 1,024 tokens (weights 4.64 MB, context 41.9 MB, the rest 113 MB)");
  expect(json(await run(["models", "show", "small", "--json"])).file).toMatchObject({
    architecture: "llama",
    fit: "now",
  });

  // What was declared goes first; the file stays until it is named.
  await run(["models", "set", "small", "--price", "input=1,output=1"]);
  expect((await run(["models", "remove", "small", "--yes"])).stdout).toContain(
    "What was declared of small is removed.",
  );
  expect(existsSync(file)).toBe(true);
  await run(["models", "set", "small", "--price", "input=1,output=1"]);
  const removed = await run(["models", "remove", "small", "--file", "--yes"]);
  expect(removed.stdout).toBe("small is deleted, 4.64 MB of the disk are free again.\n");
  expect(existsSync(file)).toBe(false);
  expect((await run(["models", "remove", "small", "--file", "--yes"])).stderr).toContain("No model small was pulled");

  await pulled("plain");
  expect((await run(["models", "remove", "plain", "--yes"])).stdout).toContain("plain is deleted");
});
