// Closes sessions and streams when their credential or its rights end.
import type { Clock } from "../../base/clock.ts";
import { GatewayError } from "../../base/errors.ts";
import type { Principal } from "../../domain/principal.ts";

export interface SessionRevokerDeps {
  clock: Pick<Clock, "nowSeconds">;
  /** Returns the principal as it is now. Rejects with `invalid_api_key` if its credential has ended. */
  still(principal: Principal): Promise<Principal>;
}

const pollMs = 5_000;

interface Entry {
  readonly principal: Principal;
  /** End of the entry in Unix seconds; undefined if only the end of the credential ends it. */
  readonly untilSeconds: number | undefined;
  readonly end: () => void;
}

export class SessionRevoker {
  readonly #deps: SessionRevokerDeps;
  readonly #entries = new Set<Entry>();
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(deps: SessionRevokerDeps) {
    this.#deps = deps;
  }

  /**
   * Adds an entry; `end` is called when the credential ends. Returns the function to call when the session or stream
   * ends by itself.
   */
  add(principal: Principal, untilSeconds: number | undefined, end: () => void): () => void {
    const entry: Entry = { principal, untilSeconds, end };
    this.#entries.add(entry);
    this.#timer ??= setInterval(() => void this.check(), pollMs);
    this.#timer.unref();
    return () => {
      this.#entries.delete(entry);
      if (this.#entries.size === 0) this.close();
    };
  }

  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Checks all entries. Never rejects. */
  async check(): Promise<void> {
    const asked = new Map<Principal, Promise<Principal | undefined>>();
    const entries = [...this.#entries];
    await Promise.all(
      entries.map(async (entry) => {
        const { principal } = entry;
        const now = asked.get(principal) ?? this.#still(principal);
        asked.set(principal, now);
        if (this.#holds(entry, await now) || !this.#entries.delete(entry)) return;
        entry.end();
      }),
    );
  }

  #holds({ principal, untilSeconds }: Entry, now: Principal | undefined): boolean {
    if (untilSeconds !== undefined && untilSeconds <= this.#deps.clock.nowSeconds()) return false;
    if (!now?.scopes.has("tools:use")) return false;
    // The servers of a session were chosen by the rights at its beginning.
    const nowLocal = now.modelAccess?.neverLeaves === true && principal.modelAccess?.neverLeaves !== true;
    return !nowLocal && Bun.deepEquals(now.tools, principal.tools);
  }

  /**
   * Returns the current principal, or undefined if its credential has ended. While the store is unavailable, returns
   * the earlier principal.
   */
  async #still(before: Principal): Promise<Principal | undefined> {
    try {
      return await this.#deps.still(before);
    } catch (error) {
      return error instanceof GatewayError && error.code === "service_unavailable" ? before : undefined;
    }
  }
}
