// The port that stores responses before their clients receive the end.
import type { StoredResponse } from "./stored-response.ts";

/** The reason why a response was not stored although it should have been. */
export type NotKept = "account_full" | "too_large" | "unreadable" | "no_room" | "empty" | "too_slow" | "store_failed";

export interface ResponseKeeper {
  /** Days to keep a response; 0: nothing is stored. A reload may change it. */
  readonly retentionDays: number;
  /**
   * Resolves to true once the response is in the store, where every replica finds it. Resolves to false within seconds
   * if the store does not take the response: that is logged, and the response will not be stored later. Never rejects.
   */
  keep(response: StoredResponse): Promise<boolean>;
  /** Throws `request_too_large` if the account may not store this many more characters. */
  requireRoom(accountId: string, size: number): Promise<void>;
  /** Logs that a response that should have been stored was not. */
  notStored(accountId: string, reason: NotKept): void;
}
