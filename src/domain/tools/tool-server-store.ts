// Servers of tools that operators add at run time, as they are stored.
import type { AuditEvent } from "../audit.ts";
import type { ToolCredentials, ToolServer } from "./tool-server.ts";

/** `file`: headrace.yaml; `database`: an operator added it. */
export const toolServerSources = ["file", "database"] as const;
export type ToolServerSource = (typeof toolServerSources)[number];

/** Bounds of a server that does not say. */
export const toolServerDefaults = {
  timeoutMs: 60_000,
  maxResultBytes: 4_194_304,
  maxConcurrency: 32,
} as const;

export interface StoredToolServer extends Omit<ToolServer, "credentials" | "isDeclared"> {
  readonly credentialKind: ToolCredentials["kind"];
  /** Its credentials as JSON, sealed under a key derived from the installation's secret; null: it has none. */
  readonly sealedCredentials: string | null;
  /** Unix seconds. */
  readonly createdAt: number;
}

export interface ToolServerStore {
  /** In the order of their names. */
  listToolServers(): Promise<StoredToolServer[]>;
  /** False, with nothing written, where there is one of this name. */
  insertToolServer(server: StoredToolServer, event: AuditEvent): Promise<boolean>;
  /** The same name and age; false, with nothing written, where it is not there any more. */
  changeToolServer(server: StoredToolServer, event: AuditEvent): Promise<boolean>;
  /** Its definitions, and the accounts that people connected there, go with it. */
  deleteToolServer(name: string, event: AuditEvent): Promise<boolean>;
  /** Another number after each change, by whichever process, of servers and of what is decided about their definitions. */
  toolsRevision(): Promise<number>;
}
