// Types for connecting to MCP servers. They are separate from the SDK's client, which is loaded only when needed.

import type { McpServer } from "../../domain/tools/mcp-server.ts";
import type { ToolNodes } from "../../domain/tools/node-tools.ts";
import type { Output } from "../../processes/output.ts";

/** Directory in the data directory that has a subdirectory for each server process. */
export const processRoom = "tool-processes";

/** Credentials of the requests to a server. */
export interface Credentials {
  /** Returns the headers. Rejects with a GatewayError if the caller has no credentials for the server. */
  headers(): Promise<Readonly<Record<string, string>>>;
  /** Called if the server refused these headers. Resolves to true if a retry may succeed with other credentials. */
  refused(headers: Readonly<Record<string, string>>): Promise<boolean>;
  /** Called if the server requires more scopes. Rejects with a GatewayError if the user can grant them. */
  insufficient(headers: Readonly<Record<string, string>>, scope: string): Promise<void>;
}

/** Shared dependencies of all connections. */
export interface ConnectingDeps {
  /** Version of the gateway, which is sent to servers. */
  readonly version: string;
  readonly dataDir: string;
  /** Used to reach servers that run at nodes. */
  readonly nodes: ToolNodes;
  /** Environment variables of the gateway. Processes get only those that every program needs. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Milliseconds after which a process that was asked to end is killed. Default: a few seconds. */
  readonly stopMs?: number | undefined;
  /**
   * Timeout in milliseconds for a server to become ready. Default: long enough for a program that loads its modules.
   */
  readonly connectMs?: number | undefined;
}

export interface Connecting {
  readonly server: McpServer;
  readonly credentials: Credentials;
  readonly isLegacy: boolean;
  /** Aborted when no caller needs the connection any more. */
  readonly signal: AbortSignal;
  readonly output: Output;
  readonly onNotification: (method: string, params: Readonly<Record<string, unknown>>) => void;
  /** Counts the processes of the server: 1 after a start, -1 after an end. */
  readonly onProcess: (change: 1 | -1) => void;
}
