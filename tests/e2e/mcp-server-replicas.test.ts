// Two processes on one PostgreSQL: MCP servers that are added, changed and approved at one hold at the other.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { until } from "../support/headrace.ts";
import { HttpMcpServer, textResult } from "../support/mcp-servers.ts";
import { adminOf, type Operated } from "../support/operated.ts";
import { makeOperatorKey } from "../support/operator-key.ts";
import { startReplicas, type TestReplicas } from "../support/replicas.ts";

/** Redis, which there is none here, tells it at once. */
const boundMs = 2_000;
const text = async () => textResult("found");

let replicas: TestReplicas;
let here: Operated["admin"];
let elsewhere: Operated["admin"];
let there: Client;
let tools: HttpMcpServer;
let notified = 0;

beforeAll(async () => {
  tools = new HttpMcpServer({ tools: { search: text } });
  replicas = await startReplicas();
  const [first, second] = replicas.servers;
  if (!first || !second) throw new Error("no replicas");
  const operator = await makeOperatorKey(first.dataDir, [], replicas.env);
  [here, elsewhere] = [adminOf(first, operator), adminOf(second, operator)];
  const made = await first.request("/v1/keys", {
    body: { name: "tools", scopes: ["tools:use"] },
    headers: { authorization: `Bearer ${replicas.key}` },
  });
  const headers = { authorization: `Bearer ${((await made.json()) as { key: string }).key}` };
  there = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode: "legacy" } });
  there.setNotificationHandler("notifications/tools/list_changed", () => {
    notified++;
  });
  await there.connect(new StreamableHTTPClientTransport(new URL(`${second.url}/mcp`), { requestInit: { headers } }));
}, 60_000);

afterAll(async () => {
  await there.close();
  await replicas[Symbol.asyncDispose]();
  await tools[Symbol.asyncDispose]();
});

const offered = async () => (await there.listTools()).tools.map(({ name }) => name);

/** Does it at the one, and waits until the other offers these tools, of which its client is told. */
async function holds(change: () => Promise<{ status: number }>, expected: readonly string[]): Promise<void> {
  const before = notified;
  expect((await change()).status).toBe(200);
  await until(async () => Bun.deepEquals(await offered(), expected), `${expected} at the other`, boundMs);
  await until(() => notified > before, "its client is told", boundMs);
}

test("applies an MCP server's addition, change, approval and deletion at the other replica within two seconds", async () => {
  await holds(() => here("POST", "/tool-servers", { name: "files", url: tools.url }), ["files_search"]);
  await holds(() => here("PATCH", "/tool-servers/files", { enabled: false }), []);
  await holds(() => here("PATCH", "/tool-servers/files", { enabled: true }), ["files_search"]);
  const [{ digest }] = (await here("GET", "/tool-servers/files/definitions")).body.data;
  const decide = (decision: string) => () =>
    here("POST", "/tool-servers/files/definitions", { name: "search", digest, decision });
  await holds(decide("refused"), []);
  await holds(decide("approved"), ["files_search"]);
  await holds(() => here("DELETE", "/tool-servers/files"), []);
}, 60_000);

test("does not notify subscribers at another replica of changes unrelated to tools", async () => {
  await holds(() => here("POST", "/tool-servers", { name: "files", url: tools.url }), ["files_search"]);
  const before = notified;
  expect((await here("POST", "/upstreams", { name: "models", url: "http://127.0.0.1:1/v1" })).status).toBe(200);
  await Bun.sleep(boundMs);
  expect(notified).toBe(before);
}, 60_000);

test("keeps both changes if two operators edit an MCP server at two replicas at once", async () => {
  expect((await here("POST", "/tool-servers", { name: "both", url: tools.url, enabled: false })).status).toBe(200);
  for (let i = 1; i <= 20; i++) {
    const changes = [here("PATCH", "/tool-servers/both", { title: `T${i}` })];
    changes.push(elsewhere("PATCH", "/tool-servers/both", { headers: { authorization: `Bearer token-${i}` } }));
    changes.push(elsewhere("PATCH", "/tool-servers/both", { max_concurrency: i }));
    expect((await Promise.all(changes)).map(({ status }) => status)).toEqual([200, 200, 200]);
    // Whoever changes reads what the others have left.
    const { title, max_concurrency: calls } = (await here("PATCH", "/tool-servers/both", {})).body;
    await here("POST", "/tool-server-tests", { name: "both" });
    const sent = tools.requests.at(-1)?.headers.get("authorization");
    expect([title, calls, sent]).toEqual([`T${i}`, i, `Bearer token-${i}`]);
  }
}, 60_000);
