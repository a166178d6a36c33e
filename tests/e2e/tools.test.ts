// Tools of servers by the gateway's endpoint, over real HTTP, by the protocol's own client.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";
import { startHeadrace, type TestServer } from "../support/headrace.ts";

let tools: Bun.Server<undefined>;
let headrace: TestServer;
let key: string;

beforeAll(async () => {
  const handler = createMcpHandler(() => {
    const server = new McpServer({ name: "weather", version: "1" });
    server.registerTool(
      "forecast",
      { description: "Tells the weather.", inputSchema: z.object({ city: z.string() }) },
      ({ city }) => ({
        content: [{ type: "text", text: `Rain in ${city}` }],
      }),
    );
    return server;
  });
  tools = Bun.serve({ port: 0, hostname: "127.0.0.1", idleTimeout: 0, fetch: (request) => handler.fetch(request) });
  const yaml = `tools:\n  servers:\n    - { name: weather, url: "http://127.0.0.1:${tools.port}/mcp" }\n`;
  headrace = await startHeadrace({ yaml });
  const made = await headrace.request("/v1/keys", { body: { name: "tools", scopes: ["tools:use"] } });
  ({ key } = (await made.json()) as { key: string });
});

afterAll(async () => {
  await headrace[Symbol.asyncDispose]();
  await tools.stop(true);
});

test.each(["legacy", "auto"] as const)("lists and calls a tool by a client's key (%s)", async (mode) => {
  const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode } });
  const headers = { authorization: `Bearer ${key}` };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${headrace.url}/mcp`), { requestInit: { headers } }));
  expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(["weather_forecast"]);
  const result = await client.callTool({ name: "weather_forecast", arguments: { city: "Ulm" } });
  expect(result.content).toEqual([{ type: "text", text: "Rain in Ulm" }]);
  await client.close();
});

test("refuses MCP without a key or the scope, and points an unauthenticated client to sign-in", async () => {
  const ask = (authorization?: string) =>
    fetch(`${headrace.url}/mcp`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        ...(authorization && { authorization }),
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" }),
    });
  const stranger = await ask();
  expect(stranger.status).toBe(401);
  expect(stranger.headers.get("www-authenticate")).toContain("/.well-known/oauth-protected-resource/mcp");
  const made = await headrace.request("/v1/keys", { body: { name: "chat", scopes: ["chat:write"] } });
  const other = (await made.json()) as { key: string };
  expect((await ask(`Bearer ${other.key}`)).status).toBe(403);
});

test("reports an unknown MCP server address before a session begins", async () => {
  const answer = await fetch(`${headrace.url}/mcp/nothing`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
    },
    body: JSON.stringify({
      ...{ jsonrpc: "2.0", id: 1, method: "initialize" },
      params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "test", version: "1" } },
    }),
  });
  expect(answer.status).toBe(404);
  expect(await answer.text()).toContain("no such MCP server");
});
