// MCP servers as the gateway knows them, and calls of them by the key of a test server, without a server behind.
import type { Principal } from "../../src/domain/principal.ts";
import type { McpServer } from "../../src/domain/tools/mcp-server.ts";
import type { OpenToolUse, ToolUse } from "../../src/domain/tools/tool-use.ts";
import type { RunningServer } from "../../src/server/serve.ts";

export function mcpServerFor(changes: Partial<McpServer> = {}): McpServer {
  return {
    name: "github",
    title: null,
    description: null,
    place: { kind: "http", url: "https://mcp.example.com/mcp" },
    credentials: { kind: "none" },
    environments: null,
    accounts: null,
    tools: null,
    approval: "first",
    sharing: "all",
    timeoutMs: 60_000,
    maxResultBytes: 1_000_000,
    maxConcurrency: 16,
    nanoUsdPerCall: null,
    local: false,
    enabled: true,
    isDeclared: true,
    ...changes,
  };
}

export async function principalOf({ governance }: Pick<RunningServer, "governance">, key: string): Promise<Principal> {
  return await governance.authenticator.authenticate({
    ...{ authorization: `Bearer ${key}`, apiKey: null, clientAddress: "127.0.0.1", requestId: "req_test" },
    whyNotLocal: () => undefined,
  });
}

export function toolUseFor(principal: Principal, changes: Partial<ToolUse> = {}): ToolUse {
  return {
    requestId: `req_${Bun.randomUUIDv7()}`,
    principal,
    server: mcpServerFor(),
    method: "tools/call",
    name: "search",
    content: () => '{"query":"x"}',
    ...changes,
  };
}

export const completed: Parameters<OpenToolUse["ended"]>[0] = {
  outcome: "completed",
  code: null,
  isError: false,
  content: () => '{"content":[]}',
};
