// Requests that a limit, a quota or want of capacity refused, counted by hour.

import type { RefusalReason } from "../../base/errors.ts";
import type { Environment } from "../api-key.ts";

export interface RefusalCount {
  accountId: string;
  environment: Environment;
  /** Unix seconds of the hour. */
  start: number;
  /** Id of the credential; null with `model` where there were too many at once to tell them apart. */
  keyId: string | null;
  /** null: no app, or not told apart. */
  appId: string | null;
  /** The public id. */
  model: string | null;
  reason: RefusalReason;
  requests: number;
  /** Unix seconds of the last one. */
  lastAt: number;
}

export interface RefusalQuery {
  accountId: string;
  environment: Environment;
  /** Only those of this OAuth app. */
  appId?: string;
  /** Only what this person did: signed in, with keys of their own, and through apps that they allowed. */
  personId?: string;
  /** Unix seconds: from `start`, before `end`; whole hours. */
  start: number;
  end: number;
}

export interface RefusalStore {
  /** Adds to what is there: all of `counts`, some hundred at most, or none. */
  add(counts: readonly RefusalCount[]): Promise<void>;
  /** The newest hour first. */
  list(query: RefusalQuery, limit: number): Promise<RefusalCount[]>;
}
