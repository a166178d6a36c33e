// MCP servers at which users have their own accounts, and the check whether a connection still fits its server.
import { trimSlashes } from "../../base/text/http-url.ts";
import type { McpServer, ToolCredentials } from "../../domain/tools/mcp-server.ts";
import type { StoredToolConnection } from "../../domain/tools/tool-connection.ts";

/** Addresses that an operator configured, which may be private. */
export interface Target {
  readonly url: string;
  /** The authorization server; null if the operator configured none. */
  readonly issuer: string | null;
}

/** A server in the form that the flow needs. */
export interface PersonalServer extends Target {
  readonly name: string;
  readonly credentials: Omit<Extract<ToolCredentials, { kind: "person" }>, "kind" | "issuer">;
}

/** Returns undefined for a server without user accounts. */
export function personalServer(server: McpServer | undefined): PersonalServer | undefined {
  if (!server?.enabled || server.credentials.kind !== "person" || server.place.kind !== "http") return undefined;
  const { issuer, ...credentials } = server.credentials;
  return { name: server.name, url: server.place.url, issuer, credentials };
}

/** Reports whether the operator permits this authorization server. */
export function mayAuthorize({ issuer }: Target, other: string): boolean {
  return issuer === null || trimSlashes(issuer) === trimSlashes(other);
}

/**
 * Reports whether a connection still fits the server. Tokens do not fit after a change of the server's address or
 * authorization server.
 */
export function isConnectedTo(server: Target, { url, issuer }: Pick<StoredToolConnection, "url" | "issuer">): boolean {
  return server.url === url && mayAuthorize(server, issuer);
}
