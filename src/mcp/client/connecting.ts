// The steps to connect to an MCP server, without the protocol's client, which is loaded once there is a server.

import type { McpServer } from "../../domain/tools/mcp-server.ts";
import type { ToolNodes } from "../../domain/tools/node-tools.ts";
import type { Output } from "../../processes/output.ts";

/** Directory within the data directory in which each process has one of its own. */
export const processRoom = "tool-processes";

/** What requests to a server carry. */
export interface Credentials {
  /** Rejects with a GatewayError where the caller has none there. */
  headers(): Promise<Readonly<Record<string, string>>>;
  /** The server refused these. Whether there may be others by now. */
  refused(headers: Readonly<Record<string, string>>): Promise<boolean>;
  /** The server wants these scopes as well. Rejects with a GatewayError where whoever asks can have them. */
  insufficient(headers: Readonly<Record<string, string>>, scope: string): Promise<void>;
}

/** Whatever a connection needs that all of them share. */
export interface ConnectingDeps {
  /** Version of the gateway, which servers are told. */
  readonly version: string;
  readonly dataDir: string;
  /** Those of the network, for servers that are there. */
  readonly nodes: ToolNodes;
  /** The gateway's own: what of it every program needs goes along to processes. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Between asking a process to end and ending it; a test has less patience. */
  readonly stopMs?: number | undefined;
  /** Wait for a server to be ready; likewise. Left out: as long as a program may take that loads its parts first. */
  readonly connectMs?: number | undefined;
}

export interface Connecting {
  readonly server: McpServer;
  readonly credentials: Credentials;
  readonly isLegacy: boolean;
  /** Nobody wants it any more. */
  readonly signal: AbortSignal;
  readonly output: Output;
  readonly onNews: (method: string, params: Readonly<Record<string, unknown>>) => void;
  /** A process of it is there, and later no more. */
  readonly onProcess: (change: 1 | -1) => void;
}
