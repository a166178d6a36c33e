// Types for connecting to MCP servers, without the SDK's client, which loads with the first server.

import type { McpServer } from "../../domain/tools/mcp-server.ts";
import type { ToolNodes } from "../../domain/tools/node-tools.ts";
import type { Output } from "../../processes/output.ts";

/** Directory within the data directory in which each process has its own directory. */
export const processRoom = "tool-processes";

/** Credentials of the requests to a server. */
export interface Credentials {
  /** Returns the headers. Rejects with a GatewayError if the caller has no credentials for the server. */
  headers(): Promise<Readonly<Record<string, string>>>;
  /** Handles a refused request. Returns true if a retry may use other credentials. */
  refused(headers: Readonly<Record<string, string>>): Promise<boolean>;
  /** Handles a demand for more scopes. Rejects with a GatewayError if the caller can grant the scopes. */
  insufficient(headers: Readonly<Record<string, string>>, scope: string): Promise<void>;
}

/** Shared dependencies of all connections. */
export interface ConnectingDeps {
  /** Version of the gateway, which is sent to servers. */
  readonly version: string;
  readonly dataDir: string;
  /** Nodes of the network, for servers that run there. */
  readonly nodes: ToolNodes;
  /** Environment of the gateway, from which processes get the variables that every program needs. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Milliseconds between asking a process to end and killing it. Tests use a shorter time. */
  readonly stopMs?: number | undefined;
  /** Timeout for a server to become ready. By default it is long enough for a program that has to load its modules. */
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
