// A marked prompt goes by every way in, with success and with failure, and reaches no operator: no admin answer, log
// line, metric, export or webhook has it.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import openapi from "../../docs/reference/openapi.json" with { type: "json" };
import { scopes } from "../../src/domain/scope.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { HttpMcpServer } from "../support/mcp-servers.ts";
import { mintKey, mintKeyRecord } from "../support/mint-key.ts";
import { json, type Script, type ScriptedUpstream, startUpstream } from "../support/scripted-upstream.ts";
import { startWebhookReceiver, type WebhookReceiver } from "../support/webhook-receiver.ts";

const canary = "CANARYOFAPROMPT";
type Json = Record<string, unknown>;

let upstream: ScriptedUpstream;
let tools: HttpMcpServer;
let receiver: WebhookReceiver;
let server: TestServer;
let operator: string;
let customer: { key: string; accountId: string };

/** Answers each format with the canary in the text. */
const answers: Script = ({ path }, res) => {
  const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
  if (path.endsWith("/embeddings")) {
    const data = [{ object: "embedding", index: 0, embedding: [0.5] }];
    return json(res, 200, { object: "list", model: "m", data, usage });
  }
  const message = { role: "assistant", content: `You said ${canary}` };
  const choice = path.endsWith("/chat/completions") ? { message } : { text: message.content };
  json(res, 200, {
    ...{ id: "c", object: "chat.completion", created: 1, model: "upstream-model", usage },
    choices: [{ index: 0, finish_reason: "stop", ...choice }],
  });
};
/** Fails, and repeats the request in its error. */
const fails: Script = ({ text }, res) => json(res, 500, { error: { message: `CUDA out of memory at ${text}` } });

const messages = [{ role: "user", content: canary }];
const chat = { model: "shared", messages };
const ways: readonly (readonly [path: string, body: Json])[] = [
  ["/v1/chat/completions", { ...chat, store: true, metadata: { topic: canary }, user: canary }],
  ["/v1/chat/completions", { ...chat, stream: true }],
  ["/v1/chat/completions", { ...chat, tools: [{ type: "function", function: { name: "t", description: canary } }] }],
  ["/v1/completions", { model: "shared", prompt: canary, suffix: canary }],
  ["/v1/embeddings", { model: "shared", input: canary }],
  ["/v1/responses", { model: "shared", input: canary, instructions: canary, store: true }],
  ["/v1/messages", { model: "shared", max_tokens: 9, system: canary, messages }],
  ["/v1/messages/count_tokens", { model: "shared", messages }],
  ["/v1/conversations", { items: [{ type: "message", role: "user", content: canary }] }],
  // Refused requests: an unknown model, a wrong body, and a prompt in the place of a model.
  ["/v1/chat/completions", { ...chat, model: `${canary} as a model` }],
  ["/v1/chat/completions", { ...chat, temperature: canary }],
  ["/v1/chat/completions", { ...chat, messages: [{ role: 7, content: canary }] }],
];

beforeAll(async () => {
  [upstream, receiver] = [await startUpstream(answers), await startWebhookReceiver()];
  tools = new HttpMcpServer({
    tools: {
      async search() {
        return { content: [{ type: "text", text: canary }] };
      },
    },
  });
  const up = `upstreams: [{ name: up, url: "${upstream.url}" }]\nmodels: [{ id: shared, deployments: [{ upstream: up, model: upstream-model }] }]\n`;
  const more = `webhook_loopback: true\ntools: { servers: [{ name: files, url: "${tools.url}", approval: all }] }\n`;
  server = await startHeadrace({
    yaml: up + more,
    flags: { logLevel: "info" },
    notificationTimes: { everyMs: 20, posting: { timeoutMs: 2_000 } },
    batchTimes: { pollMs: 50 },
  });
  operator = await mintKey(server.dataDir, { scopes, accountId: server.firstKey.record.accountId });
  const made = await asOperator("POST", "/v1/admin/accounts", { name: "Acme" });
  const { id } = JSON.parse(made.text) as { id: string };
  const { key } = await mintKeyRecord(server.dataDir, {
    ...{ accountId: id, name: "Key of Acme", quotas: [] },
    scopes: scopes.filter((scope) => scope !== "admin:manage"),
  });
  customer = { key, accountId: id };
  const events = ["upstream.failing", "upstream.recovered", "upstream.down", "upstream.up"];
  for (const [path, of] of [
    ["/v1/admin/webhooks", events],
    ["/v1/webhooks", ["errors.rate", "quota.threshold"]],
  ] as const) {
    const key = path === "/v1/webhooks" ? customer.key : operator;
    const answer = await send(path, { url: receiver.url, events: of }, key);
    expect([path, answer.status]).toEqual([path, 200]);
  }
}, 60_000);

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  for (const part of [upstream, tools, receiver]) await part[Symbol.asyncDispose]();
});

interface Answer {
  status: number;
  text: string;
}

async function send(path: string, body: unknown, key: string, headers: Record<string, string> = {}): Promise<Answer> {
  const response = await server.request(path, { body, headers: { authorization: `Bearer ${key}`, ...headers } });
  return { status: response.status, text: await response.text() };
}

async function asOperator(method: string, path: string, body?: unknown, accept = "application/json"): Promise<Answer> {
  const headers = { authorization: `Bearer ${operator}`, accept };
  const response = await server.request(path, { method, headers, ...(body === undefined ? {} : { body }) });
  return { status: response.status, text: await response.text() };
}

/** Uploads these lines, and returns the id of a batch of them. */
async function batchOf(lines: string): Promise<string> {
  const form = new FormData();
  form.set("purpose", "batch");
  form.set("file", new File([lines], `${canary}.jsonl`));
  const headers = { authorization: `Bearer ${customer.key}` };
  const answer = await fetch(`${server.url}/v1/files`, { method: "POST", headers, body: form });
  expect(answer.status).toBe(200);
  const { id } = (await answer.json()) as { id: string };
  const fields = { input_file_id: id, endpoint: "/v1/chat/completions", completion_window: "24h" };
  const batch = await send("/v1/batches", { ...fields, metadata: { topic: canary } }, customer.key);
  expect(batch.status).toBe(200);
  return (JSON.parse(batch.text) as { id: string }).id;
}

async function callTool(): Promise<void> {
  const body = (method: string, params: object) => ({ jsonrpc: "2.0", id: 1, method, params });
  const accept = { accept: "application/json, text/event-stream" };
  const client = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: canary, version: "1" } };
  const begun = await server.request("/mcp", {
    body: body("initialize", client),
    headers: { authorization: `Bearer ${customer.key}`, ...accept },
  });
  await begun.text();
  const session = begun.headers.get("mcp-session-id");
  const headers = { ...accept, ...(session === null ? {} : { "mcp-session-id": session }) };
  for (const name of ["files_search", "files__search", canary]) {
    await send("/mcp", body("tools/call", { name, arguments: { query: canary } }), customer.key, headers);
  }
}

test("sends the canary by every way in, with success and with failure", async () => {
  const reached = async (script: Script) => {
    upstream.script(script);
    const statuses: number[] = [];
    for (const [path, body] of ways) {
      const headers = { "x-canary": canary, "user-agent": canary };
      statuses.push((await send(path, body, customer.key, headers)).status);
    }
    await callTool();
    return statuses;
  };
  expect((await reached(answers)).map((status) => status < 300)).toEqual(ways.map((_, i) => i < ways.length - 3));
  const line = { custom_id: canary, method: "POST", url: "/v1/chat/completions", body: chat };
  await batchOf(`"${canary}"\n`);
  const batch = await batchOf(`${JSON.stringify(line)}\n`);
  const ofCustomer = { authorization: `Bearer ${customer.key}` };
  await until(async () => {
    const { status } = (await (await server.request(`/v1/batches/${batch}`, { headers: ofCustomer })).json()) as Json;
    return status === "completed";
  }, "the batch");
  await reached(fails);
  for (let i = 0; i < 6; i++) await send("/v1/chat/completions", chat, customer.key);
  await until(
    () => receiver.received.find(({ body }) => body.type === "upstream.failing"),
    "the webhook of a failing upstream",
  );
  expect(upstream.requests.filter(({ text }) => text.includes(canary)).length).toBeGreaterThan(10);
  expect(tools.requests.some(({ body }) => JSON.stringify(body).includes(canary))).toBe(true);
});

/** The GET operations of operators, with the ids that the answers so far have. */
function* adminPaths(seen: readonly string[]): Generator<string> {
  const ids = new Set(seen.flatMap((text) => [...text.matchAll(/"id": ?"([^"]+)"/g)].map(([, id]) => id ?? "")));
  for (const [path, methods] of Object.entries(openapi.paths)) {
    if (!path.startsWith("/v1/admin/") || !("get" in methods)) continue;
    if (!path.includes("{")) yield path;
    else for (const id of ids) yield path.replace(/\{[^}]+\}/g, encodeURIComponent(id));
  }
  const groups = ["account", "person", "key", "app", "model", "upstream", "deployment", "outcome"];
  for (const group of groups) yield `/v1/admin/usage?group_by=${group}&environment=dev`;
  yield `/v1/admin/usage?account=${customer.accountId}&group_by=tag&environment=dev`;
  yield "/v1/admin/usage?bucket=minute&group_by=model&environment=dev";
  yield "/v1/admin/requests?limit=200&environment=dev";
  for (const group of ["account", "model", "deployment", "upstream", "outcome"])
    yield `/v1/admin/overview?group_by=${group}`;
}

test("shows the canary in no answer to an operator, as JSON or CSV", async () => {
  await until(async () => {
    const { text } = await asOperator("GET", "/v1/admin/requests?limit=200&environment=dev");
    return text.includes("unknown_model") || text.includes("model_not_found") ? text : undefined;
  }, "the refused requests");
  const seen: string[] = [];
  const answered = new Set<string>();
  // The second round has the ids of the first one's lists.
  for (const _round of [1, 2]) {
    for (const path of new Set(adminPaths(seen))) {
      for (const accept of ["application/json", "text/csv"]) {
        const { status, text } = await asOperator("GET", path, undefined, accept);
        expect({ path, accept, text }).toEqual({ path, accept, text: text.replaceAll(canary, "THE CANARY") });
        if (status === 200) answered.add(path);
        if (accept === "application/json") seen.push(text);
      }
    }
  }
  const [request] = [...answered].filter((path) => path.startsWith("/v1/admin/requests/"));
  expect(request).toBeDefined();
  expect(answered.size).toBeGreaterThan(40);
});

test("has the canary in no log line of any level, metric or webhook", async () => {
  const metrics = (await asOperator("GET", "/metrics")).text;
  expect(metrics).toContain("headrace_upstream_attempts_total");
  expect(metrics).not.toContain(canary);
  const log = server.logText();
  expect(log).toContain('"level":"info"');
  expect(log.split("\n").filter((line) => line.includes(canary))).toEqual([]);
  expect(receiver.received.length).toBeGreaterThan(0);
  for (const { text } of receiver.received) expect(text).not.toContain(canary);
});

test("has the canary in no export of the command line", async () => {
  const main = join(import.meta.dir, "..", "..", "src", "main.ts");
  const home = mkdtempSync(join(tmpdir(), "headrace-canary-"));
  const env = {
    PATH: process.env["PATH"] ?? "",
    HOME: home,
    HEADRACE_API_KEY: operator,
    HEADRACE_BASE_URL: `${server.url}/v1`,
  };
  const commands = [
    ["requests", "--all-accounts", "--json"],
    ["usage", "--all-accounts", "--group-by", "account,model", "--csv"],
    ["statement", "--account", "all"],
    ["top", "--all-accounts", "--json"],
    ["audit", "--json"],
    ["upstreams", "--json"],
    ["export"],
  ];
  for (const args of commands) {
    const child = Bun.spawn([process.execPath, main, ...args, "--data-dir", home], {
      env,
      stdout: "pipe",
      stderr: "pipe",
    });
    const [out, error] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
    expect([args, await child.exited, error]).toEqual([args, 0, expect.any(String)]);
    expect([args, out + error].join("\n")).not.toContain(canary);
  }
}, 60_000);
