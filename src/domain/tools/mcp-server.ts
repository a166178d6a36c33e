// MCP servers that the gateway stands before: where they are, and as whom they are asked.
import type { Environment } from "../api-key.ts";

/** Begins the names that clients see of its tools, so it is short, and has no underscore. */
export const mcpServerName = /^[a-z0-9](?:[a-z0-9-]{0,22}[a-z0-9])?$/;

/**
 * Where it is. `http`: streamable HTTP. `command`: a process of this machine that speaks over its standard input and output;
 * only the configuration file may name one. `node`: one of those that a node of the network has in its own configuration.
 */
export type ServerLocation =
  | { readonly kind: "http"; readonly url: string }
  | {
      readonly kind: "command";
      readonly command: readonly [string, ...string[]];
      /** All that it gets of an environment beside `PATH`, `HOME` and the like. */
      readonly env: Readonly<Record<string, string>>;
      /** A directory of its own where it is null. */
      readonly directory: string | null;
    }
  /** `nodeId`: its id, or its name. */
  | { readonly kind: "node"; readonly nodeId: string; readonly server: string };

/**
 * The identity by which it is asked. `headers`: the same for everybody, sealed where they are kept. `person`: each person connects an account
 * of their own by OAuth; a client's own token never gets there.
 */
export type ToolCredentials =
  | { readonly kind: "none" }
  | { readonly kind: "headers"; readonly headers: Readonly<Record<string, string>> }
  | {
      readonly kind: "person";
      /** The authorization server, wherever in the operator's network it is; null: the one that the server names. */
      readonly issuer: string | null;
      /** Where it is null, the client ID metadata document of the gateway, or a registration, as the authorization server takes them. */
      readonly clientId: string | null;
      readonly clientSecret: string | null;
      /** Those that the server asks for, where it is null. */
      readonly scopes: readonly string[] | null;
    };

/**
 * When what a server says of its tools is offered. `first`: as it was when it was first seen; what changes or comes later
 * waits for an operator. `each`: nothing that an operator has not approved. `all`: whatever it says.
 */
export const toolApprovals = ["first", "each", "all"] as const;
export type ToolApproval = (typeof toolApprovals)[number];

/** Who shares a connection or a process: nobody with anybody else, or all who use the server. */
export const toolSharings = ["person", "all"] as const;
export type ToolSharing = (typeof toolSharings)[number];

/** Revisions of the protocol that are spoken with servers, newest first. */
export const toolProtocolVersions = ["2026-07-28", "2025-11-25", "2025-06-18"] as const;
export type ToolProtocolVersion = (typeof toolProtocolVersions)[number];

export interface McpServer {
  /** Unique; see `mcpServerName`. */
  readonly name: string;
  readonly title: string | null;
  readonly description: string | null;
  readonly place: ServerLocation;
  readonly credentials: ToolCredentials;
  /** Whether keys that `never_leaves` holds for may use it, as nothing that it is sent goes further. */
  readonly local: boolean;
  /** All, where it is null. */
  readonly environments: readonly Environment[] | null;
  /** Ids of accounts that may use it; null: all. */
  readonly accounts: readonly string[] | null;
  /** Names of tools that are offered at all, and beginnings of names with an asterisk; null: all. */
  readonly tools: readonly string[] | null;
  readonly approval: ToolApproval;
  readonly sharing: ToolSharing;
  /** Milliseconds for one call. */
  readonly timeoutMs: number;
  /** Bytes of one result. */
  readonly maxResultBytes: number;
  /** Calls at a time. */
  readonly maxConcurrency: number;
  /** Nano-USD for each call; null: none. */
  readonly nanoUsdPerCall: number | null;
  /** The only revision that is spoken with it; null or left out: the newest that both know. */
  readonly protocolVersion?: ToolProtocolVersion | null;
  readonly enabled: boolean;
  /** Whether the gateway that this machine is a node of may use it; left out: no. */
  readonly isShared?: boolean;
  /** Whether it stands in the configuration file, which the API cannot change. */
  readonly isDeclared: boolean;
}

/** Whether it offers a tool of this name, which is its own, at all. */
export function offersTool({ tools }: Pick<McpServer, "tools">, name: string): boolean {
  return tools === null || tools.some((one) => (one.endsWith("*") ? name.startsWith(one.slice(0, -1)) : one === name));
}

/** Progress, and questions to the client, prolong a call; never beyond this. */
export function maxCallMs({ timeoutMs }: Pick<McpServer, "timeoutMs">): number {
  return Math.max(10 * timeoutMs, 600_000);
}

/** The servers as they are now; those of the file and of the database. */
export interface McpServers {
  all(): readonly McpServer[];
  find(name: string): McpServer | undefined;
  /** Calls `listener` after each change; gives what ends that. */
  onChange(listener: () => void): () => void;
}
