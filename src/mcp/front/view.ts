// What one principal sees: the servers that it may use, and which of their tools.
import type { Principal } from "../../domain/principal.ts";
import { reachesAllOf, reachesServer, reachesTool } from "../../domain/tools/tool-reach.ts";
import { offersTool, type ToolServer, type ToolServers } from "../../domain/tools/tool-server.ts";

/** In the order of their names. */
export function usableServers(servers: Pick<ToolServers, "all">, principal: Principal): ToolServer[] {
  return servers
    .all()
    .filter((server) => mayUseServer(server, principal))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

export function mayUseServer(
  server: ToolServer,
  { account, environment, tools, reach }: Pick<Principal, "account" | "environment" | "tools" | "reach">,
): boolean {
  if (!server.enabled) return false;
  if (reach?.neverLeaves && !server.local) return false;
  if (server.environments && !server.environments.includes(environment)) return false;
  if (server.accounts && !server.accounts.includes(account.id)) return false;
  return reachesServer(tools, server.name);
}

/** `name`: the server's own, of a tool or prompt. */
export function mayUseTool(server: ToolServer, name: string, { tools }: Principal): boolean {
  return offersTool(server, name) && reachesTool(tools, server.name, name);
}

/** Lists of tools say nothing of resources: who may use some of the tools alone gets none of these. */
export function mayUseResources(server: ToolServer, principal: Principal): boolean {
  return mayUseServer(server, principal) && reachesAllOf(principal.tools, server.name);
}
