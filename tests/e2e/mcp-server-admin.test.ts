// MCP servers that operators add, change, test and delete while the server runs.
import { afterEach, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { SQL } from "bun";
import { startHeadrace, type TestServer, type TestServerOptions, until } from "../support/headrace.ts";
import { manualClock } from "../support/manual-clock.ts";
import { startMcpServer } from "../support/mcp/mcp-server.ts";
import { HttpMcpServer, type McpServerOptions, mcpServer as modelServer, textResult } from "../support/mcp-servers.ts";
import { type Operated, operated } from "../support/operated.ts";
import { makeOperatorKey } from "../support/operator-key.ts";
import { startWebhookReceiver } from "../support/webhook-receiver.ts";

const secret = "Bearer tok-0123456789abcdef";
const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

/** `operator`: of an earlier server with the same data. */
async function start(options: TestServerOptions = {}, operator?: string): Promise<Operated> {
  const server = await startHeadrace(options);
  stack.push(server);
  return await operated(server, operator ?? (await makeOperatorKey(server.dataDir, [], options.env)));
}

function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), "headrace-tools-"));
  stack.push({ [Symbol.asyncDispose]: async () => rmSync(directory, { recursive: true, force: true }) });
  return join(directory, "data");
}

const authorizationOf = (tools: HttpMcpServer) => tools.requests.at(-1)?.headers.get("authorization");

function mcpServer(options: McpServerOptions = { tools: { search: async () => textResult("found") } }) {
  const server = new HttpMcpServer(options);
  stack.push(server);
  return server;
}

async function clientOf(server: Pick<TestServer, "url" | "request">, onChange = () => {}): Promise<Client> {
  const made = await server.request("/v1/keys", { body: { name: "tools", scopes: ["tools:use"] } });
  const { key } = (await made.json()) as { key: string };
  const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode: "legacy" } });
  client.setNotificationHandler("notifications/tools/list_changed", onChange);
  const headers = { authorization: `Bearer ${key}` };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${server.url}/mcp`), { requestInit: { headers } }));
  stack.push({ [Symbol.asyncDispose]: () => client.close() });
  return client;
}

const names = async (client: Client) => (await client.listTools()).tools.map(({ name }) => name);

function databaseText(dataDir: string): string {
  const files = readdirSync(dataDir).filter((name) => name.startsWith("headrace.db"));
  return files.map((name) => readFileSync(join(dataDir, name), "latin1")).join("");
}

test("offers an added MCP server's tools in the answer, and sends its headers to that server alone", async () => {
  const tools = mcpServer();
  const { server, admin } = await start();
  const client = await clientOf(server);
  expect(await names(client)).toEqual([]);
  const request = { name: "files", url: tools.url, headers: { Authorization: secret }, price_per_call: 0.01 };
  const { status, body } = await admin("POST", "/tool-servers", request);
  expect([status, body]).toEqual([
    200,
    {
      ...{ object: "tool_server", name: "files", title: null, description: null, source: "database" },
      ...{ overrides_database: false, place: "http", url: tools.url, node: null, credentials: "headers" },
      ...{ credentials_unreadable: false, header_names: ["Authorization"], oauth: null },
      ...{ local: false, environments: null, accounts: null, tools: null, approval: "first", sharing: "person" },
      protocol_version: null,
      ...{ timeout_seconds: 60, max_result_bytes: 4_194_304, max_concurrency: 32, price_per_call: 0.01 },
      ...{ enabled: true, created_at: expect.any(Number), waiting: 0 },
    },
  ]);
  expect(await names(client)).toEqual(["files_search"]);
  expect((await client.callTool({ name: "files_search", arguments: {} })).content).toEqual([
    { type: "text", text: "found" },
  ]);
  expect(authorizationOf(tools)).toBe(secret);
  const shown = JSON.stringify([
    (await admin("GET", "/tool-servers")).body,
    (await admin("GET", "/tool-servers/files")).body,
    (await admin("PATCH", "/tool-servers/files", { headers: { authorization: `${secret}2` } })).body,
    (await admin("GET", "/audit")).body,
  ]);
  expect(shown).toContain("tool_server.created");
  expect(shown).toContain("tool_server.changed");
  expect(`${shown}${server.logText()}${databaseText(server.dataDir)}`).not.toContain("tok-0123456789abcdef");
  await names(client);
  await client.callTool({ name: "files_search", arguments: {} });
  expect(authorizationOf(tools)).toBe(`${secret}2`);
});

test("charges for a call of an MCP server with a price", async () => {
  const tools = mcpServer();
  const { server, admin } = await start();
  await admin("POST", "/tool-servers", { name: "files", url: tools.url, price_per_call: 0.25 });
  const client = await clientOf(server);
  await client.callTool({ name: "files_search", arguments: {} });
  await server.governance.ledger.flush();
  const usage = await (await server.request("/v1/usage?group_by=model")).json();
  expect(JSON.stringify(usage)).toContain('"cost":0.25');
});

test("notifies subscribed clients when an MCP server is added, changed and deleted, and then sends none of its tools", async () => {
  const tools = mcpServer();
  const { server, admin } = await start();
  let reported = Promise.withResolvers<void>();
  const client = await clientOf(server, () => reported.resolve());
  const change = async (method: string, path: string, body?: object) => {
    reported = Promise.withResolvers();
    expect((await admin(method, path, body)).status).toBe(200);
    await reported.promise;
    return await names(client);
  };
  expect(await change("POST", "/tool-servers", { name: "files", url: tools.url })).toEqual(["files_search"]);
  expect(await change("PATCH", "/tool-servers/files", { enabled: false })).toEqual([]);
  expect(await change("PATCH", "/tool-servers/files", { enabled: true })).toEqual(["files_search"]);
  expect(await change("DELETE", "/tool-servers/files")).toEqual([]);
  expect((await admin("GET", "/tool-servers/files")).status).toBe(404);
});

test("prefers the configured MCP server of a name, which only the file can change", async () => {
  const [declared, added] = [mcpServer(), mcpServer({ tools: { other: async () => textResult("other") } })];
  const yaml = `tools:\n  servers:\n    - { name: files, url: "${declared.url}", price_per_call: 0.01 }\n`;
  const { server, admin } = await start({ yaml: "" });
  await admin("POST", "/tool-servers", { name: "files", url: added.url });
  const client = await clientOf(server);
  expect(await names(client)).toEqual(["files_other"]);
  await server.reconfigure(yaml);
  expect((await admin("GET", "/tool-servers")).body.data).toMatchObject([
    { name: "files", source: "file", overrides_database: true, url: declared.url, price_per_call: 0.01 },
  ]);
  expect(await names(client)).toEqual([]);
  for (const [method, body] of [["PATCH", { enabled: false }]] as const) {
    const { status, body: answer } = await admin(method, "/tool-servers/files", body);
    expect([status, answer.error.message]).toEqual([403, expect.stringContaining("headrace.yaml")]);
  }
  const again = await admin("POST", "/tool-servers", { name: "files", url: added.url });
  expect(again.body.error.message).toContain("headrace.yaml has an MCP server files");
  await server.reconfigure("");
  expect(await names(client)).toEqual(["files_other"]);
});

test("requires headers again for an MCP server URL with another origin, and not for the same", async () => {
  const [tools, other] = [mcpServer(), mcpServer()];
  const { admin } = await start();
  await admin("POST", "/tool-servers", { name: "files", url: tools.url, headers: { authorization: secret } });
  const moved = await admin("PATCH", "/tool-servers/files", { url: other.url });
  expect([moved.status, moved.body.error.message]).toEqual([400, expect.stringContaining("headers: is required")]);
  expect((await admin("PATCH", "/tool-servers/files", { url: `${tools.url}/v2` })).status).toBe(200);
  const fresh = await admin("PATCH", "/tool-servers/files", { url: other.url, headers: null });
  expect(fresh.body).toMatchObject({ url: other.url, credentials: "none", header_names: [] });
  const client = { client_id: "ours", client_secret: "s3cret-value" };
  await admin("PATCH", "/tool-servers/files", { oauth: client });
  const stolen = await admin("PATCH", "/tool-servers/files", { url: tools.url, oauth: { scopes: ["all"] } });
  expect(stolen.body.error.message).toContain("oauth.client_secret: is required");
  const kept = await admin("PATCH", "/tool-servers/files", { oauth: { scopes: ["read"] } });
  expect(kept.body.oauth).toEqual({ issuer: null, client_id: "ours", has_client_secret: true, scopes: ["read"] });
  const led = await admin("PATCH", "/tool-servers/files", { oauth: { issuer: "https://mallory.example" } });
  expect(led.body.error.message).toContain("oauth.client_secret: is required");
});

test.each([
  [{ name: "Bad Name", url: "http://127.0.0.1:1/mcp" }, "name: must be"],
  [{ name: "ok" }, "url: is missing"],
  [{ name: "ok", url: "ftp://example.com" }, "url: must begin with http"],
  [{ name: "ok", url: "http://a:b@example.com" }, "url: must have no user"],
  [
    { name: "ok", url: "http://example.com", node: { node: "n", server: "s" } },
    "node: cannot be set together with url",
  ],
  [{ name: "ok", node: { node: "none", server: "files" } }, "node.node: there is no such node"],
  [{ name: "ok", url: "http://example.com", headers: { "a b": "c" } }, "headers: each name must be"],
  [{ name: "ok", url: "http://example.com", headers: { "Content-Length": "3" } }, "headers: has Content-Length"],
  [{ name: "ok", url: "http://example.com", headers: { a: "c\nd" } }, "headers.a: must be"],
  [{ name: "ok", url: "http://example.com", headers: { a: "c", A: "d" } }, "each name once"],
  [
    { name: "ok", url: "http://example.com", headers: { a: "c" }, oauth: {} },
    "oauth: cannot be set together with headers",
  ],
  [{ name: "ok", url: "http://example.com", oauth: { client_secret: "x" } }, "without its client_id"],
  [{ name: "ok", url: "http://example.com", oauth: { issuer: "http://10.0.0.1" } }, "oauth.issuer: must be a URL"],
  [{ name: "ok", url: "http://example.com", tools: ["a b"] }, "tools[0]: must be"],
  [{ name: "ok", url: "http://example.com", accounts: ["none"] }, "accounts[0]: must be an id such as acct_"],
  [{ name: "ok", url: "http://example.com", title: "a\u0000b" }, "title: must be"],
  [{ name: "ok", url: "http://example.com", timeout_seconds: 0 }, "timeout_seconds: must be"],
  [{ name: "ok", url: "http://example.com", price_per_call: -1 }, "price_per_call: must be"],
  [{ name: "ok", url: "http://example.com", command: "ls" }, "command"],
])("refuses the MCP server %j with the field and its allowed values", async (request, message) => {
  const { admin } = await shared();
  const { status, body } = await admin("POST", "/tool-servers", request);
  expect([status, body.error.message]).toEqual([400, expect.stringContaining(message)]);
});

let one: Promise<Operated> | undefined;
function shared(): Promise<Operated> {
  one ??= startHeadrace().then((server) => operated(server));
  return one;
}

test("hides MCP server administration from non-operators", async () => {
  const { server } = await start();
  for (const [method, path, body] of [
    ["GET", "/tool-servers"],
    ["POST", "/tool-servers", { name: "files", url: "http://example.com" }],
    ["PATCH", "/tool-servers/files", {}],
    ["DELETE", "/tool-servers/files"],
    ["POST", "/tool-server-tests", { url: "http://example.com" }],
  ] as const) {
    const answer = await server.request(`/v1/admin${path}`, { method, ...(body && { body }) });
    expect([path, answer.status]).toEqual([path, 403]);
  }
});

test("reports an MCP server's features and approval states in a test, without recording anything", async () => {
  const tools = mcpServer();
  const { server, admin } = await start();
  const ask = (body: object) => admin("POST", "/tool-server-tests", body);
  const before = await ask({ url: tools.url, headers: { authorization: secret } });
  expect(before.body).toMatchObject({
    ...{ ok: true, error: null, server: { name: "fixture", version: "1" }, instructions: "Ask away." },
    tools: [{ name: "search", state: "new" }],
  });
  expect(authorizationOf(tools)).toBe(secret);
  await admin("POST", "/tool-servers", { name: "files", url: tools.url, approval: "each" });
  expect((await ask({ name: "files" })).body.tools).toMatchObject([{ state: "new" }]);
  expect((await admin("GET", "/tool-servers/files/definitions")).body.data).toEqual([]);
  expect(await names(await clientOf(server))).toEqual([]);
  expect((await ask({ name: "files" })).body.tools).toMatchObject([{ state: "pending" }]);
  // The tool, and what the server says of itself.
  expect((await admin("GET", "/tool-servers/files")).body.waiting).toBe(2);
});

test("leaves no approvals of a deleted MCP server to a new one with its name", async () => {
  const tools = mcpServer();
  const { server, admin } = await start();
  const client = await clientOf(server);
  await admin("POST", "/tool-servers", { name: "files", url: tools.url });
  expect(await names(client)).toEqual(["files_search"]);
  await admin("DELETE", "/tool-servers/files");
  await admin("POST", "/tool-servers", { name: "files", url: tools.url, approval: "each" });
  expect(await names(client)).toEqual([]);
});

test("speaks the MCP revision that an operator sets, and in a test the requested one", async () => {
  const both = startMcpServer(() => modelServer({ search: async () => textResult("found") }));
  stack.push(both);
  const { admin } = await start();
  const add = async (body: object) => await admin("POST", "/tool-servers", { name: "files", url: both.url, ...body });
  const revision = async (body: object) => (await admin("POST", "/tool-server-tests", body)).body.revision;
  expect((await add({ protocol_version: "2024-11-05" })).status).toBe(400);
  expect((await add({})).body.protocol_version).toBeNull();
  expect(await revision({ name: "files" })).toBe("2026-07-28");
  expect(await revision({ name: "files", protocol_version: "2025-06-18" })).toBe("2025-06-18");
  expect(await revision({ url: both.url, protocol_version: "2025-11-25" })).toBe("2025-11-25");
  const set = async (protocol_version: string | null) =>
    (await admin("PATCH", "/tool-servers/files", { protocol_version })).body.protocol_version;
  expect(await set("2025-11-25")).toBe("2025-11-25");
  expect(await revision({ name: "files" })).toBe("2025-11-25");
  expect(await revision({ name: "files", protocol_version: null })).toBe("2026-07-28");
  await admin("PATCH", "/tool-servers/files", { title: "Files" });
  expect(await revision({ name: "files" })).toBe("2025-11-25");
  expect(await set(null)).toBeNull();
  expect(await revision({ name: "files" })).toBe("2026-07-28");
});

test("reports an MCP server's error without the header that was sent", async () => {
  const refusing = mcpServer({
    before: (request) => new Response(`no: ${request.headers.get("authorization")}`, { status: 403 }),
  });
  const { server, admin } = await start();
  const ask = async (body: object) => (await admin("POST", "/tool-server-tests", body)).body;
  const refused = await ask({ url: refusing.url, headers: { authorization: secret } });
  expect(refused).toMatchObject({ ok: false, error: { code: "upstream_error" }, tools: [] });
  expect(JSON.stringify(refused)).not.toContain("tok-0123456789abcdef");
  expect(await ask({ url: "http://127.0.0.1:1/mcp" })).toMatchObject({ ok: false });
  const both = await ask({ url: refusing.url, name: "files" });
  expect(both.error.message).toContain("url: is for a server that is tested without a name");
  expect((await ask({ name: "files" })).error.code).toBe("not_found");
  await admin("POST", "/tool-servers", { name: "crm", url: refusing.url, oauth: {} });
  const person = await ask({ name: "crm" });
  expect(person).toMatchObject({ ok: false, error: { code: "permission_denied" } });
  expect(server.logText()).not.toContain("tok-0123456789abcdef");
});

test("hides sent headers in a test, even if the MCP server returns them", async () => {
  const tools = mcpServer({ tools: { "tok-0123456789abcdef": async () => textResult("found") } });
  const { admin } = await start();
  const { body } = await admin("POST", "/tool-server-tests", { url: tools.url, headers: { authorization: secret } });
  expect(body).toMatchObject({ ok: true, tools: [{ name: "[redacted]" }] });
});

test("notifies operators once of a changed tool definition, and again after a decision", async () => {
  const work = { search: async () => textResult("found") };
  const tools = mcpServer({ tools: work });
  const receiver = await startWebhookReceiver();
  stack.push(receiver);
  const clock = manualClock();
  const { server, admin } = await start({
    yaml: "webhook_loopback: true\n",
    clock,
    notificationTimes: { everyMs: 50 },
  });
  await admin("POST", "/webhooks", { url: receiver.url, events: ["tool.changed"] });
  await admin("POST", "/tool-servers", { name: "files", url: tools.url });
  const client = await clientOf(server);
  await names(client);
  const reported = () => receiver.received.map(({ body }) => body.data);
  const grow = async (name: string) => {
    Object.assign(work, { [name]: work.search });
    await admin("PATCH", "/tool-servers/files", { title: `With ${name}` });
    expect(await names(client)).toEqual(["files_search"]);
  };
  await grow("one");
  await until(() => reported().length === 1, "it is told");
  await grow("two");
  await Bun.sleep(300);
  expect(reported()).toEqual([{ server: "files", waiting: 1 }]);
  for (const { name, digest, state } of (await admin("GET", "/tool-servers/files/definitions")).body.data) {
    if (state !== "pending") continue;
    await admin("POST", "/tool-servers/files/definitions", { name, digest, decision: "refused" });
  }
  // A process that has just started ends nothing.
  clock.advance(121_000);
  await server.notices.incidentWatch.check();
  await grow("three");
  await until(() => reported().length === 2, "it is told again");
  expect(reported()[1]).toEqual({ server: "files", waiting: 1 });
});

test("sends an MCP server's headers to no other address, whoever edits its row", async () => {
  const [first, second] = [mcpServer(), mcpServer()];
  const dataDir = temporaryDirectory();
  const before = await start({ dataDir });
  await before.admin("POST", "/tool-servers", { name: "files", url: first.url, headers: { authorization: secret } });
  await before.server.close();
  const db = new SQL({ adapter: "sqlite", filename: join(dataDir, "headrace.db") });
  await db`UPDATE tool_servers SET place = ${JSON.stringify({ kind: "http", url: second.url })}`;
  await db.close();
  const { server, admin } = await start({ dataDir }, before.operator);
  const moved = (await admin("GET", "/tool-servers/files")).body;
  expect(moved).toMatchObject({ url: second.url, credentials_unreadable: true, header_names: [], enabled: true });
  const tested = await admin("POST", "/tool-server-tests", { name: "files" });
  expect([tested.status, tested.body.error.message]).toEqual([400, expect.stringContaining("Give it its headers")]);
  const { api_key: key } = JSON.parse(readFileSync(join(dataDir, "credentials.json"), "utf8"));
  const client = await clientOf({ ...server, request: asKey(server, key) });
  expect(await names(client)).toEqual([]);
  expect(second.requests).toEqual([]);
  const mended = await admin("PATCH", "/tool-servers/files", { headers: { authorization: "Bearer another-token" } });
  expect(mended.body).toMatchObject({ credentials_unreadable: false, header_names: ["authorization"] });
  expect(await names(client)).toEqual(["files_search"]);
  expect(authorizationOf(second)).toBe("Bearer another-token");
});

const asKey =
  (server: TestServer, key: string): TestServer["request"] =>
  (path, init = {}) =>
    server.request(path, { ...init, headers: { authorization: `Bearer ${key}`, ...init.headers } });

test("re-encrypts MCP server headers under a new secret before the old one is removed", async () => {
  const tools = mcpServer();
  const dataDir = temporaryDirectory();
  const [older, newer] = ["1a".repeat(32), "2b".repeat(32)];
  const before = await start({ dataDir, env: { HEADRACE_SECRET: older } });
  await before.admin("POST", "/tool-servers", { name: "files", url: tools.url, headers: { authorization: secret } });
  await before.server.close();
  const both = await start({ dataDir, env: { HEADRACE_SECRET: `${newer},${older}` } }, before.operator);
  // The operator's key comes under the newer one as it is used.
  expect((await both.admin("POST", "/tool-server-tests", { name: "files" })).body.ok).toBe(true);
  await both.server.close();
  const { admin } = await start({ dataDir, env: { HEADRACE_SECRET: newer } }, before.operator);
  tools.requests.length = 0;
  expect((await admin("POST", "/tool-server-tests", { name: "files" })).body.ok).toBe(true);
  expect(authorizationOf(tools)).toBe(secret);
});

test("adds an MCP server once for concurrent requests, with one audit entry per change and no secret", async () => {
  const tools = mcpServer();
  const { admin } = await start();
  const request = { name: "told", url: tools.url, headers: { authorization: secret } };
  const answers = await Promise.all([1, 2, 3, 4].map(() => admin("POST", "/tool-servers", request)));
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 400, 400, 400]);
  await admin("PATCH", "/tool-servers/told", { enabled: true, headers: { authorization: secret } });
  await admin("PATCH", "/tool-servers/told", { max_concurrency: 2, headers: { authorization: "Bearer another" } });
  await admin("DELETE", "/tool-servers/told");
  const { data } = (await admin("GET", "/audit?target=told")).body;
  expect(data.map(({ action, detail }: Record<string, unknown>) => [action, detail])).toEqual([
    ["tool_server.deleted", expect.objectContaining({ url: tools.url, header_names: ["authorization"] })],
    ["tool_server.changed", { max_concurrency: { before: 32, after: 2 }, headers: "replaced" }],
    ["tool_server.created", expect.objectContaining({ url: tools.url, header_names: ["authorization"] })],
  ]);
});

test("accepts a hundred MCP servers and refuses the next", async () => {
  const { admin } = await start();
  for (let i = 0; i < 100; i++) await admin("POST", "/tool-servers", { name: `s${i}`, url: "http://127.0.0.1:1/mcp" });
  const { status, body } = await admin("POST", "/tool-servers", { name: "more", url: "http://127.0.0.1:1/mcp" });
  expect([status, body.error.message]).toEqual([400, expect.stringContaining("100 MCP servers")]);
});
