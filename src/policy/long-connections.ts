// Limits client connections that outlive their request, by key, account and process, and ends them when they must end.
import type { Clock } from "../base/clock.ts";
import { GatewayError } from "../base/errors.ts";
import { type LongConnectionKind, longConnectionPollMs, longLived } from "../base/long-lived.ts";
import type { Principal } from "../domain/principal.ts";

export interface LongConnection {
  readonly kind: LongConnectionKind;
  readonly principal: Principal;
  /** Absent if the connection checks its own credential and is only counted here. */
  readonly watch?: ConnectionWatch;
}

/** The functions by which an open connection is checked and ended. */
export interface ConnectionWatch {
  /** Resolves if the credential still permits the connection; throws or rejects otherwise. */
  holds(): unknown;
  /** Reports whether a silent connection is busy, for example with an answer. Default: never. */
  isBusy?(): boolean;
  /** Called once when the connection must end. `error` is for its client. */
  end(reason: LongConnectionEnd, error: GatewayError): void;
}

export type LongConnectionEnd = "credential" | "idle" | "age";

export interface OpenLongConnection {
  /** Call when the client has sent something. */
  touch(): void;
  /** Releases the connection's slot. Further calls do nothing. */
  release(): void;
}

interface Entry extends LongConnection {
  readonly limitId: string;
  readonly openedMs: number;
  usedMs: number;
  isAsking: boolean;
}

/** Codes of errors by which a credential has ended or no longer permits the connection. */
const endings: ReadonlySet<string> = new Set([
  ...["invalid_api_key", "token_expired", "insufficient_scope"],
  ...["model_not_found", "permission_denied"],
]);

export interface LongConnectionsOptions {
  clock: Pick<Clock, "monotonicMs" | "nowSeconds">;
  /** Maximum connections of all kinds in this process. */
  connectionLimit(): number;
  /** Milliseconds between two checks of all connections. */
  pollMs?: number;
}

export class LongConnections {
  readonly #options: LongConnectionsOptions;
  readonly #entries = new Set<Entry>();
  readonly #byKey = new Map<string, number>();
  readonly #byAccount = new Map<string, number>();
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(options: LongConnectionsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#entries.size;
  }

  /**
   * Registers a connection. Throws `rate_limit_exceeded` if the key or account has its maximum, `service_unavailable`
   * if the process has.
   */
  open(connection: LongConnection): OpenLongConnection {
    const { account, keys } = connection.principal;
    const [{ limitId }] = keys;
    const limit = this.#options.connectionLimit();
    const { key, account: ofAccount, total } = longLived[connection.kind].bounds;
    requireRoom(this.#byKey.get(limitId), partOf(limit, key.part), "This key");
    requireRoom(this.#byAccount.get(account.id), partOf(limit, ofAccount.part), "This account");
    if (this.#entries.size >= partOf(limit, total.part)) throw full();
    const nowMs = this.#options.clock.monotonicMs();
    const entry: Entry = { ...connection, limitId, openedMs: nowMs, usedMs: nowMs, isAsking: false };
    this.#entries.add(entry);
    count(this.#byKey, limitId, 1);
    count(this.#byAccount, account.id, 1);
    this.#timer ??= setInterval(() => this.check(), this.#options.pollMs ?? longConnectionPollMs);
    this.#timer.unref();
    return {
      touch: () => {
        entry.usedMs = this.#options.clock.monotonicMs();
      },
      release: () => this.#release(entry),
    };
  }

  #release(entry: Entry): void {
    if (!this.#entries.delete(entry)) return;
    count(this.#byKey, entry.limitId, -1);
    count(this.#byAccount, entry.principal.account.id, -1);
    if (this.#entries.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Checks all connections now, as after a suspension. */
  check(): void {
    const nowMs = this.#options.clock.monotonicMs();
    for (const entry of this.#entries) {
      if (!entry.watch) continue;
      const { idleMs, maxMs } = longLived[entry.kind];
      if (entry.watch.isBusy?.()) entry.usedMs = nowMs;
      if (maxMs !== undefined && nowMs - entry.openedMs >= maxMs) this.#end(entry, "age", tooOld(maxMs));
      else if (idleMs !== undefined && nowMs - entry.usedMs >= idleMs) this.#end(entry, "idle", tooSilent(idleMs));
      else void this.#ask(entry, entry.watch);
    }
  }

  /** Checks one connection. Never rejects. */
  async #ask(entry: Entry, watch: ConnectionWatch): Promise<void> {
    if (entry.isAsking) return;
    entry.isAsking = true;
    try {
      const { tokenExpiresAt = Number.POSITIVE_INFINITY } = entry.principal;
      if (tokenExpiresAt <= this.#options.clock.nowSeconds())
        throw new GatewayError("token_expired", "Token has expired");
      await watch.holds();
    } catch (thrown) {
      // An error of the store does not mean that the credential has ended.
      if (!(thrown instanceof GatewayError) || !endings.has(thrown.code)) return;
      // If the token expires during an answer, the answer continues to its end, as over HTTP.
      if (thrown.code === "token_expired" && watch.isBusy?.()) return;
      this.#end(entry, "credential", thrown);
    } finally {
      entry.isAsking = false;
    }
  }

  #end(entry: Entry, reason: LongConnectionEnd, error: GatewayError): void {
    if (!this.#entries.has(entry)) return;
    this.#release(entry);
    entry.watch?.end(reason, error);
  }
}

function partOf(limit: number, part: number): number {
  return Math.max(1, Math.floor(limit * part));
}

function requireRoom(open: number | undefined, most: number, whose: string): void {
  if (open === undefined || open < most) return;
  throw new GatewayError(
    "rate_limit_exceeded",
    `${whose} has ${most === 1 ? "1 long-lived connection" : `${most} long-lived connections`} open, the most that it may have at the same time. Close one of them first.`,
    { retryAfterSeconds: 10 },
  );
}

function full(): GatewayError {
  return new GatewayError(
    "service_unavailable",
    "The server has as many long-lived connections open as it takes. Retry shortly, or send the request over HTTP.",
    { retryAfterSeconds: 10 },
  );
}

function count(counts: Map<string, number>, name: string, change: 1 | -1): void {
  const now = (counts.get(name) ?? 0) + change;
  if (now === 0) counts.delete(name);
  else counts.set(name, now);
}

function tooOld(maxMs: number): GatewayError {
  return new GatewayError(
    "invalid_request",
    `The connection is ${minutes(maxMs)} old, the most that it may be. Open another one.`,
  );
}

function tooSilent(idleMs: number): GatewayError {
  return new GatewayError("invalid_request", `No message came for ${minutes(idleMs)}. Open another connection.`);
}

function minutes(ms: number): string {
  const whole = Math.round(ms / 60_000);
  return whole === 1 ? "1 minute" : `${whole} minutes`;
}
