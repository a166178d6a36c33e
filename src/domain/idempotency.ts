// Repeated requests: the first request with an idempotency key, and its answer.

/** The first request of a credential with this key. */
export interface FirstRequest {
  /** Id of the credential. */
  owner: string;
  /** Digest of the key that the client chose. */
  key: string;
  /** Digest of the request: method, path and body. */
  request: string;
  /** Unix seconds. */
  at: number;
  /** The answer, sealed. Null while the request runs, and empty if its outcome is not known. */
  answer: string | null;
}

export interface IdempotencyStore {
  /** Stores the request, unless the credential already sent one with this key. Returns the stored one in that case. */
  claim(first: FirstRequest): Promise<FirstRequest | undefined>;
  finish(first: FirstRequest): Promise<void>;
  /** Deletes a request that was refused before any effect, so that the client may repeat it with another body. */
  release(first: Pick<FirstRequest, "owner" | "key">): Promise<void>;
  deleteExpired(nowSeconds: number, limit: number): Promise<number>;
}

export const idempotencySeconds = 86_400;
