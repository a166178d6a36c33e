// The requests in the ledger, newest first.
import type { Environment } from "../api-key.ts";
import type { UsageOutcome, UsageRecord } from "./usage.ts";

/** The owner whose requests may be seen. */
export interface RequestOwner {
  accountId: string;
  environment: Environment;
  /** Restricts to this OAuth app. */
  appId?: string;
  /** Restricts to the activity of this person: sessions, their own keys, and apps that they allowed. */
  personId?: string;
}

export interface RequestFilter extends RequestOwner {
  keyId?: string;
  model?: string;
  tag?: string;
  outcome?: UsageOutcome;
  stream?: boolean;
  /** Unix seconds in which the request began: from `start`, before `end`. */
  start: number;
  end: number;
}

/** A position in the list. Later entries began earlier, or in the same second with a lesser id; '' is less than any. */
export interface RequestPosition {
  /** Unix seconds. */
  at: number;
  requestId: string;
}

export interface RequestPage {
  /** May be fewer than requested, or none, before the end, because the scan for one page is bounded. */
  records: UsageRecord[];
  /** The position to continue from; null: the end. */
  next: RequestPosition | null;
}

export interface RequestLog {
  list(filter: RequestFilter, page: { after: RequestPosition | undefined; limit: number }): Promise<RequestPage>;
  find(owner: RequestOwner, requestId: string): Promise<UsageRecord | undefined>;
}
