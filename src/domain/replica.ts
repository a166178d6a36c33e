// Processes that share one database: who is there.

export interface Replica {
  /** `rep_` and a UUIDv7; another at each start. */
  id: string;
  /** Where other replicas reach it, an origin; null where it does not say. */
  advertiseUrl: string | null;
  version: string;
  /** Unix seconds, by the database's clock. */
  startedAt: number;
  seenAt: number;
}

/** How often each says that it is there, and how long after the last time it counts as gone. */
export const replicaBeatSeconds = 5;
export const replicaGoneSeconds = 20;
