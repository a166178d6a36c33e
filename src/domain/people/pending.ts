// Sign-ins and the like that were begun at one process and may be finished at another, as they are stored.

export interface PendingEntry {
  /** The kind of process, such as `single_sign_on`. */
  kind: string;
  /** Digest of what the one who finishes it presents. */
  digest: string;
  value: string;
  /** Unix seconds. */
  expiresAt: number;
}

export interface PendingStore {
  /** Stores it in place of an earlier one of the same kind and digest. */
  put(entry: PendingEntry): Promise<void>;
  /** The value, to one of those who ask; undefined for what was never there, has ended or was taken. */
  take(kind: string, digest: string, nowSeconds: number): Promise<string | undefined>;
  has(kind: string, digest: string, nowSeconds: number): Promise<boolean>;
  /** Forgets those of a kind that end first, beyond `most`. */
  trim(kind: string, most: number): Promise<void>;
  /** Forgets what has ended, a bounded number at a time. */
  prune(nowSeconds: number): Promise<void>;
}
