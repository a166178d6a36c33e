// Model servers that operators add at run time, and which servers get nothing new, as they are stored.
import type { Environment } from "../api-key.ts";
import type { AuditEvent } from "../audit.ts";
import type { UpstreamSpeech } from "./upstream-speech.ts";

/**
 * `command`: the server starts it, as headrace.yaml says. `found`: on this machine, by asking its usual ports. `node`: it
 * joined, and is managed as a node.
 */
export const upstreamSources = ["built-in", "command", "file", "database", "found", "node"] as const;
export type UpstreamSource = (typeof upstreamSources)[number];

/** The values of upstreams of the configuration file that do not say. */
export const upstreamDefaults = { timeoutSeconds: 600, idleSeconds: 900 } as const;

/** The rule for names, which the configuration file shares. */
export const upstreamNamePattern = /^[a-z0-9][a-z0-9._-]{0,62}$/;

export interface UpstreamSettings extends UpstreamSpeech {
  name: string;
  /** The URL without a slash at its end. */
  url: string;
  discover: boolean;
  /** Whether requests of keys that `never_leaves` holds for may go there. */
  local: boolean;
  /** Environments of its discovered models. */
  environments: readonly Environment[];
  /** Seconds to the first byte of an answer. */
  timeoutSeconds: number;
  /** Seconds between two bytes of an answer. */
  idleSeconds: number;
  /** null: measured. */
  maxConcurrency: number | null;
}

export interface StoredUpstream extends UpstreamSettings {
  /** The API key, sealed under a key derived from the installation's secret; null: the server wants none. */
  sealedApiKey: string | null;
  /** Unix seconds. */
  createdAt: number;
}

export interface UpstreamStore {
  /** Upstreams by name. */
  listUpstreams(): Promise<StoredUpstream[]>;
  /** Names, wherever the upstreams come from. */
  listDrained(): Promise<string[]>;
  /** Adds one that is not drained, whatever had its name before. False where there is one of this name, or a node. */
  insertUpstream(upstream: StoredUpstream, event: AuditEvent): Promise<boolean>;
  /** What is left out of `change` stays. False, and nothing is written, where `upstream` is not there any more. */
  changeUpstream(name: string, change: UpstreamChange, event: AuditEvent): Promise<boolean>;
  /** `draining`: whether another of its name goes on being drained. False where there is none. */
  deleteUpstream(name: string, keep: { draining: boolean }, event: AuditEvent): Promise<boolean>;
  /** Another number after each change, by whichever process, of what is here and of nodes. */
  routingRevision(): Promise<number>;
}

export interface UpstreamChange {
  /** A stored upstream of the same name and age. */
  upstream?: StoredUpstream;
  draining?: boolean;
}
