// MCP servers that operators add at run time, as stored.
import type { AuditEvent } from "../audit.ts";
import type { McpServer, ToolCredentials } from "./mcp-server.ts";
import type { StoredToolConnection } from "./tool-connection.ts";

/** `file`: headrace.yaml; `database`: added by an operator. */
export const mcpServerSources = ["file", "database"] as const;
export type McpServerSource = (typeof mcpServerSources)[number];

/** Default limits of a server. */
export const mcpServerDefaults = {
  timeoutMs: 60_000,
  maxResultBytes: 4_194_304,
  maxConcurrency: 32,
} as const;

export interface StoredMcpServer extends Omit<McpServer, "credentials" | "isDeclared"> {
  readonly credentialKind: ToolCredentials["kind"];
  /** Credentials as JSON, sealed under a key derived from the installation's secret; null: none. */
  readonly sealedCredentials: string | null;
  /** Unix seconds. */
  readonly createdAt: number;
}

/** The consequences of a change of a server's location or credentials. */
export interface McpServerEnds {
  /** True if people's connected accounts end. */
  readonly connections: boolean;
}

export interface McpServerStore {
  /** Returns servers ordered by name. */
  listMcpServers(): Promise<StoredMcpServer[]>;
  /** Returns false without a change if the name exists. */
  insertMcpServer(server: StoredMcpServer, event: AuditEvent): Promise<boolean>;
  /**
   * Changes the stored server of the same name and creation time. Returns the people's connections that the change
   * ended, of very many only the latest. Returns undefined without a change if the stored server differs from `before`.
   */
  changeMcpServer(
    before: StoredMcpServer,
    server: StoredMcpServer,
    ends: McpServerEnds,
    event: AuditEvent,
  ): Promise<readonly StoredToolConnection[] | undefined>;
  /**
   * Deletes a server. `keepsName`: another server has the name, so its definitions and connected accounts stay. Returns
   * as `changeMcpServer` does.
   */
  deleteMcpServer(
    name: string,
    other: { keepsName: boolean },
    event: AuditEvent,
  ): Promise<readonly StoredToolConnection[] | undefined>;
}
