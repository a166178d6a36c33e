// Replicas: the server processes that share a database.
import type { AttemptReport } from "./usage/attempt-health.ts";

export interface Replica {
  /** `rep_` and a UUIDv7. A replica gets another id at each start. */
  id: string;
  /** The origin at which other replicas reach this replica. Null if unset. */
  advertiseUrl: string | null;
  version: string;
  /** Unix seconds on the database's clock. */
  startedAt: number;
  seenAt: number;
  /**
   * Upstreams at which a recent attempt of any replica failed, as this replica last saw them. Null from replicas of
   * older versions.
   */
  attempts?: readonly AttemptReport[] | null;
}

/**
 * Seconds between two heartbeats of a replica. A replica without a heartbeat for `replicaGoneSeconds` counts as dead.
 */
export const replicaBeatSeconds = 5;
export const replicaGoneSeconds = 20;

export interface ReplicaStore {
  /**
   * Stores a heartbeat, and deletes replicas that died long ago. Returns all live replicas, this one included, oldest
   * first. If `alone`, no other replica can exist, so all other rows belong to dead processes.
   */
  beat(replica: Omit<Replica, "startedAt" | "seenAt">, alone: boolean): Promise<Replica[]>;
  remove(id: string): Promise<void>;
}
