// Calls of tools that a client was asked about and has approved: each approval makes one call, whichever replica is asked.

/** Where an approved call is told of. */
export interface MadeCall {
  /** Id of its item. */
  readonly callId: string;
  /** The response in which it is made. */
  readonly responseId: string;
}

export interface ApprovedCallStore {
  /**
   * Takes the call of an approval, for good: it is there after the death of this process. Gives what has taken it before;
   * undefined: nothing has, and whoever asks makes it. `approval`: a digest of whose it is and its id.
   */
  take(approval: string, call: MadeCall, expiresAt: number): Promise<MadeCall | undefined>;
  deleteExpired(nowSeconds: number, limit: number): Promise<number>;
}
