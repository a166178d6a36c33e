// Tool calls that a client has approved: each approval runs one call, at any replica.

/** The item and response in which an approved call appears. */
export interface MadeCall {
  /** Id of the call's item. */
  readonly callId: string;
  /** The response that runs the call. */
  readonly responseId: string;
}

export interface ApprovedCallStore {
  /**
   * Claims the call of an approval permanently, also after the death of this process. Returns an earlier claim;
   * undefined: the caller runs the call. `approval` is a digest of the approval's owner and id.
   */
  take(approval: string, call: MadeCall, expiresAt: number): Promise<MadeCall | undefined>;
  deleteExpired(nowSeconds: number, limit: number): Promise<number>;
}
