// The stored MCP servers, which operators add at run time.
import type { AuditEvent } from "../audit.ts";
import type { McpServer, ToolCredentials } from "./mcp-server.ts";
import type { StoredToolConnection } from "./tool-connection.ts";

/** The place where an MCP server is declared. `file`: in headrace.yaml. `database`: an operator added it. */
export const mcpServerSources = ["file", "database"] as const;
export type McpServerSource = (typeof mcpServerSources)[number];

/** Default limits of an MCP server. */
export const mcpServerDefaults = {
  timeoutMs: 60_000,
  maxResultBytes: 4_194_304,
  maxConcurrency: 32,
} as const;

export interface StoredMcpServer extends Omit<McpServer, "credentials" | "isDeclared"> {
  readonly credentialKind: ToolCredentials["kind"];
  /**
   * The server's credentials as JSON, sealed under a key derived from the installation's secret. Null if there are
   * none.
   */
  readonly sealedCredentials: string | null;
  /** Unix seconds. */
  readonly createdAt: number;
}

/** The things that end if a server's location or credentials change. */
export interface McpServerEnds {
  /** True if the accounts that people have connected to the server end. */
  readonly connections: boolean;
}

export interface McpServerStore {
  /** Returns the servers in the order of their names. */
  listMcpServers(): Promise<StoredMcpServer[]>;
  /** Adds a server. If the name exists, changes nothing and returns false. */
  insertMcpServer(server: StoredMcpServer, event: AuditEvent): Promise<boolean>;
  /**
   * Changes the stored server with the same name and creation time. Returns people's connections that ended because of
   * this; if there are very many, only the latest. If the stored server differs from `before`, changes nothing and
   * returns undefined.
   */
  changeMcpServer(
    before: StoredMcpServer,
    server: StoredMcpServer,
    ends: McpServerEnds,
    event: AuditEvent,
  ): Promise<readonly StoredToolConnection[] | undefined>;
  /**
   * Deletes a server. If `keepsName`, another server has the name, so the tool definitions and people's connections
   * stay. Returns the connections that ended, or undefined if the server does not exist.
   */
  deleteMcpServer(
    name: string,
    other: { keepsName: boolean },
    event: AuditEvent,
  ): Promise<readonly StoredToolConnection[] | undefined>;
}
