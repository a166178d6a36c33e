// What one principal sees: the servers that it may use, and which of their tools.
import type { Principal } from "../../domain/principal.ts";
import { type McpServer, type McpServers, offersTool } from "../../domain/tools/mcp-server.ts";
import { reachesAllOf, reachesTool } from "../../domain/tools/tool-access.ts";
import { mayUseServer } from "../../domain/tools/usable-server.ts";

/** In the order of their names. */
export function usableServers(servers: Pick<McpServers, "all">, principal: Principal): McpServer[] {
  return servers
    .all()
    .filter((server) => mayUseServer(server, principal))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** `name`: the server's own, of a tool or prompt. */
export function mayUseTool(server: McpServer, name: string, { tools }: Principal): boolean {
  return offersTool(server, name) && reachesTool(tools, server.name, name);
}

/** Lists of tools say nothing of resources: who may use some of the tools alone gets none of these. */
export function mayUseResources(server: McpServer, principal: Principal): boolean {
  return mayUseServer(server, principal) && reachesAllOf(principal.tools, server.name);
}
