// Clients of revision 2025-03-26, which say on no request which one they speak.
import { expect, test } from "bun:test";
import { makeEverythingServer } from "../../support/mcp/everything-server.ts";
import { startMcpServer } from "../../support/mcp/mcp-server.ts";
import { startToolWorld } from "../../support/mcp/tool-world.ts";

test.each(["legacy", "modern"] as const)("lets a client of 2025-03-26 call tools of a %s-era server", async (eras) => {
  await using everything = startMcpServer(makeEverythingServer, { eras });
  await using world = await startToolWorld([{ name: "everything", url: everything.url }]);
  const key = await world.key();
  const post = (body: unknown, session?: string) =>
    fetch(world.at(), {
      method: "POST",
      headers: {
        ...{ authorization: `Bearer ${key}`, "content-type": "application/json" },
        accept: "application/json, text/event-stream",
        ...(session !== undefined && { "mcp-session-id": session }),
      },
      body: JSON.stringify(body),
    });
  const clientInfo = { name: "early", version: "1" };
  const params = { protocolVersion: "2025-03-26", capabilities: {}, clientInfo };
  const begun = await post({ jsonrpc: "2.0", id: 1, method: "initialize", params });
  expect(await begun.text()).toContain('"protocolVersion":"2025-03-26"');
  const session = begun.headers.get("mcp-session-id") ?? "";
  expect((await post({ jsonrpc: "2.0", method: "notifications/initialized" }, session)).status).toBe(202);
  const call = (id: number) => {
    const asked = { name: "everything_test_simple_text", arguments: {} };
    return { jsonrpc: "2.0", id, method: "tools/call", params: asked };
  };
  expect(await (await post(call(2), session)).text()).toContain("This is a simple text response for testing.");
  // No later revision has them, and hardly any client ever sent one.
  expect((await post([call(3), call(4)], session)).status).toBe(400);
  expect((await post(call(5))).status).toBe(400);
});
