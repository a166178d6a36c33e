// The canary: marked secrets and a marked prompt go through every kind of success and error, and turn up nowhere else.
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { generateApiKey } from "../../src/domain/api-key.ts";
import { unseal } from "../../src/policy/credentials/sealing.ts";
import { deriveKey, loadSecret } from "../../src/storage/files/secret-file.ts";
import { openDatabase } from "../../src/storage/sql/database.ts";
import { type Collector, startCollector } from "../support/collector.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { chunk } from "../support/scripted-upstream.ts";
import { filesIn } from "./data-files.ts";
import { backupOf, doctorOf, metricsOf } from "./elsewhere.ts";
import { addKey } from "./keys.ts";
import { head, raw } from "./raw-client.ts";
import {
  completion,
  goodAnswer,
  plainAnswer,
  type RawUpstream,
  rawYaml,
  startRawUpstream,
  streamHead,
  upstreamKey,
} from "./raw-upstream.ts";

const prompt = "CANARYPROMPT";
const answerText = "CANARYANSWER";
/** Texts of chats that are stored: these belong into the database, and nowhere else. */
const storedPrompt = "CANARYKEPTPROMPT";
const storedAnswer = "CANARYKEPTANSWER";
const storedLabel = "CANARYKEPTLABEL";
/** What names a key: for the keys' table and the audit log. */
const keyName = "CANARYKEYNAME";
const label = "CANARYLABEL";
const collectorToken = "CANARYCOLLECTORTOKEN";
const keptFacts = [storedPrompt, storedAnswer, storedLabel];

let upstream: RawUpstream;
let collector: Collector;
let server: TestServer;
let yaml = "";
/** Every error body that a client got, and every success that is no model's answer. */
let shown = "";
let secrets: string[] = [];

beforeAll(async () => {
  upstream = await startRawUpstream();
  collector = startCollector();
  const tracing = `tracing: { endpoint: "${collector.url}", headers: { authorization: "Bearer ${collectorToken}" } }\n`;
  yaml = rawYaml(upstream, ", timeout_seconds: 1, idle_seconds: 1", tracing);
  server = await startHeadrace({
    yaml,
    heartbeatMs: 100,
  });
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await collector[Symbol.asyncDispose]();
});

const chat = { model: "upstream-model", messages: [{ role: "user", content: prompt }], user: prompt };

async function ask(body: unknown, headers: Record<string, string> = {}, path = "/v1/chat/completions") {
  const response = await server
    .request(path, { body, headers, signal: AbortSignal.timeout(5_000) })
    .catch(() => undefined);
  if (!response) return;
  const text = await response.text().catch(() => "");
  // A model's answer belongs to the client; what surrounds it does not.
  if (!response.ok || text.includes('"error"')) shown += `${text}\n${JSON.stringify([...response.headers])}\n`;
}

test("provokes every kind of success and failure with marked secrets", async () => {
  const unknown = generateApiKey("dev");
  const revoked = await addKey(server, { revokedAt: 1 });
  const poor = await addKey(server, { scopes: [] });
  secrets = [server.key, unknown, revoked, poor, upstreamKey, collectorToken];

  // Requests that never reach a model server.
  for (const key of [unknown, revoked, poor, `${server.key}x`, server.key.slice(0, -1)]) {
    await ask(chat, { authorization: `Bearer ${key}` });
    await ask(chat, { authorization: `Basic ${key}` });
    await ask(chat, { "x-api-key": key });
  }
  await ask(`{"messages":"${prompt}"`);
  await ask(`{"${prompt}":1,"${prompt}":2}`);
  await ask({ ...chat, temperature: prompt });
  await ask({ ...chat, messages: prompt });
  await ask({ ...chat, messages: [{ role: prompt, content: prompt }] });
  await ask({ ...chat, logit_bias: { 1: prompt } });
  await ask({ ...chat, stop: [prompt, 7] });
  await ask({ ...chat, model: "no-such-model" });
  await ask(prompt, { "content-type": `text/${prompt}` });
  await ask(prompt, { "content-encoding": prompt });
  await ask(chat, {}, `/v1/nope?key=${server.key}&prompt=${prompt}`);
  await ask(chat, { "user-agent": prompt, referer: prompt, cookie: `key=${server.key}`, "x-forwarded-for": prompt });
  await raw(server.url, head(`GET /healthz?${server.key} HTTP/1.1`, [`Host: ${prompt}`, `X-${prompt}: ${prompt}`]));

  // Model servers that repeat what they were sent.
  const echo = `you sent ${prompt} with ${upstreamKey}`;
  const parrots = [
    goodAnswer.replace("Hello", answerText.slice(0, 5)),
    ...[400, 401, 413, 422, 429, 500, 503].map((status) => plainAnswer(status, `{"error":{"message":"${echo}"}}`)),
    plainAnswer(500, `<html>${echo}</html>`),
    plainAnswer(200, `{"error":{"message":"${upstreamKey}"}}`),
    plainAnswer(200, `${echo} is no JSON`),
    plainAnswer(200, JSON.stringify({ ...completion, choices: echo })),
    plainAnswer(200, `{"${prompt}":1,"${prompt}":2,"model":"x","choices":[]}`),
    plainAnswer(302, "{}", { Location: `http://127.0.0.1:1/${prompt}` }),
    `HTTP/1.1 200 ${echo}\r\nX-Echo: ${echo}\r\nContent-Length: 5\r\n\r\n{"a":1}`,
    `${echo}\r\n\r\n`,
  ];
  for (const bytes of parrots) {
    upstream.script((socket) => void socket.end(bytes));
    await ask(chat);
    await ask({ model: "upstream-model", input: prompt }, {}, "/v1/embeddings");
    await ask({ model: "upstream-model", prompt }, {}, "/v1/completions");
    await ask({ ...chat, stream: true });
  }
  const hello = chunk({ role: "assistant", content: answerText });
  for (const rest of [
    `${chunk({}, "stop")}data: [DONE]\n\n`,
    `data: {"error":{"message":"${upstreamKey}"}}\n\n`,
    `data: ${echo}\n\n`,
    `data: {"${prompt}":1,"${prompt}":2,"choices":[{}]}\n\n`,
    echo,
    "",
  ]) {
    upstream.script((socket) => void socket.end(streamHead + hello + rest));
    await ask({ ...chat, stream: true });
  }
  upstream.script(() => {});
  await ask(chat);
  await ask({ ...chat, stream: true });
  expect(upstream.requests.length).toBeGreaterThan(40);
  // The marks did travel where they belong.
  expect(upstream.requests[0]?.body).toContain(prompt);
  expect(upstream.requests[0]?.head).toContain(upstreamKey);
  expect(shown.length).toBeGreaterThan(5_000);
});

test("creates, uses, refuses and ends keys, tokens and stored chats with marked values", async () => {
  const post = async (path: string, body: unknown, key = server.key, method = "POST") => {
    const response = await server.request(path, { body, method, headers: { authorization: `Bearer ${key}` } });
    const answer = (await response.json()) as Record<string, string>;
    const { key: secret, access_token: token, ...rest } = answer;
    for (const value of [secret, token]) if (value) secrets.push(value);
    shown += `${JSON.stringify(path.startsWith("/v1/chat") && response.ok ? {} : rest).replaceAll(keyName, "")}\n${JSON.stringify([...response.headers])}\n`;
    return { ...answer, code: response.status } as Record<string, string> & { code: number };
  };
  const maker = await post("/v1/keys", { name: keyName, scopes: ["chat:write", "chat:read", "keys:manage"] });
  const child = await post("/v1/keys", { name: `${keyName} 2`, scopes: ["chat:write"] }, maker["key"]);
  const grown = await post(`/v1/keys/${child["id"]}/rotate`, { overlap_seconds: 0 }, maker["key"]);
  const token = await post("/v1/auth/token", { api_key: maker["key"] });
  for (const made of [maker, child, grown, token]) expect(made.code).toBe(200);
  secrets.push(...(await signingSecrets()));
  expect(secrets.length).toBeGreaterThanOrEqual(10);

  for (const secret of [...secrets]) {
    const bearer = { authorization: `Bearer ${secret}` };
    for (const path of ["/v1/keys", "/v1/account", "/v1/usage"]) await ask(undefined, bearer, path);
    for (const path of [`/v1/keys?after=${secret}`, `/v1/usage?cursor=${secret}`]) await ask(undefined, {}, path);
    for (const body of [{ api_key: `${secret}x` }, { api_key: [secret] }]) {
      await ask(body, {}, "/v1/auth/token");
    }
    await ask({ name: 7, key: secret }, {}, "/v1/keys");
    await ask({ name: "x", allowed_ips: [secret] }, {}, "/v1/keys");
    await ask({ name: "x", scopes: [secret] }, {}, "/v1/keys");
  }
  for (const wrong of [{ expires_at: 1 }, { scopes: [keyName] }, { allowed_ips: [keyName] }, { rate_limit: keyName }]) {
    await ask({ name: keyName, ...wrong }, {}, "/v1/keys");
  }
  await ask({ name: `${keyName}\u202e` }, {}, "/v1/keys");
  await ask({ ...chat, metadata: { [label]: label, n: 7 } });
  await ask({ ...chat, metadata: { topic: label.repeat(90) } });

  const kept = JSON.stringify({
    ...completion,
    choices: [{ ...completion.choices[0], message: { role: "assistant", content: storedAnswer } }],
  });
  upstream.script((socket) => void socket.end(plainAnswer(200, kept)));
  const body = {
    ...chat,
    messages: [{ role: "user", content: storedPrompt }],
    user: "somebody",
    metadata: { topic: storedLabel },
  };
  const stored = await post("/v1/chat/completions", { ...body, store: true });
  expect((await post("/v1/chat/completions", { ...chat, metadata: { topic: label } })).code).toBe(200);
  expect((await post(`/v1/chat/completions/${stored["id"]}`, { metadata: { topic: `${storedLabel} 2` } })).code).toBe(
    200,
  );
  await ask({ metadata: { topic: 7, [prompt]: prompt } }, {}, `/v1/chat/completions/${stored["id"]}`);
  await ask(undefined, {}, `/v1/chat/completions?metadata[topic]=${label.repeat(90)}`);
  await ask(
    undefined,
    { authorization: `Bearer ${maker["key"]}` },
    `/v1/chat/completions/${stored["id"]}/messages?after=x`,
  );

  for (const key of [maker, grown]) {
    await server.request(`/v1/keys/${key["id"]}`, { method: "DELETE" });
    await ask(chat, { authorization: `Bearer ${key["key"]}` });
  }
  await ask(chat, { authorization: `Bearer ${token["access_token"]}` });
});

test("joins machines and adds model servers with marked tokens and keys, rightly and wrongly", async () => {
  const operator = await addKey(server);
  const added = "sk-canary-of-a-server-that-was-added-0123456789";
  const other = "sk-canary-of-a-server-that-was-changed-0123456789";
  secrets.push(operator, added, other);
  const admin = async (path: string, body?: unknown, method?: string) => {
    const headers = { authorization: `Bearer ${operator}` };
    const response = await server.request(`/v1/admin${path}`, { body, headers, ...(method ? { method } : {}) });
    const { token, ...rest } = (await response.json()) as { token?: string };
    if (token !== undefined) secrets.push(token);
    // The address of a model server is an operator's to see, as are names of keys in the audit log.
    const answer = JSON.stringify(rest).replaceAll(new URL(upstream.url).host, "").replaceAll(keyName, "");
    shown += `${answer}\n${JSON.stringify([...response.headers])}\n`;
    return { ...rest, token: token ?? "", status: response.status };
  };
  upstream.script((socket) => void socket.end(plainAnswer(401, `{"error":{"message":"not with ${added}"}}`)));
  await admin("/upstreams", { name: "added", url: upstream.url, api_key: added });
  await admin("/upstreams/added", { api_key: other }, "PATCH");
  await admin("/upstreams/added", { url: "http://127.0.0.1:9/v1" }, "PATCH");
  await admin("/upstream-tests", { url: upstream.url, api_key: added });
  await admin("/upstream-tests", { url: `http://user:${added}@127.0.0.1:9/v1` });
  for (const wrong of [{ api_key: [added] }, { url: added }, { discover: added }, { environments: [added] }]) {
    await admin("/upstreams", { name: "x", url: upstream.url, ...wrong });
    await admin("/upstreams/added", wrong, "PATCH");
  }
  await admin("/upstreams");
  await addMcpServers(admin, added, other);
  const { token } = await admin("/node-tokens", { approved_models: ["some-model"] });
  const machine = { token, name: "gpu-1", public_key: "A".repeat(43) };
  for (const wrong of [{ name: token }, { public_key: token }, { token: [token] }, { [token]: token }]) {
    await ask({ ...machine, ...wrong }, {}, "/v1/nodes");
  }
  for (const path of [`/node-tokens/${token}`, `/nodes/${token}`]) await admin(path, undefined, "DELETE");
  await ask(undefined, { authorization: `Bearer ${token}` }, "/v1/node/connect");
  await ask(machine, {}, "/v1/nodes");
  // Its second use is refused.
  await ask(machine, {}, "/v1/nodes");
  await admin("/node-tokens");
  await admin("/audit?limit=100");
  await admin("/system");
  expect(token).toStartWith("hrn_");
});

async function addMcpServers(
  admin: (path: string, body?: unknown, method?: string) => Promise<unknown>,
  added: string,
  other: string,
): Promise<void> {
  const { url } = upstream;
  await admin("/tool-servers", { name: "tools", url, headers: { authorization: `Bearer ${added}` } });
  await admin("/tool-servers/tools", { headers: { "x-key": other } }, "PATCH");
  await admin("/tool-servers/tools", { url: "http://127.0.0.1:9/mcp" }, "PATCH");
  await admin("/tool-server-tests", { name: "tools" });
  await admin("/tool-server-tests", { url, headers: { authorization: `Bearer ${added}`, "x-key": other } });
  await admin("/tool-server-tests", { url: `http://user:${added}@127.0.0.1:9/mcp` });
  for (const wrong of [
    { headers: { "x-key": `${added}\n` } },
    { headers: { "x-key": [added] } },
    { headers: added },
    { url: added },
    { oauth: { client_id: "ours", client_secret: `${added} ` } },
    { oauth: { client_secret: added } },
    { tools: [`${added} `] },
  ]) {
    await admin("/tool-servers", { name: "x", url, ...wrong });
    await admin("/tool-servers/tools", wrong, "PATCH");
  }
  await admin("/tool-servers/tools", { headers: null, oauth: { client_id: "ours", client_secret: added } }, "PATCH");
  await admin("/tool-servers");
}

/** The private parts of what signs tokens, and of what they are sealed with, in the forms in which they could be written. */
async function signingSecrets(): Promise<string[]> {
  const secret = loadSecret(server.dataDir, undefined);
  const sealing = deriveKey(secret, "signing-key-seal-v1");
  const pepper = deriveKey(secret, "api-key-pepper-v1");
  const db = new Database(join(server.dataDir, "headrace.db"), { readonly: true });
  const rows = db.query("SELECT id, sealed_private_jwk FROM signing_keys").all() as Record<string, string>[];
  db.close();
  expect(rows).not.toBeEmpty();
  const jwks = rows.map((row) => JSON.parse(unseal(row["sealed_private_jwk"] ?? "", sealing, row["id"] ?? "")));
  const derived = [sealing, pepper].flatMap((key) => [
    Buffer.from(key).toString("hex"),
    Buffer.from(key).toString("base64url"),
  ]);
  return [...jwks.map((jwk) => String(jwk.d)), ...derived];
}

/** Lines of what clients were shown that hold one of these. */
function shownWith(marks: readonly string[]): string[] {
  return shown.split("\n").filter((line) => marks.some((mark) => line.includes(mark)));
}

// hardening: K10
test("explains failed and refused requests without their content", async () => {
  const operator = await addKey(server, { scopes: ["usage:read", "admin:manage"] });
  secrets.push(operator);
  const get = async (path: string) => {
    const response = await server.request(path, { headers: { authorization: `Bearer ${operator}` } });
    return await response.text();
  };
  const { data } = JSON.parse(await get("/v1/requests?limit=200")) as { data: { id: string; outcome: string }[] };
  expect(data.filter(({ outcome }) => outcome === "refused").length).toBeGreaterThan(5);
  const failed = data.filter(({ outcome }) => outcome === "failed");
  expect(failed.length).toBeGreaterThan(20);
  const texts = [JSON.stringify(data), ...(await Promise.all(data.map(({ id }) => get(`/v1/requests/${id}`))))];
  expect(texts.filter((text) => text.includes('"reason":"')).length).toBeGreaterThan(10);
  const marks = [...secrets, prompt, answerText, ...keptFacts, keyName, label];
  for (const text of texts) expect(marks.filter((mark) => text.includes(mark))).toEqual([]);
});

test("does not repeat a key that a client put into a path or query by mistake", async () => {
  const key = generateApiKey("dev");
  const before = shown.length;
  for (const path of [
    `/v1/keys/${key}`,
    `/v1/keys/${key}/usage`,
    `/v1/chat/completions/${key}`,
    `/v1/models/${key}`,
    `/v1/usage?start=${key}`,
    `/v1/usage?api_key=${key}`,
    `/v1/usage?${key}`,
    `/v1/${key}`,
  ]) {
    await ask(undefined, {}, path);
  }
  await ask({ api_key: server.key, scope: key }, {}, "/v1/auth/token");
  await ask({ ...chat, model: key });
  const repeated = shown
    .slice(before)
    .split("\n")
    .filter((line) => line.includes(key));
  shown = shown.slice(0, before);
  expect(repeated).toEqual([]);
});

test("keeps a key sent as a model name out of the log", async () => {
  const key = generateApiKey("dev");
  await ask({ ...chat, model: key });
  await ask({ model: key, prompt: "x" }, {}, "/v1/completions");
  await ask(undefined, {}, `/v1/models/${key}`);
  const lines = server.logText().split("\n");
  expect(lines.filter((line) => line.includes(key))).toEqual([]);
});

// hardening: K10
test("keeps contents and credentials out of the spool while requests run", async () => {
  upstream.script((socket) => void socket.write(streamHead + chunk({ role: "assistant", content: answerText })));
  const leave = new AbortController();
  const body = { ...chat, stream: true, metadata: { topic: label } };
  const response = await server.request("/v1/chat/completions", { body, signal: leave.signal });
  await response.body?.getReader().read();
  const spool = filesIn(join(server.dataDir, "spool")).map((file) => readFileSync(file, "latin1"));
  leave.abort();
  const id = response.headers.get("x-request-id");
  await until(() => server.logged("request").some((line) => line["id"] === id), "the request ended");
  expect(spool.join("")).toContain(response.headers.get("x-request-id") ?? "no id");
  for (const mark of [...secrets, prompt, answerText, label, keyName]) expect(spool.join("")).not.toContain(mark);
});

// hardening: K10
test("shows no key, upstream key or upstream address in an error", () => {
  expect(shownWith([...secrets, keyName, storedPrompt, storedAnswer])).toEqual([]);
  expect(shown).not.toContain(new URL(upstream.url).host);
});

// hardening: K10
test("logs no key, prompt, answer or client header", () => {
  const log = server.logText();
  expect(log.split("\n").length).toBeGreaterThan(80);
  const lines = log.split("\n");
  for (const mark of [...secrets, prompt, answerText, ...keptFacts, keyName, label]) {
    expect(lines.filter((line) => line.includes(mark))).toEqual([]);
  }
});

test("records usage once for each request that reached a model, and for no other", async () => {
  const ran = () => server.logged("request").filter((line) => line["outcome"] !== undefined);
  expect(ran().length).toBeGreaterThan(40);
  const db = await openDatabase(join(server.dataDir, "headrace.db"));
  const recorded = async () =>
    (await db`SELECT request_id FROM usage_records`).map((row: { request_id: string }) => row.request_id);
  await until(async () => (await recorded()).length >= ran().length, "all usage is written");
  expect((await recorded()).sort()).toEqual(
    ran()
      .map((line) => String(line["id"]))
      .sort(),
  );
  await db.close();
});

// hardening: K10
test("stores no key outside credentials.json, and no prompt or answer, in the data directory", () => {
  const files = filesIn(server.dataDir);
  expect(files.map((file) => file.slice(server.dataDir.length + 1))).toContain("headrace.db");
  for (const file of files) {
    const bytes = readFileSync(file).toString("latin1");
    const allowed = file.endsWith("credentials.json") ? [server.key] : [];
    const database = /headrace\.db(-wal|-shm)?$/.test(file);
    for (const mark of [...secrets, prompt, answerText, label, ...(database ? [] : [...keptFacts, keyName])]) {
      if (!allowed.includes(mark)) expect([file, mark, bytes.includes(mark)]).toEqual([file, mark, false]);
    }
  }
});

test("stores chats only in their own table, and key names only in the key table and the audit log", () => {
  const db = new Database(join(server.dataDir, "headrace.db"), { readonly: true });
  const tables = db.query("SELECT name FROM sqlite_schema WHERE type = 'table'").all() as { name: string }[];
  const holders = (mark: string) =>
    tables
      .map(({ name }) => name)
      .filter((name) => JSON.stringify(db.query(`SELECT * FROM ${name}`).all()).includes(mark))
      .sort();
  for (const mark of keptFacts) expect([mark, holders(mark)]).toEqual([mark, ["stored_chats"]]);
  expect(holders(keyName)).toEqual(["api_keys", "audit_log"]);
  db.close();
});

// hardening: K10
test("reveals no request, key, key name or upstream credential in metrics and doctor", async () => {
  const texts = { metrics: await metricsOf(server), doctor: await doctorOf(server, yaml) };
  for (const [where, text] of Object.entries(texts)) {
    const found = [...secrets, prompt, answerText, ...keptFacts, keyName, label].filter((mark) => text.includes(mark));
    expect([where, found]).toEqual([where, []]);
  }
});

// hardening: K10
test("keeps keys, prompts, answers and metadata out of traces, however requests ended", async () => {
  // Spans are sent every few seconds; of a request at the beginning and of one at the end they are all there.
  const traced = async () => new Set(collector.spans.map(({ attributes }) => attributes["http.response.status_code"]));
  await until(async () => [...(await traced())].length > 5, "traces of many kinds of answers have come", 20_000);
  expect(collector.requests[0]?.headers.get("authorization")).toBe(`Bearer ${collectorToken}`);
  const text = collector.text();
  expect(text.length).toBeGreaterThan(20_000);
  const marks = [...secrets, prompt, answerText, ...keptFacts, keyName, label];
  expect(marks.filter((mark) => text.includes(mark))).toEqual([]);
});

// hardening: K10
test("backs up only what the database holds: no key, secret or unstored text", async () => {
  for (const [name, bytes] of await backupOf(server)) {
    const allowed = name === "headrace.db" ? [...keptFacts, keyName] : [];
    const found = [...secrets, prompt, answerText, ...keptFacts, keyName, label].filter((mark) => bytes.includes(mark));
    expect([name, found.filter((mark) => !allowed.includes(mark))]).toEqual([name, []]);
  }
});

test("makes files with secrets readable to their owner only", () => {
  for (const file of ["secret", "credentials.json"]) {
    expect(statSync(join(server.dataDir, file)).mode & 0o077).toBe(0);
  }
  expect(statSync(server.dataDir).mode & 0o077).toBe(0);
});
