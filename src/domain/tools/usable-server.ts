// The check whether a caller may use an MCP server, made wherever a server is listed, asked or connected.
import type { Principal } from "../principal.ts";
import { reachesServer } from "./tool-reach.ts";
import type { ToolServer } from "./tool-server.ts";

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
