// Numbers of refused requests in each hour: refused by a limit, a quota or missing capacity.

import type { RefusalReason } from "../../base/errors.ts";
import type { Environment } from "../api-key.ts";

export interface RefusalCount {
  accountId: string;
  environment: Environment;
  /** Start of the hour in Unix seconds. */
  start: number;
  /** Id of the credential. `keyId` and `model` are null if there were too many to count separately. */
  keyId: string | null;
  /** Null if there is no app, or if there were too many apps to count separately. */
  appId: string | null;
  /** The public id. */
  model: string | null;
  reason: RefusalReason;
  requests: number;
  /** Unix seconds of the last refusal. */
  lastAt: number;
}

export interface RefusalQuery {
  /** The account whose refusals are read. Null means all accounts, for operators. */
  accountId: string | null;
  environment: Environment;
  /** Only requests of this OAuth app. */
  appId?: string;
  /** Only activity of this person: sessions, their own keys, and apps that they allowed. */
  personId?: string;
  keyId?: string;
  model?: string;
  /** The period in Unix seconds, in whole hours. `start` is included, `end` is not. */
  start: number;
  end: number;
}

export interface RefusalStore {
  /** Adds all of `counts`, or none if that fails. There may be some hundred at most. */
  add(counts: readonly RefusalCount[]): Promise<void>;
  /** Lists counts, the newest hour first. */
  list(query: RefusalQuery, limit: number): Promise<RefusalCount[]>;
}
