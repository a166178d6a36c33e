// Closes sessions and streams when their credential expires or is revoked, or its rights change.
import type { Clock } from "../../base/clock.ts";
import { GatewayError } from "../../base/errors.ts";
import type { Principal } from "../../domain/principal.ts";

export interface SessionRevokerDeps {
  clock: Pick<Clock, "nowSeconds">;
  /**
   * Returns the principal with its current rights. Rejects with `invalid_api_key` if the credential has expired or was
   * revoked.
   */
  still(principal: Principal): Promise<Principal>;
}

const pollMs = 5_000;

interface Entry {
  readonly principal: Principal;
  /** Unix seconds at which the session ends in any case; undefined if only the credential limits it. */
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
   * Watches a session or stream. `end` is called when its credential is no longer valid. Returns a function to call if
   * the session or stream ends for another reason.
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

  /** Checks the credentials of all sessions and streams. Never rejects. */
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
    // A session's servers were chosen by the rights at its beginning, so the session ends if these rights change.
    const nowLocal = now.modelAccess?.neverLeaves === true && principal.modelAccess?.neverLeaves !== true;
    return !nowLocal && Bun.deepEquals(now.tools, principal.tools);
  }

  /**
   * Returns the principal with its current rights; undefined if its credential is no longer valid. While the database
   * is unavailable, returns the earlier principal.
   */
  async #still(before: Principal): Promise<Principal | undefined> {
    try {
      return await this.#deps.still(before);
    } catch (error) {
      return error instanceof GatewayError && error.code === "service_unavailable" ? before : undefined;
    }
  }
}
