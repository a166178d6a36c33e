// Tells what a principal may use: MCP servers, and the tools and resources of each.
import type { Principal } from "../../domain/principal.ts";
import { type McpServer, type McpServers, offersTool } from "../../domain/tools/mcp-server.ts";
import { allowsAllOf, allowsTool } from "../../domain/tools/tool-access.ts";
import { mayUseServer } from "../../domain/tools/usable-server.ts";

/** Returns the servers that the principal may use, sorted by name. */
export function usableServers(servers: Pick<McpServers, "all">, principal: Principal): McpServer[] {
  return servers
    .all()
    .filter((server) => mayUseServer(server, principal))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Reports whether the principal may use this tool or prompt. `name` is its name at the server. */
export function mayUseTool(server: McpServer, name: string, { tools }: Principal): boolean {
  return offersTool(server, name) && allowsTool(tools, server.name, name);
}

/** Reports whether the principal may use resources: not if only some tools are allowed, as tool lists name none. */
export function mayUseResources(server: McpServer, principal: Principal): boolean {
  return mayUseServer(server, principal) && allowsAllOf(principal.tools, server.name);
}
