// Processes that share one database: who is there.

export interface Replica {
  /** `rep_` and a UUIDv7; another at each start. */
  id: string;
  /** The origin at which other replicas reach it; null where it does not say. */
  advertiseUrl: string | null;
  version: string;
  /** Unix seconds, by the database's clock. */
  startedAt: number;
  seenAt: number;
}

/** The interval in which each says that it is there, and the time after the last one from which it counts as gone. */
export const replicaBeatSeconds = 5;
export const replicaGoneSeconds = 20;

export interface ReplicaStore {
  /**
   * Says that it is there, for the first time or again, and forgets those long gone. Gives all that are there, itself
   * included, oldest first. `alone`: no other can be, so whatever else stands there is of a process that died.
   */
  beat(replica: Pick<Replica, "id" | "advertiseUrl" | "version">, alone: boolean): Promise<Replica[]>;
  remove(id: string): Promise<void>;
}
