// The API paths of MCP servers, and the queries that a change of one makes stale.

export const toolServersPath = "/v1/admin/tool-servers";
export const testsPath = "/v1/admin/tool-server-tests";
/** What is offered to whoever looks at the page Tools, too. */
export const staleWithToolServers = [toolServersPath, "/v1/admin/tools/connections", "/v1/tools", "/mcp"];

export function toolServerPath(name: string): string {
  return `${toolServersPath}/${encodeURIComponent(name)}`;
}

export function definitionsPath(name: string): string {
  return `${toolServerPath(name)}/definitions`;
}
