// The API paths of MCP servers, and the queries that a change of one makes stale.

export const mcpServersPath = "/v1/admin/tool-servers";
export const testsPath = "/v1/admin/tool-server-tests";
/** What is offered to whoever looks at the page Tools, too. */
export const staleWithMcpServers = [mcpServersPath, "/v1/admin/tools/connections", "/v1/tools", "/mcp"];

export function mcpServerPath(name: string): string {
  return `${mcpServersPath}/${encodeURIComponent(name)}`;
}

export function definitionsPath(name: string): string {
  return `${mcpServerPath(name)}/definitions`;
}
