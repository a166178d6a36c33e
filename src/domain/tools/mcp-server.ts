// MCP servers that clients use through the gateway: where they are, and their credentials.
import type { Environment } from "../api-key.ts";

/** The form of a server's name. It is a prefix of tool names, so it is short and has no underscore. */
export const mcpServerName = /^[a-z0-9](?:[a-z0-9-]{0,22}[a-z0-9])?$/;

/**
 * The location of the server. `http`: at a URL (streamable HTTP). `command`: a process on this machine that uses stdio,
 * only from the configuration file. `node`: in the configuration of a node.
 */
export type ServerLocation =
  | { readonly kind: "http"; readonly url: string }
  | {
      readonly kind: "command";
      readonly command: readonly [string, ...string[]];
      /** Environment variables for the process, in addition to `PATH`, `HOME` and similar ones. */
      readonly env: Readonly<Record<string, string>>;
      /** The working directory. Null means a directory that is made for the process. */
      readonly directory: string | null;
    }
  /** `nodeId` is the node's id or name. `server` is the name of the MCP server in the node's configuration. */
  | { readonly kind: "node"; readonly nodeId: string; readonly server: string };

/**
 * Describes how the gateway authenticates at the server. `headers`: the same headers for all callers, stored sealed.
 * `person`: each person connects their own account by OAuth. A client's own token is never sent to the server.
 */
export type ToolCredentials =
  | { readonly kind: "none" }
  | { readonly kind: "headers"; readonly headers: Readonly<Record<string, string>> }
  | {
      readonly kind: "person";
      /**
       * URL of the authorization server, which may be inside the operator's network. If null, the MCP server names it.
       */
      readonly issuer: string | null;
      /**
       * The gateway's OAuth client id. If null, the gateway uses its client ID metadata document or registers itself,
       * as the authorization server supports.
       */
      readonly clientId: string | null;
      readonly clientSecret: string | null;
      /** The OAuth scopes to request. If null, those that the MCP server asks for. */
      readonly scopes: readonly string[] | null;
    };

/**
 * Tells which tool definitions are offered. `first`: the first version is offered, and changes wait for an operator.
 * `each`: nothing is offered before an operator approves it. `all`: everything is offered.
 */
export const toolApprovals = ["first", "each", "all"] as const;
export type ToolApproval = (typeof toolApprovals)[number];

/** Tells who shares a connection or process: `person` means one for each person, `all` one for all callers. */
export const toolSharings = ["person", "all"] as const;
export type ToolSharing = (typeof toolSharings)[number];

/** The MCP revisions that the gateway can use with servers, newest first. */
export const toolProtocolVersions = ["2026-07-28", "2025-11-25", "2025-06-18"] as const;
export type ToolProtocolVersion = (typeof toolProtocolVersions)[number];

export interface McpServer {
  /** The server's unique name, which matches `mcpServerName`. */
  readonly name: string;
  readonly title: string | null;
  readonly description: string | null;
  readonly place: ServerLocation;
  readonly credentials: ToolCredentials;
  /** True if keys with `never_leaves` may use the server, because it passes nothing on to other machines. */
  readonly local: boolean;
  /** Environments whose keys may use the server. Null means all. */
  readonly environments: readonly Environment[] | null;
  /** Ids of accounts that may use the server. Null means all. */
  readonly accounts: readonly string[] | null;
  /** Names of tools to offer, or prefixes ending in `*`. Null means all tools. */
  readonly tools: readonly string[] | null;
  readonly approval: ToolApproval;
  readonly sharing: ToolSharing;
  /** Timeout of one call in milliseconds. */
  readonly timeoutMs: number;
  /** Maximum bytes of one result. */
  readonly maxResultBytes: number;
  /** Maximum number of concurrent calls. */
  readonly maxConcurrency: number;
  /** Price of each call in nano-USD. Null means that calls are free. */
  readonly nanoUsdPerCall: number | null;
  /** The only MCP revision to use. If null or missing, the newest that both sides support. */
  readonly protocolVersion?: ToolProtocolVersion | null;
  readonly enabled: boolean;
  /** True if this machine is a node and shares the server with its gateway. Default: false. */
  readonly isShared?: boolean;
  /** True for a server of the configuration file, which the API cannot change. */
  readonly isDeclared: boolean;
}

/** Reports whether a tool of this name may be offered. `name` is the tool's name at the server. */
export function offersTool({ tools }: Pick<McpServer, "tools">, name: string): boolean {
  return tools === null || tools.some((one) => (one.endsWith("*") ? name.startsWith(one.slice(0, -1)) : one === name));
}

/** Returns the maximum milliseconds of a call, however often progress and server requests extend its timeout. */
export function maxCallMs({ timeoutMs }: Pick<McpServer, "timeoutMs">): number {
  return Math.max(10 * timeoutMs, 600_000);
}

/** The current MCP servers, of the configuration file and the database together. */
export interface McpServers {
  all(): readonly McpServer[];
  find(name: string): McpServer | undefined;
  /** Calls `listener` after each change. Returns a function that unsubscribes. */
  onChange(listener: () => void): () => void;
}
