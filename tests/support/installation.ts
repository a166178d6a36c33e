// An installation with everything in it that its records can have, made over its API; and a look at whether all of it is there.
import { expect } from "bun:test";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Browser, invite, setUp } from "./browser.ts";
import type { Version } from "./earlier-programs.ts";
import { until } from "./headrace.ts";
import { freePort } from "./nginx-site.ts";
import { askAsApp, type RegisteredApp, redirectUri, refreshFields, signInTo } from "./oauth-apps.ts";
import { json, type ScriptedUpstream, startUpstream } from "./scripted-upstream.ts";
import { type ServerProcess, startServerProcess } from "./server-process.ts";

/** Nano-USD of a token, of its prompt and its answer. */
const [promptPrice, answerPrice] = [3_000, 5_000];
const secret = randomBytes(32).toString("hex");
const bob = { email: "bob@example.test", name: "Bob Bauer", password: "copper ladder seven moons" };

/** Sums of what was answered, exactly. */
export interface Booked {
  requests: number;
  nanoUsd: bigint;
}

/** A model server of which each answer has other figures, and that adds up what they cost. */
export interface Meter {
  upstream: ScriptedUpstream;
  config: string;
  /** What each answer used, by the gateway's request ids; a request that was asked twice is told in `twice`. */
  answered: ReadonlyMap<string, { tokens: number; nanoUsd: bigint }>;
  twice: readonly string[];
  booked(): Booked;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function startMeter(): Promise<Meter> {
  const answered = new Map<string, { tokens: number; nanoUsd: bigint }>();
  const twice: string[] = [];
  const upstream = await startUpstream(async ({ body, headers }, res) => {
    const id = String(headers["x-request-id"]);
    if (answered.has(id)) twice.push(id);
    // No more than is set aside for it: what a quota is exceeded by beyond that is another matter.
    const [prompt, answer] = [1, Math.min(1 + (answered.size % 5), Number(body["max_tokens"] ?? 9))];
    answered.set(id, { tokens: prompt + answer, nanoUsd: BigInt(prompt * promptPrice + answer * answerPrice) });
    const usage = { prompt_tokens: prompt, completion_tokens: answer, total_tokens: prompt + answer };
    const message = { role: "assistant", content: "a ".repeat(answer) };
    if (body["stream"] !== true) {
      const choices = [{ index: 0, message, finish_reason: "stop" }];
      json(res, 200, { id: "c", object: "chat.completion", created: 1, model: "m", choices, usage });
      return;
    }
    const event = (choices: unknown[], more = {}) =>
      res.write(
        `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices, ...more })}\n\n`,
      );
    res.writeHead(200, { "content-type": "text/event-stream" });
    for (let token = 0; token < answer; token++) {
      event([{ index: 0, delta: { content: "a " }, finish_reason: null }]);
      await Bun.sleep(2);
    }
    event([{ index: 0, delta: {}, finish_reason: "stop" }]);
    event([], { usage });
    res.end("data: [DONE]\n\n");
  });
  const directory = mkdtempSync(join(tmpdir(), "headrace-meter-"));
  const config = join(directory, "headrace.yaml");
  const price = `price: { input: ${promptPrice / 1_000}, output: ${answerPrice / 1_000} }`;
  writeFileSync(
    config,
    `upstreams:
  - { name: up, url: "${upstream.url}" }
models:
  - { id: priced, ${price}, deployments: [{ upstream: up, model: upstream-model }] }
tiers:
  - { name: enterprise, requests_per_minute: null, tokens_per_minute: null }
stored_chats: { retention_days: 30 }
`,
  );
  return {
    ...{ upstream, config, answered, twice },
    booked: () => ({
      requests: answered.size,
      nanoUsd: answered.values().reduce((sum, { nanoUsd }) => sum + nanoUsd, 0n),
    }),
    async [Symbol.asyncDispose]() {
      await upstream[Symbol.asyncDispose]();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

export interface Place {
  dataDir: string;
  port: number;
  env: Record<string, string>;
}

/** The place of a server, which each version that runs there has: its directory, port and variables. */
export async function newPlace(env: Record<string, string> = {}): Promise<Place> {
  const dataDir = mkdtempSync(join(tmpdir(), "headrace-place-"));
  return { dataDir, port: await freePort(), env: { HEADRACE_SECRET: secret, ...env } };
}

export function startVersion(
  { main }: Version,
  { dataDir, port, env }: Place,
  {
    config,
    publicUrl = `http://localhost:${port}`,
    args = [],
  }: { config: string; publicUrl?: string; args?: string[] },
): Promise<ServerProcess> {
  const own = ["--mode", "production", "--public-url", publicUrl, "--port", String(port), ...args];
  return startServerProcess({ main, config, dataDir, env, args: own });
}

/** A command of a version, in the place of its server. */
export async function runVersion(
  { main }: Version,
  { dataDir, env }: Place,
  args: readonly string[],
): Promise<{ code: number; stdout: string; stderr: string }> {
  const child = Bun.spawn([process.execPath, main, ...args, "--data-dir", dataDir], {
    env: { PATH: "/usr/bin:/bin", HOME: dataDir, ...env },
    ...{ stdin: "ignore", stdout: "pipe", stderr: "pipe" },
  });
  const [stdout, stderr] = await Promise.all([child.stdout, child.stderr].map((stream) => new Response(stream).text()));
  return { code: await child.exited, stdout: stdout ?? "", stderr: stderr ?? "" };
}

/** Ends it as an operator does. */
export async function stop({ process }: ServerProcess): Promise<void> {
  process.kill("SIGTERM");
  expect(await process.exited).toBe(0);
}

export type Asked = { status: number; text: string; requestId: string };

export async function chat(url: string, key: string, more: object = {}): Promise<Asked> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "priced", max_tokens: 9, messages: [{ role: "user", content: "x" }], ...more }),
  });
  return {
    status: response.status,
    text: await response.text(),
    requestId: response.headers.get("x-request-id") ?? "",
  };
}

/** Asks the API, and reads a good answer. */
// biome-ignore lint/suspicious/noExplicitAny: the test says itself what must be in it
export async function api(url: string, key: string, path: string, body?: unknown, method?: string): Promise<any> {
  const response = await fetch(url + path, {
    method: method ?? (body === undefined ? "GET" : "POST"),
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return response.json();
}

export interface Made {
  operator: string;
  /** At the address of the server, signed in: the operator, and a member. */
  browsers: { olga: Browser; bob: Browser };
  app: RegisteredApp;
  accessToken: string;
  refreshToken: string;
  keys: { plain: string; limited: string; revoked: string };
  limitedId: string;
  stored: string[];
}

const scopes = ["chat:write", "models:read", "usage:read", "keys:manage", "chat:read"];

/** Makes something of every kind, on a server that has nothing yet. */
export async function furnish(version: Version, place: Place, server: ServerProcess, meter: Meter): Promise<Made> {
  const { url } = { url: `http://localhost:${place.port}` };
  const reported = async (...args: string[]) => {
    const { code, stdout, stderr } = await runVersion(version, place, [...args, "--quiet"]);
    if (code !== 0) throw new Error(stderr);
    return stdout.trim();
  };
  const operator = await reported("operator-key");
  const olga = await setUp({ url, setupLink: await reported("setup-link", "--base-url", url) });
  const bobs = await invite(olga, { person: bob });
  const key = async (more: object) =>
    (await api(url, operator, "/v1/keys", { name: "k", ...more })) as Record<string, string>;
  const plain = await key({ scopes });
  const limited = await key({ scopes: ["chat:write", "usage:read"], monthly_tokens: 1_000_000, rate_limit: 100_000 });
  const revoked = await key({ scopes: ["chat:write"] });
  await api(url, operator, `/v1/keys/${revoked["id"]}`, undefined, "DELETE");
  const { data: accounts } = await api(url, operator, "/v1/admin/accounts");
  await api(url, operator, `/v1/admin/accounts/${accounts[0].id}`, { monthly_tokens: 50_000_000 }, "PATCH");
  await api(url, operator, "/v1/admin/upstreams", {
    name: "added",
    url: meter.upstream.url,
    api_key: "sk-added-0123456789abcdef",
  });
  const registered = await olga.ask("/v1/apps", {
    method: "POST",
    body: { name: "Notes", redirect_uris: [redirectUri], scopes: ["chat:write", "models:read"] },
  });
  const app = { id: String(registered["id"]), secret: String(registered["client_secret"]), redirectUri };
  const tokens = await signInTo(app, { url }, bobs);
  const stored: string[] = [];
  for (let n = 0; n < 3; n++) {
    const { text } = await chat(url, plain["key"] ?? "", { store: true, metadata: { n: String(n) } });
    stored.push(JSON.parse(text).id);
  }
  expect(server.process.exitCode).toBeNull();
  return {
    ...{ operator, browsers: { olga, bob: bobs }, app, stored },
    ...{ accessToken: tokens.access_token, refreshToken: tokens.refresh_token },
    keys: { plain: plain["key"] ?? "", limited: limited["key"] ?? "", revoked: revoked["key"] ?? "" },
    limitedId: limited["id"] ?? "",
  };
}

/** All of it is there, and works. `made` goes on with the tokens that it gets. */
export async function expectAll(url: string, made: Made): Promise<void> {
  const { keys, operator, browsers, app } = made;
  const answers = [
    await chat(url, keys.plain),
    await chat(url, keys.limited, { stream: true }),
    await chat(url, made.accessToken),
    await chat(url, keys.revoked),
  ];
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 401]);
  const renewed = await askAsApp(url, "token", app, refreshFields(made.refreshToken));
  expect(renewed).toMatchObject({ status: 200 });
  made.accessToken = String(renewed.body["access_token"]);
  made.refreshToken = String(renewed.body["refresh_token"]);
  expect((await chat(url, made.accessToken)).status).toBe(200);
  expect(await browsers.olga.ask("/v1/session")).toMatchObject({ person: { name: "Olga Ortiz" } });
  expect(await browsers.bob.ask("/v1/session")).toMatchObject({ person: { name: "Bob Bauer" } });
  const { data: members } = await browsers.olga.ask("/v1/members");
  expect(members).toHaveLength(2);
  await until(async () => {
    const { data } = await api(url, keys.plain, "/v1/chat/completions?limit=50");
    return made.stored.every((id) => data.some((one: { id: string }) => one.id === id));
  }, "the chats are stored");
  const limited = await api(url, operator, `/v1/keys/${made.limitedId}`);
  expect(limited).toMatchObject({ monthly_tokens: 1_000_000 });
  const added = await api(url, operator, "/v1/admin/upstreams/added");
  expect(added).toMatchObject({ name: "added" });
  const { data: audit } = await api(url, operator, "/v1/admin/audit?limit=100");
  const actions = new Set(audit.map(({ action }: { action: string }) => action));
  for (const action of ["key.created", "key.revoked", "app.created", "grant.created", "upstream.created"])
    expect(actions).toContain(action);
}

/** What today's version has beside what the earliest one of `deploy/releases.json` had. */
export interface MadeLater {
  tagged: string;
  taggedId: string;
  response: string;
  conversation: string;
  webhook: string;
}

const quotas = [{ unit: "requests", amount: 10_000, per: "5h" }];

export async function furnishMore(url: string, { operator, browsers, keys }: Made): Promise<MadeLater> {
  const key = {
    name: "t",
    scopes: ["chat:write", "usage:read"],
    quotas,
    tags: ["team-a"],
    models: ["priced"],
    note: "n",
  };
  const tagged = await api(url, operator, "/v1/keys", key);
  const { data: members } = await browsers.olga.ask("/v1/members");
  const bobs = (members as { id: string; role: string }[]).find(({ role }) => role === "member")?.id;
  await browsers.olga.ask(`/v1/members/${bobs}`, { method: "PATCH", body: { quotas } });
  const { id: response } = await api(url, keys.plain, "/v1/responses", { model: "priced", input: "x" });
  const { id: conversation } = await api(url, keys.plain, "/v1/conversations", { metadata: { topic: "rivers" } });
  const { id: webhook } = await api(url, operator, "/v1/webhooks", { url: "https://hooks.example.com/headrace" });
  return { tagged: tagged.key, taggedId: tagged.id, response, conversation, webhook };
}

export async function expectMore(url: string, { operator, browsers, keys }: Made, later: MadeLater): Promise<void> {
  expect((await chat(url, later.tagged)).status).toBe(200);
  expect((await chat(url, later.tagged, { model: "upstream-model" })).status).toBe(404);
  const key = await api(url, operator, `/v1/keys/${later.taggedId}`);
  expect(key).toMatchObject({ tags: ["team-a"], models: ["priced"], quotas });
  const { data: members } = await browsers.olga.ask("/v1/members");
  expect(members).toContainEqual(
    expect.objectContaining({ role: "member", quotas: [expect.objectContaining(quotas[0] ?? {})] }),
  );
  expect(await api(url, keys.plain, `/v1/responses/${later.response}`)).toMatchObject({ status: "completed" });
  const next = { model: "priced", input: "y", previous_response_id: later.response };
  expect(await api(url, keys.plain, "/v1/responses", next)).toMatchObject({ status: "completed" });
  const conversation = await api(url, keys.plain, `/v1/conversations/${later.conversation}`);
  expect(conversation).toMatchObject({ metadata: { topic: "rivers" } });
  const { data: webhooks } = await api(url, operator, "/v1/webhooks");
  expect(webhooks).toMatchObject([{ id: later.webhook }]);
}
