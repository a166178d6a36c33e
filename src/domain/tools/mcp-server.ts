// MCP servers behind the gateway: their locations and credentials.
import type { Environment } from "../api-key.ts";

/** Prefix of the tool names that clients see, so it is short and has no underscore. */
export const mcpServerName = /^[a-z0-9](?:[a-z0-9-]{0,22}[a-z0-9])?$/;

/**
 * The location. `http`: streamable HTTP. `command`: a process of this machine that uses stdio, only from the
 * configuration file. `node`: a server in the configuration of a node.
 */
export type ServerLocation =
  | { readonly kind: "http"; readonly url: string }
  | {
      readonly kind: "command";
      readonly command: readonly [string, ...string[]];
      /** The environment variables of the process besides `PATH`, `HOME` and the like. */
      readonly env: Readonly<Record<string, string>>;
      /** The working directory; null: a directory made for the process. */
      readonly directory: string | null;
    }
  /** `nodeId`: the node's id, or its name. */
  | { readonly kind: "node"; readonly nodeId: string; readonly server: string };

/**
 * The credentials. `headers`: the same for all callers, stored sealed. `person`: each person connects their own account
 * by OAuth; a client's own token is never sent there.
 */
export type ToolCredentials =
  | { readonly kind: "none" }
  | { readonly kind: "headers"; readonly headers: Readonly<Record<string, string>> }
  | {
      readonly kind: "person";
      /** The authorization server, possibly inside the operator's network; null: the one that the server names. */
      readonly issuer: string | null;
      /** null: the gateway's client ID metadata document or a registration, as the authorization server supports. */
      readonly clientId: string | null;
      readonly clientSecret: string | null;
      /** null: the scopes that the server asks for. */
      readonly scopes: readonly string[] | null;
    };

/**
 * The approval of a server's tools. `first`: the first version is offered, and changes wait for an operator. `each`:
 * nothing is offered before approval. `all`: everything is offered.
 */
export const toolApprovals = ["first", "each", "all"] as const;
export type ToolApproval = (typeof toolApprovals)[number];

/** The sharing of a connection or a process: one for each person, or one for all callers. */
export const toolSharings = ["person", "all"] as const;
export type ToolSharing = (typeof toolSharings)[number];

/** The protocol revisions that are supported with servers, newest first. */
export const toolProtocolVersions = ["2026-07-28", "2025-11-25", "2025-06-18"] as const;
export type ToolProtocolVersion = (typeof toolProtocolVersions)[number];

export interface McpServer {
  /** Unique; see `mcpServerName`. */
  readonly name: string;
  readonly title: string | null;
  readonly description: string | null;
  readonly place: ServerLocation;
  readonly credentials: ToolCredentials;
  /** True if keys with `never_leaves` may use the server, because nothing that it is sent goes further. */
  readonly local: boolean;
  /** Environments whose keys may use the server; null: all. */
  readonly environments: readonly Environment[] | null;
  /** Ids of accounts that may use the server; null: all. */
  readonly accounts: readonly string[] | null;
  /** Names of offered tools, or prefixes ending in `*`; null: all. */
  readonly tools: readonly string[] | null;
  readonly approval: ToolApproval;
  readonly sharing: ToolSharing;
  /** Timeout of one call in milliseconds. */
  readonly timeoutMs: number;
  /** Maximum bytes of one result. */
  readonly maxResultBytes: number;
  /** Maximum number of concurrent calls. */
  readonly maxConcurrency: number;
  /** Nano-USD for each call; null: none. */
  readonly nanoUsdPerCall: number | null;
  /** The only revision to use; null or missing: the newest common one. */
  readonly protocolVersion?: ToolProtocolVersion | null;
  readonly enabled: boolean;
  /** True if this machine, as a node, shares the server with its gateway. Default: false. */
  readonly isShared?: boolean;
  /** True for a server of the configuration file, which the API cannot change. */
  readonly isDeclared: boolean;
}

/** Reports whether the server offers a tool of this name at all. `name` is the server's own. */
export function offersTool({ tools }: Pick<McpServer, "tools">, name: string): boolean {
  return tools === null || tools.some((one) => (one.endsWith("*") ? name.startsWith(one.slice(0, -1)) : one === name));
}

/** Returns the maximum duration of a call that progress and server requests extend. */
export function maxCallMs({ timeoutMs }: Pick<McpServer, "timeoutMs">): number {
  return Math.max(10 * timeoutMs, 600_000);
}

/** The current servers of the file and the database. */
export interface McpServers {
  all(): readonly McpServer[];
  find(name: string): McpServer | undefined;
  /** Calls `listener` after each change. Returns a function that unsubscribes. */
  onChange(listener: () => void): () => void;
}
