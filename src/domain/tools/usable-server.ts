// Checks whether a caller may use an MCP server. Used wherever a server is listed, contacted or connected.
import type { Principal } from "../principal.ts";
import type { McpServer } from "./mcp-server.ts";
import { allowsServer } from "./tool-access.ts";

export function mayUseServer(
  server: McpServer,
  { account, environment, tools, modelAccess }: Pick<Principal, "account" | "environment" | "tools" | "modelAccess">,
): boolean {
  if (!server.enabled) return false;
  if (modelAccess?.neverLeaves && !server.local) return false;
  if (server.environments && !server.environments.includes(environment)) return false;
  if (server.accounts && !server.accounts.includes(account.id)) return false;
  return allowsServer(tools, server.name);
}
