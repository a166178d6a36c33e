// The port that lists requests in the ledger, newest first.
import type { Environment } from "../api-key.ts";
import type { UsageOutcome, UsageRecord } from "./usage.ts";

/** The party whose requests may be seen. */
export interface RequestOwner {
  accountId: string;
  environment: Environment;
  /** Only requests of this OAuth app. */
  appId?: string;
  /** Only activity of this person: sessions, their own keys, and apps that they allowed. */
  personId?: string;
}

export interface RequestFilter extends Omit<RequestOwner, "accountId"> {
  /** The account whose requests are read. Null means all accounts, for operators. */
  accountId: string | null;
  keyId?: string;
  /** A model server that the request was sent to. */
  upstream?: string;
  model?: string;
  tag?: string;
  outcome?: UsageOutcome;
  stream?: boolean;
  /** When the request began, in Unix seconds. `start` is included, `end` is not. */
  start: number;
  end: number;
}

/**
 * A position in the list. The entries after it began earlier, or in the same second and have a lesser id. The id '' is
 * less than any other.
 */
export interface RequestPosition {
  /** Unix seconds. */
  at: number;
  requestId: string;
}

export interface RequestPage {
  /**
   * There may be fewer requests than wanted, even none, before the end of the list: a page scans a limited number of
   * rows.
   */
  records: UsageRecord[];
  /** The position at which the next page begins. Null at the end of the list. */
  next: RequestPosition | null;
}

export interface RequestLog {
  list(filter: RequestFilter, page: { after: RequestPosition | undefined; limit: number }): Promise<RequestPage>;
  /** Finds a request. Without an owner, it may be of any account and environment, for operators. */
  find(owner: RequestOwner | null, requestId: string): Promise<UsageRecord | undefined>;
}
