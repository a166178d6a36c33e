// Upstreams that operators add at run time, and drained upstreams, as stored.
import type { Environment } from "../api-key.ts";
import type { AuditEvent } from "../audit.ts";
import type { UpstreamSpeech } from "./upstream-speech.ts";

/**
 * `command`: a command of headrace.yaml. `found`: discovered on this machine. `node`: a node that joined, managed as a
 * node.
 */
export const upstreamSources = ["built-in", "command", "file", "database", "found", "node"] as const;
export type UpstreamSource = (typeof upstreamSources)[number];

/** Default settings of upstreams in the configuration file. */
export const upstreamDefaults = { timeoutSeconds: 600, idleSeconds: 900 } as const;

/** The rule for names, also used by the configuration file. */
export const upstreamNamePattern = /^[a-z0-9][a-z0-9._-]{0,62}$/;

export interface UpstreamSettings extends UpstreamSpeech {
  name: string;
  /** The URL without a slash at its end. */
  url: string;
  discover: boolean;
  /** True if requests of keys with `never_leaves` may go there. */
  local: boolean;
  /** Environments of the models that are discovered on the upstream. */
  environments: readonly Environment[];
  /** Seconds to the first byte of an answer. */
  timeoutSeconds: number;
  /** Seconds between two bytes of an answer. */
  idleSeconds: number;
  /** Maximum concurrent requests; null: measured. */
  maxConcurrency: number | null;
}

export interface StoredUpstream extends UpstreamSettings {
  /** The API key, sealed under a key derived from the installation's secret; null: none. */
  sealedApiKey: string | null;
  /** Unix seconds. */
  createdAt: number;
}

export interface UpstreamStore {
  /** Lists upstreams, ordered by name. */
  listUpstreams(): Promise<StoredUpstream[]>;
  /** Returns the names of drained upstreams, whatever their source. */
  listDrained(): Promise<string[]>;
  /**
   * Adds an upstream that is not drained, even if an earlier one of its name was. Returns false if an upstream or node
   * has the name.
   */
  insertUpstream(upstream: StoredUpstream, event: AuditEvent): Promise<boolean>;
  /**
   * Changes the members that `change` has. Returns false without a change if `change.upstream` is set and that upstream
   * does not exist any more.
   */
  changeUpstream(name: string, change: UpstreamChange, event: AuditEvent): Promise<boolean>;
  /**
   * Deletes an upstream. `draining`: whether a later upstream of this name stays drained. Returns false if there is no
   * such upstream.
   */
  deleteUpstream(name: string, keep: { draining: boolean }, event: AuditEvent): Promise<boolean>;
  /** Returns a number that every process changes with each change of upstreams, models or nodes. */
  routingRevision(): Promise<number>;
}

export interface UpstreamChange {
  /** The new settings of the stored upstream with the same name and creation time. */
  upstream?: StoredUpstream;
  draining?: boolean;
}
