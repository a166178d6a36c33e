// Models that operators declare over the API: prices, ids of their own, places to run, models that stand in.
import { afterEach, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startHeadrace, type TestServer, type TestServerOptions, until } from "../support/headrace.ts";
import { type Answer, type Operated, operated } from "../support/operated.ts";
import { defaultModel, json, type ScriptedUpstream, startUpstream } from "../support/scripted-upstream.ts";

const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

async function started<Part extends AsyncDisposable>(part: Promise<Part>): Promise<Part> {
  const ready = await part;
  stack.push(ready);
  return ready;
}

const modelServer = (): Promise<ScriptedUpstream> => started(startUpstream());

/** `operator`: of an earlier server with the same data. */
const start = async (options: TestServerOptions = {}, operator?: string): Promise<Operated> =>
  operated(await started(startHeadrace(options)), operator);

/** With an upstream `up` that was added over the API, and lists `upstream-model`. */
async function withUpstream(options: TestServerOptions = {}): Promise<Operated & { upstream: ScriptedUpstream }> {
  const upstream = await modelServer();
  const started = await start(options);
  await started.admin("POST", "/upstreams", { name: "up", url: upstream.url });
  return { ...started, upstream };
}

async function ask(server: TestServer, model = "upstream-model", key?: string): Promise<Answer> {
  const response = await server.request("/v1/chat/completions", {
    body: { model, messages: [{ role: "user", content: "Hi" }] },
    ...(key === undefined ? {} : { headers: { authorization: `Bearer ${key}` } }),
  });
  return { status: response.status, body: await response.json() };
}

async function modelIds(server: TestServer): Promise<string[]> {
  const { data } = (await (await server.request("/v1/models")).json()) as { data: { id: string }[] };
  return data.map(({ id }) => id);
}

// hardening: L8
test("meters spend of an upstream and a price added over the API, and refuses at the USD quota", async () => {
  const { server, admin, upstream } = await withUpstream();
  // 4 tokens in, 10 out: at $100,000 and $10,000 per million, $0.50 a request.
  upstream.script((_request, response) =>
    json(response, 200, {
      ...{ id: "x", object: "chat.completion", created: 1, model: "upstream-model" },
      choices: [{ index: 0, message: { role: "assistant", content: "Hello" }, finish_reason: "stop" }],
      usage: { prompt_tokens: 4, completion_tokens: 10, total_tokens: 14 },
    }),
  );
  const unlimited = { requests_per_minute: null, tokens_per_minute: null, environments: ["live", "test", "dev"] };
  await admin("PUT", "/tiers/any", unlimited);
  const { id } = (await admin("POST", "/accounts", { name: "Shop", tier: "any" })).body;
  await admin("PATCH", `/accounts/${id}`, { monthly_spend: 1 });
  const { key } = (
    await admin("POST", `/accounts/${id}/keys`, { name: "k", environment: "dev", scopes: ["chat:write"] })
  ).body;
  const spend = async () => {
    const { environments } = (await admin("GET", `/accounts/${id}`)).body.quota;
    return environments.find((one: { environment: string }) => one.environment === "dev").spend.used;
  };

  // Without a price, nothing is spent, however much is used.
  expect((await ask(server, "upstream-model", key)).status).toBe(200);
  expect(await spend()).toBe(0);
  const priced = await admin("PATCH", "/models/upstream-model", { price: { input: 100_000, output: 10_000 } });
  expect(priced.body).toMatchObject({ source: "database", price: { input: 100_000, output: 10_000 } });
  expect((await ask(server, "upstream-model", key)).status).toBe(200);
  await until(async () => (await spend()) === 0.5, "the first priced request is counted");
  expect((await ask(server, "upstream-model", key)).status).toBe(200);
  await until(async () => (await spend()) === 1, "the second one is");
  const refused = await ask(server, "upstream-model", key);
  expect(refused).toMatchObject({ status: 403, body: { error: { code: "insufficient_quota" } } });
  expect(upstream.requests).toHaveLength(3);
});

// hardening: L8
test("prices a request as of its beginning", async () => {
  const { server, admin, upstream } = await withUpstream();
  await admin("PATCH", "/models/upstream-model", { price: { input: 250_000, output: 0 } });
  const [asked, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  upstream.script(async (_request, response) => {
    asked.resolve();
    await answer.promise;
    json(response, 200, {
      ...{ id: "x", object: "chat.completion", created: 1, model: "upstream-model" },
      choices: [{ index: 0, message: { role: "assistant", content: "Hello" }, finish_reason: "stop" }],
      usage: { prompt_tokens: 4, completion_tokens: 1, total_tokens: 5 },
    });
  });
  const waiting = ask(server);
  await asked.promise;
  await admin("PATCH", "/models/upstream-model", { price: { input: 2_250_000, output: 0 } });
  answer.resolve();
  expect((await waiting).status).toBe(200);
  expect((await ask(server)).status).toBe(200);
  await server.governance.ledger.flush();
  const { data } = (await (await server.request("/v1/requests")).json()) as { data: { cost: number }[] };
  expect(data.map(({ cost }) => cost)).toEqual([9, 1]);
});

test("keeps an alias unique, reassigns it once free, and lets it hide no model", async () => {
  const { admin, server } = await withUpstream();
  const deployments = [{ upstream: "up", model: "upstream-model" }];
  await admin("POST", "/models", { id: "one", deployments, aliases: ["claude-*", "gpt-5"] });
  expect((await ask(server, "claude-opus-5")).body).toMatchObject({ model: "one" });
  const taken = await admin("POST", "/models", { id: "two", deployments, aliases: ["gpt-5-mini", "gpt-5"] });
  expect([taken.status, taken.body.error.message]).toEqual([
    400,
    "aliases[1]: is an alias of the model one already. Remove it from one of the two.",
  ]);
  // Its own it may name again.
  expect((await admin("PATCH", "/models/one", { aliases: ["claude-*"] })).body).toMatchObject({
    aliases: ["claude-*"],
  });
  expect((await admin("POST", "/models", { id: "two", deployments, aliases: ["gpt-5"] })).status).toBe(200);
  expect((await ask(server, "gpt-5")).body).toMatchObject({ model: "two" });
  await admin("PATCH", "/models/two", { aliases: ["upstream-model"] });
  expect((await ask(server, "upstream-model")).body).toMatchObject({ model: "upstream-model" });
  expect(server.logged("alias_in_vain")).toContainEqual(
    expect.objectContaining({ alias: "upstream-model", model: "two", served_by: "upstream-model" }),
  );
  // What an alias names is no model of its own.
  expect((await admin("GET", "/models/claude-opus-5")).status).toBe(404);
  await admin("PATCH", "/models/one", { aliases: null });
  expect((await ask(server, "claude-opus-5")).status).toBe(404);
});

test("serves a new id with deployments and a fallback at once, shows where it runs, and removes it on deletion", async () => {
  const { server, admin, upstream } = await withUpstream();
  const spare = await modelServer();
  spare.serves([{ ...defaultModel, id: "spare-model" }]);
  await admin("POST", "/upstreams", { name: "spare", url: spare.url });
  const id = "team/fast:v1";
  const path = `/models/${encodeURIComponent(id)}`;
  const declared = await admin("POST", "/models", {
    ...{ id, owned_by: "team", capabilities: { chat: true }, context_length: 4096, price: { input: 1, output: 2 } },
    ...{ environments: ["dev", "live", "dev"], fallbacks: ["spare-model"], aliases: ["gpt-5"] },
    deployments: [
      { upstream: "up", model: "upstream-model", weight: 3 },
      { upstream: "spare", model: "mistyped" },
    ],
  });
  const settings = {
    ...{ owned_by: "team", capabilities: { chat: true }, context_length: 4096, environments: ["live", "dev"] },
    ...{ price: { input: 1, output: 2 }, fallbacks: ["spare-model"], aliases: ["gpt-5"] },
    deployments: [
      { upstream: "up", model: "upstream-model", weight: 3 },
      { upstream: "spare", model: "mistyped", weight: 1 },
    ],
  };
  expect(declared).toEqual({
    status: 200,
    body: {
      ...{ object: "managed_model", id, source: "database", overrides_database: false, status: "ok" },
      ...settings,
      deployments: [
        {
          upstream: "up",
          model: "upstream-model",
          weight: 3,
          state: "ok",
          process: null,
          listed: true,
          attempts: null,
        },
        { upstream: "spare", model: "mistyped", weight: 1, state: "ok", process: null, listed: false, attempts: null },
      ],
      ...{
        settings: { ...settings, price_of: null, policies: null },
        created_at: expect.any(Number),
        overflow_spend: null,
        shutdown_date: null,
      },
    },
  });
  expect(await modelIds(server)).toContain(id);
  // The path is taken as it is, and percent-encoded.
  for (const one of [path, `/models/${id}`]) expect((await admin("GET", one)).body).toEqual(declared.body);
  await admin("PATCH", `/models/${id}`, { deployments: [{ upstream: "up", model: "upstream-model" }] });
  expect((await ask(server, id)).body).toMatchObject({ model: id });
  expect(upstream.requests.at(-1)?.body).toMatchObject({ model: "upstream-model" });

  // Its upstream goes: it says so, and the model that stands in answers.
  await admin("DELETE", "/upstreams/up");
  const missing = [
    { upstream: "up", model: "upstream-model", weight: 1, state: "missing", process: null, listed: null },
  ];
  expect((await admin("GET", path)).body).toMatchObject({ status: "nowhere", deployments: missing });
  expect((await ask(server, id)).body).toMatchObject({ model: "spare-model" });
  await admin("PATCH", path, { fallbacks: null, price: null });
  const refused = await ask(server, id);
  expect([refused.status, refused.body.error.message]).toEqual([
    503,
    `The model \`${id}\` has no deployment that is configured now.`,
  ]);

  expect(await admin("DELETE", path)).toEqual({
    status: 200,
    body: { object: "managed_model", id, deleted: true },
  });
  expect(await modelIds(server)).not.toContain(id);
  for (const method of ["GET", "DELETE"]) expect((await admin(method, path)).status).toBe(404);
  const { data } = (await admin("GET", `/audit?target=${encodeURIComponent(id)}`)).body;
  expect(data.map(({ action }: { action: string }) => action)).toEqual([
    "model.deleted",
    ...["model.updated", "model.updated", "model.created"],
  ]);
});

test("keeps an upstream's data where a declaration is silent, and restores it once the declaration is deleted", async () => {
  const { server, admin, upstream } = await withUpstream();
  upstream.serves([
    { ...defaultModel, context_length: 512 },
    { ...defaultModel, id: "other" },
  ]);
  await admin("PATCH", "/upstreams/up", { environments: ["dev", "test"], timeout_seconds: 99 });
  const found = (await admin("GET", "/models/upstream-model")).body;
  expect(found).toMatchObject({ source: "upstream", settings: null, price: null, status: "ok", created_at: null });
  expect((await admin("DELETE", "/models/upstream-model")).status).toBe(403);

  const priced = (await admin("POST", "/models", { id: "upstream-model", price: { input: 1, output: 1 } })).body;
  const same = ["owned_by", "context_length", "capabilities", "environments", "deployments"];
  for (const member of same) expect(priced[member]).toEqual(found[member]);
  // Nobody is let in whom the upstream keeps out.
  const wider = await admin("PATCH", "/models/upstream-model", { environments: ["live", "dev"] });
  expect(wider.body.environments).toEqual(["dev"]);
  const listed = (await admin("GET", "/models")).body.data;
  expect(listed.map(({ id, source }: { id: string; source: string }) => [id, source])).toEqual([
    ["other", "upstream"],
    ["upstream-model", "database"],
  ]);
  await admin("DELETE", "/models/upstream-model");
  expect((await admin("GET", "/models/upstream-model")).body).toEqual(found);
  expect((await ask(server)).status).toBe(200);
});

// hardening: L8
test("refuses changes of a model in headrace.yaml over the API, names the file, and prefers it", async () => {
  const upstream = await modelServer();
  const yaml = `upstreams: [{ name: up, url: "${upstream.url}" }]\n`;
  const model = "models: [{ id: upstream-model, price: { input: 5, output: 6 } }]\n";
  const { admin, server } = await start({ yaml: yaml + model });
  const ofFile = (await admin("GET", "/models/upstream-model")).body;
  expect(ofFile).toMatchObject({
    ...{ source: "file", price: { input: 5, output: 6 }, created_at: null },
    settings: { price: { input: 5, output: 6 }, environments: ["live", "dev"], deployments: [] },
  });
  for (const [method, body] of [["PATCH", { price: null }], ["DELETE"]] as const) {
    expect(await admin(method, "/models/upstream-model", body)).toMatchObject({
      status: 403,
      body: { error: { code: "permission_denied", message: expect.stringContaining("`models` in that file") } },
    });
  }
  expect(await admin("POST", "/models", { id: "upstream-model" })).toMatchObject({
    status: 400,
    body: { error: { message: expect.stringMatching(/^id: headrace.yaml has a model upstream-model/) } },
  });

  await server.reconfigure(yaml);
  await admin("POST", "/models", { id: "upstream-model", price: { input: 1, output: 2 } });
  await server.reconfigure(yaml + model);
  expect((await admin("GET", "/models/upstream-model")).body).toMatchObject({
    ...{ source: "file", overrides_database: true, price: { input: 5, output: 6 } },
  });
  // The one that does not count can be taken away.
  expect((await admin("DELETE", "/models/upstream-model")).status).toBe(200);
  expect((await admin("GET", "/models/upstream-model")).body).toEqual(ofFile);
});

test("keeps declared models after a restart", async () => {
  const upstream = await modelServer();
  const directory = mkdtempSync(join(tmpdir(), "headrace-models-"));
  stack.push({ [Symbol.asyncDispose]: async () => rmSync(directory, { recursive: true, force: true }) });
  const dataDir = join(directory, "data");
  const first = await start({ dataDir });
  await first.admin("POST", "/upstreams", { name: "up", url: upstream.url });
  await first.admin("POST", "/models", {
    id: "ours",
    price: { input: 1, output: 2 },
    deployments: [{ upstream: "up" }],
  });
  await first.admin("POST", "/models", { id: "tiny-demo", capabilities: { embeddings: false } });
  const before = (await first.admin("GET", "/models")).body.data;
  expect(before).toHaveLength(3);
  await first.server.close();
  const { admin, server } = await start({ dataDir }, first.operator);
  await until(async () => (await admin("GET", "/upstreams/up")).body.state === "ok", "the upstream was asked");
  expect((await admin("GET", "/models")).body.data).toEqual(before);
  const { api_key: key } = JSON.parse(readFileSync(join(dataDir, "credentials.json"), "utf8"));
  expect((await ask(server, "ours", key)).status).toBe(200);
});

test("refuses a wrong declaration with the field, allowed values and remedy, and changes nothing", async () => {
  const { server, admin } = await withUpstream();
  await admin("POST", "/models", { id: "taken", capabilities: { chat: false }, deployments: [{ upstream: "up" }] });
  const refusals: [body: Record<string, unknown>, message: RegExp][] = [
    [{}, /^id: is required and must be a string of 1 to 256 characters/],
    [{ id: "two words" }, /^id: must be 1 to 256 printable ASCII characters without spaces. Give an id such as/],
    [{ id: "a/../b" }, /^id: must not be, or have between slashes, \. or \.\./],
    [{ id: "taken" }, /^id: the model taken is declared here already; PATCH \/v1\/admin\/models\/taken changes it/],
    [{ id: "m", price: { input: 1 } }, /^price.output: is required and must be a number from 0 to 1000000000/],
    [{ id: "m", price: { input: -1, output: 1 } }, /^price.input: must be a number from 0 to 1000000000 \(got -1\)/],
    [{ id: "m", price: { input: 1, output: 1, outptu: 2 } }, /^price.outptu: is no member of price; known are input/],
    [{ id: "m", capabilities: { chta: true } }, /^capabilities.chta: is no member of capabilities; known are chat/],
    [{ id: "m", prices: {} }, /^prices: is no member of this request; known are id, owned_by/],
    [{ id: "m", environments: ["prod"] }, /^environments\[0\]: must be one of "live", "test", "dev"/],
    [
      { id: "m", deployments: [{ upstream: "upp" }] },
      /^deployments\[0\].upstream: names an upstream that is not in upstreams. Did you mean up\? Name one of built-in, up/,
    ],
    [
      { id: "m", deployments: [{ upstream: "up" }, { upstream: "up", model: "m" }] },
      /^deployments\[1\]: is the same upstream and model as an earlier deployment. Remove one/,
    ],
    [{ id: "m", fallbacks: ["m"] }, /^fallbacks\[0\]: is the model itself. Name another model/],
    [{ id: "m", fallbacks: ["a", "a"] }, /^fallbacks\[1\]: is named twice/],
    [{ id: "m", fallbacks: ["a b"] }, /^fallbacks\[0\]: must be 1 to 256 printable ASCII/],
    [
      { id: "m", aliases: ["a b"] },
      /^aliases\[0\]: must be 1 to 256 printable ASCII .* and no \* but at the end\. Give/,
    ],
    [{ id: "m", aliases: ["ok", "a*b"] }, /^aliases\[1\]: must be 1 to 256 printable ASCII/],
    [{ id: "m", aliases: ["m"] }, /^aliases\[0\]: is the id of the model itself/],
    [{ id: "m", aliases: ["a", "a"] }, /^aliases\[1\]: is named twice/],
    [
      { id: "m", capabilities: { chat: true }, fallbacks: ["taken"] },
      /^fallbacks\[0\]: cannot do what m does: its chat is false/,
    ],
  ];
  for (const [body, message] of refusals) {
    const refused = await admin("POST", "/models", body);
    expect(refused.body.error?.message).toMatch(message);
    expect(refused).toMatchObject({ status: 400, body: { error: { code: "invalid_request" } } });
  }
  const unknown = await admin("PATCH", "/models/none/such", { price: null });
  expect(unknown).toMatchObject({ status: 404, body: { error: { code: "not_found" } } });
  expect(unknown.body.error.message).toMatch(/^There is no model none\/such. GET \/v1\/admin\/models lists/);
  expect((await admin("GET", "/models")).body.data).toHaveLength(2);
  // A key without admin:manage reads nothing and changes nothing.
  for (const [method, path] of [
    ["GET", "/v1/admin/models"],
    ["POST", "/v1/admin/models"],
    ["PATCH", "/v1/admin/models/taken"],
    ["DELETE", "/v1/admin/models/taken"],
  ] as const) {
    const body = method === "POST" || method === "PATCH" ? { body: { price: null } } : {};
    expect((await server.request(path, { method, ...body })).status).toBe(403);
  }
});

test("uses the listed price a model names unless it has its own, and suggests a name for a wrong one", async () => {
  await using scripted = await startUpstream();
  await using server = await startHeadrace({
    yaml: `upstreams: [{ name: up, url: "${scripted.url}" }]\nmodels: [{ id: of-file, price_of: openai/gpt-6.1-sol, deployments: [{ upstream: up, model: upstream-model }] }]\n`,
  });
  const { admin } = await operated(server);
  const listed = { input: 2, cached_input: 0.1, output: 10 };
  expect((await admin("GET", "/models/of-file")).body).toMatchObject({ price: listed });
  const wrong = await admin("PATCH", "/models/upstream-model", { price_of: "openai/gpt-6.1-soll" });
  expect(wrong.body.error.message).toBe(
    "price_of: is no model of the price list of 2026-11-22. Did you mean openai/gpt-6.1-sol?",
  );
  await admin("PATCH", "/models/upstream-model", { price_of: "openai/gpt-6.1-sol" });
  const named = (await admin("GET", "/models/upstream-model")).body;
  expect(named).toMatchObject({ price: listed, settings: { price: null, price_of: "openai/gpt-6.1-sol" } });
  await admin("PATCH", "/models/upstream-model", { price: { input: 1, output: 2 } });
  expect((await admin("GET", "/models/upstream-model")).body).toMatchObject({ price: { input: 1, output: 2 } });
  const file = { models: [{ id: "m", price_of: "none/none", deployments: [{ upstream: "built-in" }] }] };
  await expect(startHeadrace({ yaml: JSON.stringify(file) })).rejects.toThrow(
    "price_of: is no model of the price list",
  );
});
