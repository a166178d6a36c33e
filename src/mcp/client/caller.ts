// Decides which callers share a session with an MCP server, and which credentials their requests carry.
import { forbidden, type GatewayError } from "../../base/errors.ts";
import { type Principal, partyOf } from "../../domain/principal.ts";
import { AccountMissing } from "../../domain/tools/client-session.ts";
import type { McpServer } from "../../domain/tools/mcp-server.ts";
import type { ToolNodes } from "../../domain/tools/node-tools.ts";
import type { ToolConnections, ToolPerson } from "../../domain/tools/tool-connection.ts";
import type { Credentials } from "./connecting.ts";

export interface CallerDeps {
  readonly connections: ToolConnections;
  /** Returns the URL at which a user connects an account at this MCP server. */
  connectAt(server: string): string;
}

/**
 * Returns the key under which callers share a session. Each user or key has its own session, unless the server is
 * shared. After a user connects another account, the key changes, because a server may bind a session to an account.
 */
export async function sharingKey(
  { name, sharing, credentials }: McpServer,
  principal: Principal,
  connections: Pick<ToolConnections, "connectionId">,
): Promise<string> {
  const isPersonal = credentials.kind === "person";
  if (sharing === "all" && !isPersonal) return "";
  const of = isPersonal ? accountOf(principal) : undefined;
  const connection = of && (await connections.connectionId(name, of));
  const who = isPersonal ? [of?.personId, connection] : [partyOf(principal)];
  return JSON.stringify([principal.account.id, principal.environment, ...who]);
}

export function credentialsOf(
  { name, credentials }: McpServer,
  principal: Principal,
  { connections, connectAt }: CallerDeps,
): Credentials {
  if (credentials.kind !== "person") {
    const fields = credentials.kind === "headers" ? credentials.headers : {};
    const headers = Object.fromEntries(Object.entries(fields).map(([field, value]) => [field.toLowerCase(), value]));
    return { headers: async () => headers, refused: async () => false, insufficient: async () => {} };
  }
  const of = accountOf(principal);
  return {
    headers: async () => {
      if (!of) throw noPerson(name);
      const token = await connections.accessToken(name, of);
      if (token === undefined) throw new AccountMissing(name, connectAt(name));
      return { authorization: `Bearer ${token}` };
    },
    refused: async ({ authorization = "" }) => {
      if (of) await connections.refused(name, of, authorization.slice("Bearer ".length));
      return of !== undefined;
    },
    insufficient: async ({ authorization = "" }, scope) => {
      if (!of) return;
      await connections.insufficient(name, of, authorization.slice("Bearer ".length), scope);
      throw new AccountMissing(
        name,
        connectAt(name),
        "it wants more rights than it was given, so connect your account there anew",
      );
    },
  };
}

/**
 * Throws if the principal may use only local servers and this server's node is not local. The node is found by its id,
 * because another node may take over its name.
 */
export function requireLocal(
  { name, place }: McpServer,
  { modelAccess }: Principal,
  nodes: Pick<ToolNodes, "find">,
): void {
  if (place.kind !== "node" || !modelAccess?.neverLeaves) return;
  const node = nodes.find(place.nodeId);
  if (!node || node.isLocal) return;
  throw forbidden(
    `The MCP server "${name}" is at the node ${node.name}, which is not marked as local, and what this key asks never leaves. An operator marks it by headrace nodes mark-local ${node.name}.`,
  );
}

/** Returns the user whose account at the server is used; undefined if the key belongs to no user. */
function accountOf(principal: Principal): ToolPerson | undefined {
  const { personId } = principal.keys[0];
  return personId === null ? undefined : { accountId: principal.account.id, personId };
}

function noPerson(server: string): GatewayError {
  const message = `The MCP server "${server}" is asked as each person: a key of the account has no person. Use a key of your own, or sign in.`;
  return forbidden(message);
}
