// Servers of tools at which people have accounts of their own, and which of them a principal may connect.
import type { Principal } from "../../domain/principal.ts";
import { reachesServer } from "../../domain/tools/tool-reach.ts";
import type { ToolServer } from "../../domain/tools/tool-server.ts";
import type { PersonalServer } from "./authorization.ts";

/** Undefined for one at which nobody has an account of their own. */
export function personalServer(server: ToolServer | undefined): PersonalServer | undefined {
  if (!server?.enabled || server.credentials.kind !== "person" || server.place.kind !== "http") return undefined;
  return { name: server.name, url: server.place.url, credentials: server.credentials };
}

/** Whether the principal may use it at all. */
export function isServerOf(principal: Principal, { name, accounts, environments }: ToolServer): boolean {
  const { account, environment, tools } = principal;
  const isHere = (accounts?.includes(account.id) ?? true) && (environments?.includes(environment) ?? true);
  return isHere && reachesServer(tools, name);
}
