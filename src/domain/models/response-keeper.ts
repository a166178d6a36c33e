// The port that stores responses. A response is stored before its client receives the end.
import type { StoredResponse } from "./stored-response.ts";

/** The reason why a response was not stored although it should have been. */
export type NotKept = "account_full" | "too_large" | "unreadable" | "no_room" | "empty" | "too_slow" | "store_failed";

export interface ResponseKeeper {
  /** Days to keep a response. If 0, nothing is stored. A configuration reload may change the number. */
  readonly retentionDays: number;
  /**
   * Resolves to true once the response is stored, so that every replica can find it. Resolves to false within seconds
   * if the store fails; this is logged and not retried. Never rejects.
   */
  keep(response: StoredResponse): Promise<boolean>;
  /** Throws `request_too_large` if the account may not store `size` more characters. */
  requireRoom(accountId: string, size: number): Promise<void>;
  /** Logs that a response that should have been stored was not. */
  notStored(accountId: string, reason: NotKept): void;
}
