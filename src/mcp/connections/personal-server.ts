// Servers of tools at which people have accounts of their own, and which of them a principal may connect.
import { keyOf, type Principal } from "../../domain/principal.ts";
import type { ToolPerson } from "../../domain/tools/tool-connection.ts";
import type { ToolServer } from "../../domain/tools/tool-server.ts";
import type { PersonalServer } from "./authorization.ts";

/** Undefined for one at which nobody has an account of their own. */
export function personalServer(server: ToolServer | undefined): PersonalServer | undefined {
  if (!server?.enabled || server.credentials.kind !== "person" || server.place.kind !== "http") return undefined;
  return { name: server.name, url: server.place.url, credentials: server.credentials };
}

/** Whether it is one of the servers of the principal's account and environment. */
export function isServerOf({ account, environment }: Principal, { accounts, environments }: ToolServer): boolean {
  return (accounts?.includes(account.id) ?? true) && (environments?.includes(environment) ?? true);
}

/**
 * The person for whom a principal acts: who is signed in, whose own key it is, or who allowed the app. Undefined for a key of an
 * account, which is nobody's.
 */
export function personOf(principal: Principal): ToolPerson | undefined {
  const personId = principal.person?.id ?? keyOf(principal).personId;
  return personId === null ? undefined : { accountId: principal.account.id, personId };
}
