// Stored sign-ins and similar flows. One process begins a flow and another may finish it.

export interface PendingEntry {
  /** The kind of flow, such as `single_sign_on`. */
  kind: string;
  /** Digest of the secret that must be presented to finish the flow. */
  digest: string;
  value: string;
  /** Unix seconds. */
  expiresAt: number;
}

export interface PendingStore {
  /** Stores the entry. Replaces an earlier entry of the same kind and digest. */
  put(entry: PendingEntry): Promise<void>;
  /**
   * Removes an entry and returns its value, so that only one caller gets it. Returns undefined if the entry is missing
   * or has expired.
   */
  take(kind: string, digest: string, nowSeconds: number): Promise<string | undefined>;
  has(kind: string, digest: string, nowSeconds: number): Promise<boolean>;
  /**
   * Deletes a limited number of a kind's entries beyond `most`. Entries of the network with the most entries are
   * deleted, the ones that expire first.
   */
  trim(kind: string, most: number): Promise<void>;
  /** Deletes a limited number of expired entries. */
  prune(nowSeconds: number): Promise<void>;
}
