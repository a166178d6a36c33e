// Counts of requests by hour that a limit, a quota or missing capacity refused.

import type { RefusalReason } from "../../base/errors.ts";
import type { Environment } from "../api-key.ts";

export interface RefusalCount {
  accountId: string;
  environment: Environment;
  /** Unix seconds of the hour. */
  start: number;
  /** Id of the credential. null, like `model`, if there were too many to distinguish. */
  keyId: string | null;
  /** null: no app, or not distinguished. */
  appId: string | null;
  /** The public id. */
  model: string | null;
  reason: RefusalReason;
  requests: number;
  /** Unix seconds of the last refusal. */
  lastAt: number;
}

export interface RefusalQuery {
  accountId: string;
  environment: Environment;
  /** Restricts to this OAuth app. */
  appId?: string;
  /** Restricts to the activity of this person: sessions, their own keys, and apps that they allowed. */
  personId?: string;
  /** Unix seconds: from `start`, before `end`; whole hours. */
  start: number;
  end: number;
}

export interface RefusalStore {
  /** Adds all of `counts`, at most some hundred, or none. */
  add(counts: readonly RefusalCount[]): Promise<void>;
  /** Lists counts, the newest hour first. */
  list(query: RefusalQuery, limit: number): Promise<RefusalCount[]>;
}
