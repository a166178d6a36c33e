// What was begun at one process and may be finished at another, as it is stored.

export interface PendingEntry {
  /** What it is of, such as `single_sign_on`. */
  kind: string;
  /** Of what the one who finishes it presents. */
  digest: string;
  value: string;
  /** Unix seconds. */
  expiresAt: number;
}

export interface PendingStore {
  /** In the place of an earlier one of the same kind and digest. */
  put(entry: PendingEntry): Promise<void>;
  /** The value, to one of those who ask; undefined for what was never there, has ended or was taken. */
  take(kind: string, digest: string, nowSeconds: number): Promise<string | undefined>;
  has(kind: string, digest: string, nowSeconds: number): Promise<boolean>;
  /** Forgets those of a kind that end first, beyond `most`. */
  trim(kind: string, most: number): Promise<void>;
  /** Forgets what has ended, a bounded number at a time. */
  prune(nowSeconds: number): Promise<void>;
}
