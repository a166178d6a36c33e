// The port by which responses are kept before their clients hear that they have ended.
import type { StoredResponse } from "./stored-response.ts";

/** Why a response that should have been kept is not. */
export type NotKept = "too_large" | "unreadable" | "no_room" | "empty" | "too_slow" | "store_failed";

export interface ResponseKeeper {
  /** Days for which a response is kept; 0: nothing is. A reload may change it. */
  readonly retentionDays: number;
  /**
   * Resolves once it is in the store, so that whoever goes on from it finds it, at whichever replica; or, within seconds,
   * once it is logged that it is not. Never rejects.
   */
  keep(response: StoredResponse): Promise<void>;
  /** Logs that a response that should have been kept is not. */
  notStored(accountId: string, reason: NotKept): void;
}
