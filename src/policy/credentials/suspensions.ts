// Notices new suspensions by any process, and stops the work that suspended callers still have running.

import type { GatewayError } from "../../base/errors.ts";
import { type Suspension, suspendedError } from "../../base/invalid-api-key.ts";
import type { Log } from "../../base/log.ts";
import type { KeyStore, Principal } from "../../domain/principal.ts";

export interface SuspensionsOptions {
  keys: Pick<KeyStore, "listSuspended">;
  log: Pick<Log, "warn">;
}

/** Returns the error for a caller who was suspended after the start of a request; undefined for other callers. */
export type SuspendedCheck = (principal: Pick<Principal, "account" | "keys">) => GatewayError | undefined;

const retryMs = 500;

/**
 * Tracks the ids that were suspended since the process started, so that their running requests can be stopped.
 * Authentication refuses the callers that were suspended before.
 */
export class Suspensions {
  readonly #options: SuspensionsOptions;
  readonly #listeners: ((ids: readonly string[]) => void)[] = [];
  /** The ids that were suspended when this process first read them, without those that were resumed since. */
  #before: ReadonlySet<string> | undefined;
  #since: ReadonlySet<string> = new Set();
  #looking: Promise<void> | undefined;
  #isStale = false;
  #retry: ReturnType<typeof setTimeout> | undefined;

  constructor(options: SuspensionsOptions) {
    this.#options = options;
  }

  /** `listener` is called with the ids that were suspended since the start of this process, whenever they change. */
  onSuspended(listener: (ids: readonly string[]) => void): void {
    this.#listeners.push(listener);
  }

  close(): void {
    clearTimeout(this.#retry);
    this.#listeners.length = 0;
  }

  /** Reads the suspended ids again. Reads never overlap, and one read begins after the last call. */
  changed(): void {
    this.#isStale = true;
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
      if (this.#isStale) this.changed();
    });
  }

  async #look(): Promise<void> {
    this.#isStale = false;
    clearTimeout(this.#retry);
    try {
      const ids = await this.#options.keys.listSuspended();
      this.#before ??= new Set(ids);
      const since = new Set(ids).difference(this.#before);
      // A person who is resumed and suspended again counts as new.
      this.#before = this.#before.intersection(new Set(ids));
      // A resumed caller must leave the set too, or its later requests would be stopped.
      const isSame = since.size === this.#since.size && since.isSubsetOf(this.#since);
      this.#since = since;
      if (!isSame) for (const listener of this.#listeners) listener([...since]);
    } catch (error) {
      this.#options.log.warn("suspensions_not_read", { detail: String(error) });
      this.#retry = setTimeout(() => this.changed(), retryMs);
      this.#retry.unref();
    }
  }
}

/** Returns a check for callers that belong to these suspended ids, which are ids of accounts, people, apps and keys. */
export function suspendedCheck(suspended: readonly string[]): SuspendedCheck {
  const ids = new Set(suspended);
  return ({ account, keys }) => {
    const what = suspensionAmong(account.id, keys, ids);
    return what && suspendedError(what);
  };
}

function suspensionAmong(accountId: string, keys: Principal["keys"], ids: ReadonlySet<string>): Suspension | undefined {
  if (ids.has(accountId)) return "account_suspended";
  for (const { id, personId, appId } of keys) {
    if (ids.has(id)) return "key_suspended";
    if (personId !== null && ids.has(personId)) return "person_suspended";
    if (appId !== null && ids.has(appId)) return "app_suspended";
  }
  return undefined;
}
