// While the shared store is unreachable, each replica admits only its share of every limit. The share starts from the
// last known state.

import type { Clock } from "../base/clock.ts";
import type { LimitKind } from "../domain/limits/limit-refusal.ts";
import type {
  Admission,
  LimitSet,
  LimitStatus,
  Quota,
  QuotaUse,
  RateLimit,
  Reservation,
  WindowUse,
} from "../domain/limits/limits.ts";
import { isCounted } from "../domain/limits/quota-filter.ts";
import type { Ledger, UsageTotals } from "../domain/usage/usage.ts";
import { isLimited } from "./limit-decision.ts";
import { MemoryLimits } from "./memory/memory-limits.ts";

export interface LimitShareOptions {
  clock: Clock;
  ledger: Pick<Ledger, "readTotals">;
  /** Number of replicas that share the limits, at least 1. */
  replicas: number;
  /**
   * Returns how much of a rate limit was used according to the store's last answer, minus the refill since then; 0 if
   * unknown.
   */
  lastTaken(kind: LimitKind, rule: RateLimit): number;
  /**
   * Returns the usage of a quota according to the store's last answer, including reservations; undefined if unknown.
   */
  lastUsed(quota: Quota): QuotaUse | undefined;
}

/** The amounts that this replica has admitted under a rate limit during the outage. */
export interface ShareCharge {
  kind: LimitKind;
  rule: RateLimit;
  count: number;
}

interface Touched {
  kind: LimitKind;
  rule: RateLimit;
  share: RateLimit;
  /** The amount that counted as used when this replica's share began, and the monotonic time of that. */
  begunWith: number;
  begunMs: number;
}

/** Milliseconds between two reads of a quota's usage. Usage by other replicas is visible only in the ledger. */
const rereadMs = 10_000;
/** Before a request is refused, usage that is older than this many milliseconds is read again. */
const refusableMs = 1_000;
/** Milliseconds that the first request under a quota waits for the ledger. Then the store's last answer is used. */
const patienceMs = 1_000;
/** Number of new limits after which limits without usage are dropped. */
const sweepEvery = 8_192;

/** The state of a quota as this replica knows it, and its share of it. */
interface QuotaShare {
  /** Monotonic milliseconds of the last attempt to read the usage. */
  readMs: number;
  reading: Promise<void> | undefined;
  /** The quota with this replica's own limits, which include earlier usage; undefined while the usage is unknown. */
  share: Quota | undefined;
  /** Start of the share's window in Unix seconds; undefined if no window has begun. */
  start: number | undefined;
}

export class LimitShare {
  readonly #options: LimitShareOptions;
  readonly #memory: MemoryLimits;
  /** Limit sets with this replica's own limits, by original set. Rebuilt after quotas were read. */
  #shares = new WeakMap<LimitSet, LimitSet>();
  readonly #touched: Readonly<Record<LimitKind, Map<string, Touched>>> = { requests: new Map(), tokens: new Map() };
  readonly #quotas = new Map<string, QuotaShare>();

  constructor(options: LimitShareOptions) {
    this.#options = options;
    this.#memory = new MemoryLimits(options);
  }

  /** Admits a request. Returns a promise only if the usage of a quota must be read first. */
  admit(limits: LimitSet, reservation: Reservation): Admission | Promise<Admission> {
    const reading = this.#readQuotas(limits, reservation);
    return reading ? reading.then(() => this.#admit(limits, reservation)) : this.#admit(limits, reservation);
  }

  #admit(limits: LimitSet, reservation: Reservation): Admission | Promise<Admission> {
    const admission = this.#decide(limits, reservation);
    if (admission instanceof Promise || !("refusal" in admission)) return admission;
    if (admission.refusal.code !== "insufficient_quota") return admission;
    // Other replicas may have used little, so read the usage again before the refusal.
    const reading = this.#readQuotas(limits, reservation, refusableMs);
    return reading ? reading.then(() => this.#decide(limits, reservation)) : admission;
  }

  #decide(limits: LimitSet, reservation: Reservation): Admission | Promise<Admission> {
    const share = this.#shareOf(limits);
    this.#touch("requests", limits.requests, share.requests);
    this.#touch("tokens", limits.tokens, share.tokens);
    const least = Math.min(...share.tokens.map(({ limit }) => limit));
    const fits = limits.tokens.every(({ limit }) => reservation.minTokens <= limit);
    if (reservation.minTokens <= least || !fits) return this.#memory.admit(share, reservation);
    // A request that exceeds this replica's share but not the limit is admitted once none of the share is used. The
    // tokens beyond the share are taken as debt.
    const admission = this.#memory.admit(share, { ...reservation, tokens: least, minTokens: least });
    return admission instanceof Promise
      ? admission.then((later) => withDebt(later, reservation))
      : withDebt(admission, reservation);
  }

  peek(limits: LimitSet): LimitStatus {
    return this.#memory.peek(this.#shareOf(limits));
  }

  used(quota: Quota): Promise<UsageTotals> {
    return this.#memory.used(quota);
  }

  usedInWindow(quota: Quota): Promise<WindowUse> {
    return this.#memory.usedInWindow(quota);
  }

  /**
   * Returns what this replica has admitted, for the shared store. With `all`, includes usage from before the outage,
   * because the store has lost its data.
   */
  charges(all: boolean): ShareCharge[] {
    const nowMs = this.#options.clock.monotonicMs();
    const charges: ShareCharge[] = [];
    for (const touched of [...this.#touched.requests.values(), ...this.#touched.tokens.values()]) {
      const { kind, rule, share, begunWith, begunMs } = touched;
      const begun = all ? 0 : Math.max(0, begunWith - (nowMs - begunMs) * perMsOf(share));
      // Since the share began, both amounts were refilled at the same rate, so their difference is what was admitted.
      const count = Math.round(this.#taken(touched) - begun);
      if (count > 0) charges.push({ kind, rule, count });
    }
    return charges;
  }

  #shareOf(limits: LimitSet): LimitSet {
    let share = this.#shares.get(limits);
    if (!share) {
      const shareOf = (rule: RateLimit) => ({
        ...rule,
        limit: Math.max(1, Math.floor(rule.limit / this.#options.replicas)),
      });
      const { requests, tokens, quotas, windows } = limits;
      const partOf = (quota: Quota) => this.#quotas.get(quota.id)?.share ?? quota;
      share = {
        ...{ requests: requests.map(shareOf), tokens: tokens.map(shareOf) },
        ...{ quotas: quotas.map(partOf), windows: windows?.map(partOf) },
      };
      this.#shares.set(limits, share);
    }
    return share;
  }

  #touch(kind: LimitKind, rules: readonly RateLimit[], shares: readonly RateLimit[]): void {
    const touched = this.#touched[kind];
    for (let i = 0; i < rules.length; i++) {
      const rule = rules[i];
      const share = shares[i];
      if (!rule || !share) continue;
      const known = touched.get(rule.id);
      if (known) {
        known.rule = rule;
        known.share = share;
        continue;
      }
      // When the share starts, the same fraction of it counts as used as was used of the whole limit.
      const begunWith = Math.ceil((this.#options.lastTaken(kind, rule) * share.limit) / rule.limit);
      if (begunWith > 0) {
        const past = { requests: [], tokens: [], secondsAgo: 0, count: begunWith, usedTokens: begunWith };
        this.#memory.replay([{ ...past, [kind]: [share] }]);
      }
      touched.set(rule.id, { kind, rule, share, begunWith, begunMs: this.#options.clock.monotonicMs() });
      if (touched.size % sweepEvery === 0) {
        for (const [id, one] of touched) if (this.#taken(one) === 0) touched.delete(id);
      }
    }
  }

  #taken({ kind, share }: Touched): number {
    const state = this.#memory.peek({ requests: [], tokens: [], quotas: [], [kind]: [share] })[kind];
    return (state?.resetMs ?? 0) * perMsOf(share);
  }

  /**
   * Reads the usage of quotas. Returns a promise if the usage of one is unknown or older than `olderMs`. Otherwise,
   * outdated usage is read in the background.
   */
  #readQuotas(
    { quotas, windows = [] }: LimitSet,
    reservation: Reservation,
    olderMs = Number.POSITIVE_INFINITY,
  ): Promise<unknown> | undefined {
    const nowMs = this.#options.clock.monotonicMs();
    const awaited: Promise<void>[] = [];
    for (const quota of windows.length === 0 ? quotas : [...quotas, ...windows]) {
      if (!isLimited(quota) || !isCounted(quota, reservation)) continue;
      const known = this.#quotas.get(quota.id);
      // The window has changed, so the share of the previous window is dropped.
      if (known?.share && quota.window && known.start !== this.#memory.startOf(quota)) {
        known.share = undefined;
        known.readMs = Number.NEGATIVE_INFINITY;
      }
      const ageMs = known ? nowMs - known.readMs : Number.POSITIVE_INFINITY;
      const isAwaited = known?.share === undefined || ageMs >= olderMs;
      if (known?.reading === undefined && ageMs < (isAwaited ? refusableMs : rereadMs)) continue;
      const reading = known?.reading ?? this.#read(quota, nowMs);
      if (isAwaited) awaited.push(reading);
    }
    return awaited.length > 0 ? Promise.all(awaited) : undefined;
  }

  #read(quota: Quota, nowMs: number): Promise<void> {
    const known = this.#quotas.get(quota.id) ?? {
      readMs: nowMs,
      reading: undefined,
      share: undefined,
      start: undefined,
    };
    this.#quotas.set(quota.id, known);
    known.readMs = nowMs;
    known.reading = this.#readUsage(quota, known).finally(() => {
      known.reading = undefined;
    });
    return known.reading;
  }

  /**
   * Reads the usage of a quota and computes this replica's share. If the ledger cannot be read, the last known usage
   * stays.
   */
  async #readUsage(quota: Quota, known: QuotaShare): Promise<void> {
    // Ignore the error: known figures stay.
    const read = this.#memory.reread(quota).catch(() => {});
    await (known.share ? read : Promise.race([read, Bun.sleep(patienceMs)]));
    // The store's last answer includes reservations that the ledger lacks.
    const seen = known.share ? undefined : this.#options.lastUsed(quota);
    if (seen) this.#memory.applyMinimum(quota, seen);
    const used = this.#memory.known(quota);
    if (!used) return;
    const { tokens, nanoUsd, requests = null } = quota;
    const { replicas } = this.#options;
    const part = (limit: number, taken: number) => taken + Math.ceil(Math.max(0, limit - taken) / replicas);
    known.share = {
      ...quota,
      tokens: tokens === null ? null : part(tokens, used.tokens),
      nanoUsd: nanoUsd === null ? null : part(nanoUsd, used.nanoUsd),
      requests: requests === null ? null : part(requests, used.requests),
    };
    known.start = this.#memory.startOf(quota);
    this.#shares = new WeakMap();
  }
}

function withDebt(admission: Admission, { minTokens, nanoUsd }: Reservation): Admission {
  if ("refusal" in admission) return admission;
  const { lease, status, stop } = admission;
  lease.extend(minTokens, nanoUsd);
  return { lease, reservedTokens: minTokens, status, stop };
}

function perMsOf({ limit, windowSeconds }: RateLimit): number {
  return limit / (windowSeconds * 1000);
}
