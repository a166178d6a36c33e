// API paths of MCP servers, and the queries that a change of a server makes stale.

export const mcpServersPath = "/v1/admin/tool-servers";
export const testsPath = "/v1/admin/tool-server-tests";
/** The queries that a change of an MCP server makes stale, including those of the page Tools. */
export const staleWithMcpServers = [mcpServersPath, "/v1/admin/tools/connections", "/v1/tools", "/mcp"];

export function mcpServerPath(name: string): string {
  return `${mcpServersPath}/${encodeURIComponent(name)}`;
}

export function definitionsPath(name: string): string {
  return `${mcpServerPath(name)}/definitions`;
}
