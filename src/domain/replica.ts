// Replicas: the server processes that share a database.

export interface Replica {
  /** `rep_` and a UUIDv7; another at each start. */
  id: string;
  /** The origin at which other replicas reach this replica; null if it has none. */
  advertiseUrl: string | null;
  version: string;
  /** Unix seconds, by the database's clock. */
  startedAt: number;
  seenAt: number;
}

/** The interval of a replica's heartbeat, and the time without a heartbeat after which it counts as dead. */
export const replicaBeatSeconds = 5;
export const replicaGoneSeconds = 20;

export interface ReplicaStore {
  /**
   * Writes the heartbeat and deletes replicas that died long ago. Returns all live replicas, including this one, oldest
   * first. `alone`: no other replica can exist, so all other rows are of dead processes.
   */
  beat(replica: Pick<Replica, "id" | "advertiseUrl" | "version">, alone: boolean): Promise<Replica[]>;
  remove(id: string): Promise<void>;
}
