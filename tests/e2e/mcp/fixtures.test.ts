// What the gateway of tools is proven with, by itself: a scenario that fails behind the gateway must not fail without it.

import { describe, expect, test } from "bun:test";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { runConformance } from "../../support/mcp/conformance.ts";
import { makeEverythingServer } from "../../support/mcp/everything-server.ts";
import { startMcpServer } from "../../support/mcp/mcp-server.ts";
import { stdioServer } from "../../support/mcp/stdio-server.ts";

describe("the everything server passes the official suite", () => {
  test.each([
    { args: ["--requirements", "2025-11-25"] },
    { args: ["--requirements", "2026-07-28"] },
    { args: ["--spec-version", "2025-06-18", "--suite", "active"] },
  ])("$args", async ({ args }) => {
    await using server = startMcpServer(makeEverythingServer);
    const { failed, checks, exitCode } = await runConformance(["server", "--url", server.url, ...args]);
    // Tasks are an extension since 2026-07-28, which the SDK's servers do not have.
    expect(failed.filter((failure) => !failure.startsWith("tasks-"))).toEqual([]);
    expect(exitCode).toBe(0);
    expect(checks.length).toBeGreaterThan(50);
  });
});

test.each(["legacy", "auto"] as const)("offers the same as a process in the revision given as %p", async (mode) => {
  const [command, ...args] = stdioServer;
  const client = new Client({ name: "test", version: "1.0.0" }, { versionNegotiation: { mode } });
  await client.connect(new StdioClientTransport({ command, args: [...args], env: { NAME: "value" } }));
  expect(client.getProtocolEra()).toBe(mode === "auto" ? "modern" : "legacy");
  const answer = await client.callTool({ name: "environment", arguments: {} });
  expect(JSON.stringify(answer.content)).toContain("value");
  await client.close();
});
