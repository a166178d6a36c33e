// Stored upstreams: those that operators add at run time, and which upstreams are drained.
import type { Environment } from "../api-key.ts";
import type { AuditEvent } from "../audit.ts";
import type { UpstreamSpeech } from "./upstream-speech.ts";

/**
 * The source of an upstream. `command`: a command of headrace.yaml. `found`: discovered on this machine. `node`: a
 * node that joined.
 */
export const upstreamSources = ["built-in", "command", "file", "database", "found", "node"] as const;
export type UpstreamSource = (typeof upstreamSources)[number];

/** Defaults of an upstream's settings. */
export const upstreamDefaults = { timeoutSeconds: 600, idleSeconds: 900 } as const;

/** Maximum number of models that the test of an upstream lists. */
export const maxModelsShown = 1000;

/** The states of a deployment, wherever a state is shown. */
export const deploymentStates = ["ok", "unreachable", "failing", "cooling_down", "draining"] as const;
export type DeploymentState = (typeof deploymentStates)[number];

/** The rule for names, also used by the configuration file. */
export const upstreamNamePattern = /^[a-z0-9][a-z0-9._-]{0,62}$/;

export interface UpstreamSettings extends UpstreamSpeech {
  name: string;
  /** The URL without a slash at its end. */
  url: string;
  discover: boolean;
  /** True if requests of keys with `never_leaves` may use the upstream. */
  local: boolean;
  /** Environments for models that are discovered on this upstream. */
  environments: readonly Environment[];
  /** Maximum seconds until the first byte of an answer. */
  timeoutSeconds: number;
  /** Maximum seconds between two bytes of an answer. */
  idleSeconds: number;
  /** Maximum concurrent requests. If null, the gateway measures the number. */
  maxConcurrency: number | null;
}

export interface StoredUpstream extends UpstreamSettings {
  /** The API key, encrypted under a key derived from the installation's secret. Null if there is none. */
  sealedApiKey: string | null;
  /** Unix seconds. */
  createdAt: number;
}

export interface UpstreamStore {
  /** Lists upstreams in the order of their names. */
  listUpstreams(): Promise<StoredUpstream[]>;
  /** Returns the names of all drained upstreams, also of those in the configuration file. */
  listDrained(): Promise<string[]>;
  /**
   * Adds an upstream, which is not drained even if an earlier upstream of its name was. Returns false if an upstream or
   * node has the name.
   */
  insertUpstream(upstream: StoredUpstream, event: AuditEvent): Promise<boolean>;
  /**
   * Changes only what `change` contains. If `change.upstream` is set and that upstream does not exist any more, changes
   * nothing and returns false.
   */
  changeUpstream(name: string, change: UpstreamChange, event: AuditEvent): Promise<boolean>;
  /**
   * Deletes an upstream. If `draining` is true, its name stays drained, for an upstream of the same name from another
   * source. Returns false if the upstream does not exist.
   */
  deleteUpstream(name: string, keep: { draining: boolean }, event: AuditEvent): Promise<boolean>;
  /** Returns a number that rises with each change of upstreams, models or nodes, by any process. */
  routingRevision(): Promise<number>;
}

export interface UpstreamChange {
  /** New settings. They replace the stored upstream with the same name and creation time. */
  upstream?: StoredUpstream;
  draining?: boolean;
}
