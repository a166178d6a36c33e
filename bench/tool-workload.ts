// The tools of the benchmark's server, a call of one, and what it gives.

/** Numbers of tools at a server: `/{source}/{number}/mcp` is the address of one with so many. */
export const toolCounts = [20, 2_000] as const;

const revision = "2026-07-28";
const sentence = "The gateway passes what need not change, and counts what it passed. ";

/** The last one: whoever looks for it from the front has all others to look at. */
export function calledTool(count: number): string {
  return `tool_${count - 1}`;
}

/** About as long as those of real servers are. */
export function toolList(count: number): Record<string, unknown>[] {
  return Array.from({ length: count }, (_, index) => ({
    name: `tool_${index}`,
    title: `Tool ${index}`,
    description: sentence.repeat(4),
    inputSchema: {
      type: "object",
      properties: {
        query: { type: "string", description: sentence },
        limit: { type: "integer", minimum: 1, maximum: 100, default: 10 },
      },
      required: ["query"],
    },
  }));
}

/** About 1 KB, as the answers of models have here. */
export const toolResult = { content: [{ type: "text", text: sentence.repeat(14) }], isError: false };

/** A call of about 1 KB, in the revision that has no sessions: any connection may carry it. */
export function toolRequest(name: string): string {
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": revision,
    "io.modelcontextprotocol/clientInfo": { name: "headrace-bench", version: "1" },
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const params = { name, arguments: { query: sentence.repeat(9), limit: 10 }, _meta };
  return JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params });
}

export function toolHeaders(name: string): Readonly<Record<string, string>> {
  return { "mcp-protocol-version": revision, "mcp-method": "tools/call", "mcp-name": name };
}
