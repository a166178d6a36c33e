// MCP servers at which people have accounts of their own, and which of them a principal may connect.
import { trimSlashes } from "../../base/text/http-url.ts";
import type { McpServer, ToolCredentials } from "../../domain/tools/mcp-server.ts";
import type { StoredToolConnection } from "../../domain/tools/tool-connection.ts";

/** What an operator named, and so is asked wherever it is. */
export interface Place {
  readonly url: string;
  /** The authorization server; null: it was not named. */
  readonly issuer: string | null;
}

/** A server as it is asked here. */
export interface PersonalServer extends Place {
  readonly name: string;
  readonly credentials: Omit<Extract<ToolCredentials, { kind: "person" }>, "kind" | "issuer">;
}

/** Undefined for one at which nobody has an account of their own. */
export function personalServer(server: McpServer | undefined): PersonalServer | undefined {
  if (!server?.enabled || server.credentials.kind !== "person" || server.place.kind !== "http") return undefined;
  const { issuer, ...credentials } = server.credentials;
  return { name: server.name, url: server.place.url, issuer, credentials };
}

/** Whether it may be the authorization server. */
export function mayAuthorize({ issuer }: Place, other: string): boolean {
  return issuer === null || trimSlashes(issuer) === trimSlashes(other);
}

/** A server that is somewhere else by now is another one, and so is one of another authorization server: its tokens are others. */
export function isConnectedTo(server: Place, { url, issuer }: Pick<StoredToolConnection, "url" | "issuer">): boolean {
  return server.url === url && mayAuthorize(server, issuer);
}
