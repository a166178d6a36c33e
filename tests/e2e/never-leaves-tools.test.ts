// MCP servers and keys that never leave: what is not marked as local is neither seen nor asked.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { mintKey } from "../support/mint-key.ts";

let away: Bun.Server<undefined>;
let asked = 0;
let server: TestServer;
let [staying, leaving] = ["", ""];

const yamlOf = (marks: string) =>
  `tools: { servers: [{ name: away, url: "http://127.0.0.1:${away.port}/mcp"${marks} }] }\n`;

beforeAll(async () => {
  const handler = createMcpHandler(() => {
    const tools = new McpServer({ name: "away", version: "1" });
    tools.registerTool("send", { inputSchema: z.object({ text: z.string() }) }, () => ({ content: [] }));
    return tools;
  });
  away = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    fetch(request) {
      asked++;
      return handler.fetch(request);
    },
  });
  server = await startHeadrace({ yaml: yamlOf("") });
  staying = await mintKey(server.dataDir, { scopes: ["tools:use"], neverLeaves: true });
  leaving = await mintKey(server.dataDir, { scopes: ["tools:use"] });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await away.stop(true);
});

async function ask(key: string, path: string, method: string, params: Readonly<Record<string, unknown>> = {}) {
  asked = 0;
  const revision = "2026-07-28";
  const meta = {
    "io.modelcontextprotocol/protocolVersion": revision,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
  };
  const response = await fetch(server.url + path, {
    method: "POST",
    headers: {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": revision,
      "mcp-method": method,
      ...("name" in params && { "mcp-name": String(params["name"]) }),
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { ...params, _meta: meta } }),
  });
  await response.text();
  return { status: response.status, asked };
}

test.each([
  ["/mcp", { name: "away_send", arguments: { text: "mine" } }],
  ["/mcp/away", { name: "send", arguments: { text: "mine" } }],
])(
  "does not call an MCP server that is not marked as local for a key that must stay local (%s)",
  async (path, call) => {
    expect((await ask(staying, path, "tools/list")).asked).toBe(0);
    expect((await ask(staying, path, "tools/call", call)).asked).toBe(0);
    expect((await ask(leaving, path, "tools/call", call)).asked).toBeGreaterThan(0);
  },
);

test("calls an MCP server for such a key once the changed file marks it as local", async () => {
  await server.reconfigure(yamlOf(", local: true"));
  expect((await ask(staying, "/mcp", "tools/list")).asked).toBeGreaterThan(0);
  await server.reconfigure(yamlOf(""));
  expect((await ask(staying, "/mcp", "tools/list")).asked).toBe(0);
});
