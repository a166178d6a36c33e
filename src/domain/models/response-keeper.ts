// The port by which responses are kept before their clients hear that they have ended.
import type { StoredResponse } from "./stored-response.ts";

/** Why a response that should have been kept is not. */
export type NotKept = "account_full" | "too_large" | "unreadable" | "no_room" | "empty" | "too_slow" | "store_failed";

export interface ResponseKeeper {
  /** Days for which a response is kept; 0: nothing is. A reload may change it. */
  readonly retentionDays: number;
  /**
   * Resolves to true once the response is in the store, where every replica finds it. Resolves to false within seconds if
   * the store does not take the response: that is logged, and the response will not be stored later. Never rejects.
   */
  keep(response: StoredResponse): Promise<boolean>;
  /** Throws `request_too_large` where the account may not store so many characters more. */
  requireRoom(accountId: string, size: number): Promise<void>;
  /** Logs that a response that should have been kept is not. */
  notStored(accountId: string, reason: NotKept): void;
}
