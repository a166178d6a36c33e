// Calls of tools by the gateway's endpoint are on the ledger, at the price of their server.
import { expect, test } from "bun:test";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";
import { startHeadrace } from "../support/headrace.ts";

test("records an MCP client's tool call as a request of its key with bytes and outcome, and no list", async () => {
  const handler = createMcpHandler(() => {
    const server = new McpServer({ name: "weather", version: "1" });
    server.registerTool("forecast", { inputSchema: z.object({ city: z.string() }) }, ({ city }) => ({
      ...{ content: [{ type: "text", text: `Rain in ${city}` }], isError: city === "Nowhere" },
    }));
    return server;
  });
  const tools = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    fetch: (request) => handler.fetch(request),
  });
  const yaml = `tools:\n  servers:\n    - { name: weather, url: "http://127.0.0.1:${tools.port}/mcp" }\n`;
  await using headrace = await startHeadrace({ yaml });
  const made = await (await headrace.request("/v1/keys", { body: { name: "tools", scopes: ["tools:use"] } })).json();
  const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode: "auto" } });
  const headers = { authorization: `Bearer ${made.key}` };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${headrace.url}/mcp`), { requestInit: { headers } }));
  await client.listTools();
  for (const city of ["Ulm", "Nowhere"]) await client.callTool({ name: "weather_forecast", arguments: { city } });
  await client.close();
  const { data } = await (await headrace.request(`/v1/requests?key=${made.id}`)).json();
  expect(data).toHaveLength(2);
  for (const one of data) {
    expect(one).toMatchObject({
      operation: "tool",
      model: "weather/forecast",
      outcome: "completed",
      upstream: "weather",
    });
  }
  const details = await Promise.all(
    data.map(
      async ({ id }: { id: string }) => (await (await headrace.request(`/v1/requests/${id}`)).json()).usage_details,
    ),
  );
  expect(details.filter((one) => one.tool_errors === 1)).toHaveLength(1);
  for (const one of details) expect(one.bytes_out).toBeGreaterThan(10);
  await tools.stop(true);
});
