// The requests that the ledger has a record of, newest first.
import type { Environment } from "../api-key.ts";
import type { UsageOutcome, UsageRecord } from "./usage.ts";

/** The owner whose requests may be seen. */
export interface RequestOwner {
  accountId: string;
  environment: Environment;
  /** Only those of this OAuth app. */
  appId?: string;
  /** Only what this person did: signed in, with keys of their own, and through apps that they allowed. */
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

/** A place in the list. Later entries began earlier, or in the same second with a lesser id; '' is less than any. */
export interface RequestPosition {
  /** Unix seconds. */
  at: number;
  requestId: string;
}

export interface RequestPage {
  /** May be fewer than were asked for, or none, before the end: how much is looked through for one page is bounded. */
  records: UsageRecord[];
  /** The place to go on from; null: there are no others. */
  next: RequestPosition | null;
}

export interface RequestLog {
  list(filter: RequestFilter, page: { after: RequestPosition | undefined; limit: number }): Promise<RequestPage>;
  find(owner: RequestOwner, requestId: string): Promise<UsageRecord | undefined>;
}
