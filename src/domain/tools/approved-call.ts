// Tool calls that a client has approved. Each approval allows one call, on any replica.

/** The place where an approved call appears: its item, and the response that runs it. */
export interface MadeCall {
  /** Id of the item that represents the call. */
  readonly callId: string;
  /** The response that runs the call. */
  readonly responseId: string;
}

export interface ApprovedCallStore {
  /**
   * Claims the call that an approval allows. The claim stays even if this process dies. Returns undefined if the caller
   * may run the call, or else the earlier claim. `approval` is a digest of the approval's owner and id.
   */
  take(approval: string, call: MadeCall, expiresAt: number): Promise<MadeCall | undefined>;
  deleteExpired(nowSeconds: number, limit: number): Promise<number>;
}
