// Sign-ins and similar flows that one process begins and another may finish, as stored.

export interface PendingEntry {
  /** The kind of flow, such as `single_sign_on`. */
  kind: string;
  /** Digest of the value whose presentation finishes the flow. */
  digest: string;
  value: string;
  /** Unix seconds. */
  expiresAt: number;
}

export interface PendingStore {
  /** Stores the entry in place of an earlier one of the same kind and digest. */
  put(entry: PendingEntry): Promise<void>;
  /** Returns the value to one caller only. Undefined if it is missing, expired or taken. */
  take(kind: string, digest: string, nowSeconds: number): Promise<string | undefined>;
  has(kind: string, digest: string, nowSeconds: number): Promise<boolean>;
  /** Deletes the entries of a kind that expire first, beyond `most`. */
  trim(kind: string, most: number): Promise<void>;
  /** Deletes expired entries, a bounded number at a time. */
  prune(nowSeconds: number): Promise<void>;
}
