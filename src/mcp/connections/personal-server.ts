// MCP servers at which each user has an account, and whether a user's connection still belongs to the server.
import { trimSlashes } from "../../base/text/http-url.ts";
import type { McpServer, ToolCredentials } from "../../domain/tools/mcp-server.ts";
import type { StoredToolConnection } from "../../domain/tools/tool-connection.ts";

/** The addresses that an operator configured. They may be private. */
export interface Target {
  readonly url: string;
  /** URL of the authorization server; null if the operator configured none. */
  readonly issuer: string | null;
}

/** An MCP server at which each user has an account. */
export interface PersonalServer extends Target {
  readonly name: string;
  readonly credentials: Omit<Extract<ToolCredentials, { kind: "person" }>, "kind" | "issuer">;
}

/** Returns the server if users have accounts there, otherwise undefined. */
export function personalServer(server: McpServer | undefined): PersonalServer | undefined {
  if (!server?.enabled || server.credentials.kind !== "person" || server.place.kind !== "http") return undefined;
  const { issuer, ...credentials } = server.credentials;
  return { name: server.name, url: server.place.url, issuer, credentials };
}

/** Reports whether `other` may be the authorization server: the configured one, or any if none is configured. */
export function mayAuthorize({ issuer }: Target, other: string): boolean {
  return issuer === null || trimSlashes(issuer) === trimSlashes(other);
}

/**
 * Reports whether a connection still belongs to the server. If the address or authorization server has changed, tokens
 * must not be sent.
 */
export function isConnectedTo(server: Target, { url, issuer }: Pick<StoredToolConnection, "url" | "issuer">): boolean {
  return server.url === url && mayAuthorize(server, issuer);
}
