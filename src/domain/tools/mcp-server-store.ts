// MCP servers that operators add at run time, as they are stored.
import type { AuditEvent } from "../audit.ts";
import type { McpServer, ToolCredentials } from "./mcp-server.ts";
import type { StoredToolConnection } from "./tool-connection.ts";

/** `file`: headrace.yaml; `database`: an operator added it. */
export const mcpServerSources = ["file", "database"] as const;
export type McpServerSource = (typeof mcpServerSources)[number];

/** Bounds of a server that does not say. */
export const mcpServerDefaults = {
  timeoutMs: 60_000,
  maxResultBytes: 4_194_304,
  maxConcurrency: 32,
} as const;

export interface StoredMcpServer extends Omit<McpServer, "credentials" | "isDeclared"> {
  readonly credentialKind: ToolCredentials["kind"];
  /** Its credentials as JSON, sealed under a key derived from the installation's secret; null: it has none, or none any more. */
  readonly sealedCredentials: string | null;
  /** Unix seconds. */
  readonly createdAt: number;
}

/** What depends on where a server is, and as whom it is asked. */
export interface McpServerEnds {
  /** Whether the accounts that people connected there end. */
  readonly connections: boolean;
}

export interface McpServerStore {
  /** In the order of their names. */
  listMcpServers(): Promise<StoredMcpServer[]>;
  /** False, with nothing written, where there is one of this name. */
  insertMcpServer(server: StoredMcpServer, event: AuditEvent): Promise<boolean>;
  /**
   * The same name and age. Gives connections that ended with it, the latest of very many; undefined, with nothing written, where
   * it is not as it was `before` any more.
   */
  changeMcpServer(
    before: StoredMcpServer,
    server: StoredMcpServer,
    ends: McpServerEnds,
    event: AuditEvent,
  ): Promise<readonly StoredToolConnection[] | undefined>;
  /**
   * `keepsName`: another one has the name, whose definitions and connected accounts stay; else they go with it. Gives what
   * `changeMcpServer` does.
   */
  deleteMcpServer(
    name: string,
    other: { keepsName: boolean },
    event: AuditEvent,
  ): Promise<readonly StoredToolConnection[] | undefined>;
}
