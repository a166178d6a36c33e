// The view of one principal: usable servers, and the tools of each server that the principal may use.
import type { Principal } from "../../domain/principal.ts";
import { type McpServer, type McpServers, offersTool } from "../../domain/tools/mcp-server.ts";
import { allowsAllOf, allowsTool } from "../../domain/tools/tool-access.ts";
import { mayUseServer } from "../../domain/tools/usable-server.ts";

/** Returns the usable servers, sorted by name. */
export function usableServers(servers: Pick<McpServers, "all">, principal: Principal): McpServer[] {
  return servers
    .all()
    .filter((server) => mayUseServer(server, principal))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Reports whether the principal may use the tool or prompt `name`, which is the server's own name. */
export function mayUseTool(server: McpServer, name: string, { tools }: Principal): boolean {
  return offersTool(server, name) && allowsTool(tools, server.name, name);
}

/**
 * Reports whether the principal may use resources. A principal with access to only some tools gets none, because tool
 * lists do not cover resources.
 */
export function mayUseResources(server: McpServer, principal: Principal): boolean {
  return mayUseServer(server, principal) && allowsAllOf(principal.tools, server.name);
}
