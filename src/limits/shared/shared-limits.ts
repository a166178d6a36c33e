// Rate limits and quotas that replicas share by Valkey or Redis: one script decides over all of a request's, by the server's clock.
import { Bag } from "../../base/bag.ts";
import type { CalendarMonth } from "../../base/calendar-month.ts";
import type { Clock } from "../../base/clock.ts";
import { GatewayError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { unreadUsageRefusal } from "../../domain/limits/limit-refusal.ts";
import type { Admission, LimitSet, LimitStatus, LimitStore, Quota, Reservation } from "../../domain/limits/limits.ts";
import type { Ledger, UsageTotals } from "../../domain/usage/usage.ts";
import { bucketsIn, headSize, quotaAt, quotaSize, refusalOf, serverMs, verdicts } from "../limit-answer.ts";
import { statusOf } from "../limit-decision.ts";
import { amountsOf, bucketKey, figuresOf, type LimitPlan, planOf, quotaKey, quotaKeys } from "../limit-plan.ts";
import { LimitShare } from "../limit-share.ts";
import { readInTime } from "../read-in-time.ts";
import { SeenLimits } from "../seen-limits.ts";
import { LimitsLink, type ServerTime } from "./limits-link.ts";
import { SharedLease, type SharedLeaseListener } from "./shared-lease.ts";
import { UntoldQuotas } from "./untold-quotas.ts";

export interface SharedLimitsOptions {
  /** Has a password; never told to anybody. */
  url: string;
  clock: Clock;
  ledger: Pick<Ledger, "readTotals">;
  log: Log;
  /** The directory that keeps which quotas the server may not have been told all of; made by who opens it. */
  directory: string;
  /** The text before all keys. */
  prefix?: string;
  /** Number of replicas as far as anybody else knows: for a start while the store is away. */
  countReplicas?: () => number;
  /** Milliseconds that an answer may take. */
  deadlineMs?: number;
  /** Milliseconds between two tries to reach it. */
  retryMs?: number;
  /** The time in place of the server's, for a test. */
  time?: ServerTime;
}

export type SharedLimitsState =
  | { status: "ok"; replicas: number }
  /** Each replica admits its share by itself. Unix seconds. */
  | { status: "degraded"; since: number; reason: string; replicas: number };

/** A server that forgets between two questions, again and again, is none. */
const mostAttempts = 4;
interface Outage {
  share: LimitShare;
  replicas: number;
  since: number;
  sinceMicros: number;
  /** Usage by key of the quota. */
  used: Map<string, UsageTotals>;
}

export class SharedLimits implements LimitStore {
  readonly #options: SharedLimitsOptions;
  readonly #prefix: string;
  readonly #link: LimitsLink;
  readonly #plans = new WeakMap<LimitSet, LimitPlan>();
  readonly #leases = new Bag<SharedLease>();
  readonly #leaseListener: SharedLeaseListener = {
    extended: (lease) => {
      if (!this.#outage && lease.plan.holds) this.#tell("extend", lease);
    },
    settled: (lease, tokens, nanoUsd) => this.#settled(lease, tokens, nanoUsd),
  };
  readonly #reading = new Map<string, Promise<void>>();
  readonly #seen: SeenLimits;
  readonly #untold: UntoldQuotas;
  #outage: Outage | undefined;

  /** Resolves after the first try to reach the server; where that fails it goes on without, and keeps trying. */
  static async open(options: SharedLimitsOptions): Promise<SharedLimits> {
    const limits = new SharedLimits(options);
    await limits.#link.start();
    return limits;
  }

  private constructor(options: SharedLimitsOptions) {
    const { clock, log, url, time, deadlineMs, retryMs, directory, prefix = "headrace:" } = options;
    this.#options = options;
    this.#prefix = prefix;
    this.#seen = new SeenLimits(clock);
    this.#untold = new UntoldQuotas(directory, quotaKeys(prefix), log);
    this.#link = new LimitsLink({
      url,
      prefix,
      clock,
      log,
      time,
      deadlineMs,
      retryMs,
      onMet: ({ isEmptied }) => this.#met(isEmptied),
      onAway: () => this.#away(),
      openLeases: () => new Set([...this.#leases].map(({ number }) => number)),
    });
    this.#away();
    this.#forget([...this.#untold.keys]);
  }

  state(): SharedLimitsState {
    const outage = this.#outage;
    if (!outage) return { status: "ok", replicas: this.#link.live ?? 1 };
    return { status: "degraded", since: outage.since, reason: this.#link.reason, replicas: outage.replicas };
  }

  /** Says that this replica lives, drops what dead ones hold; both by itself every few seconds. */
  beat(): Promise<void> {
    return this.#link.beat();
  }

  /** Gives whether the server was told all of quotas; what it was not is told by the next who opens the same directory. */
  async close(): Promise<boolean> {
    await this.#link.close();
    return this.#untold.keys.size === 0;
  }

  admit(limits: LimitSet, reservation: Reservation): Admission | Promise<Admission> {
    return this.#outage ? this.#admitAlone(this.#outage, limits, reservation) : this.#admit(limits, reservation);
  }

  peek(limits: LimitSet): LimitStatus | Promise<LimitStatus> {
    return this.#outage ? this.#outage.share.peek(limits) : this.#peek(limits);
  }

  async used(quota: Quota): Promise<UsageTotals> {
    for (let attempt = 1; attempt <= mostAttempts; attempt++) {
      if (this.#outage) return this.#outage.share.used(quota);
      const month = this.#link.month();
      const key = quotaKey(this.#prefix, month, quota.id);
      const answer = await this.#ask([key], "peek", noReservation, ["0", "0", "1", ...amountsOf(quota)]);
      if (!answer) continue;
      const { isRead, usedTokens, usedNanoUsd } = quotaAt(answer, headSize, month);
      if (isRead) return { tokens: usedTokens, nanoUsd: usedNanoUsd };
      await this.#read(quota, month);
    }
    throw unreadUsageRefusal(new Error("the shared store forgets it"));
  }

  /**
   * Has the state of the quotas read from the ledger at their next use: it has usage now that the shared store was
   * never told of, as of a replica that died.
   */
  forgetQuotas(ids: Iterable<string>): void {
    const month = this.#link.month();
    this.#forget(Array.from(ids, (id) => quotaKey(this.#prefix, month, id)));
  }

  #forget(keys: readonly string[]): void {
    this.#untold.add(keys);
    for (const key of keys) this.#link.operations.add("forget", key);
    this.#clearOnceTold();
  }

  #clearOnceTold(): void {
    this.#link.operations.onceTold(() => {
      if (!this.#outage) this.#untold.clear();
    });
  }

  async #admit(limits: LimitSet, reservation: Reservation): Promise<Admission> {
    for (let attempt = 1; attempt <= mostAttempts; attempt++) {
      if (this.#outage) return this.#admitAlone(this.#outage, limits, reservation);
      const plan = this.#planOf(limits);
      const number = this.#link.newLease();
      const answer = await this.#ask(plan.keys, plan.holds ? String(number) : "", reservation, plan.figures);
      if (!answer) continue;
      const status = this.#take(plan, limits, answer);
      if (answer[0] === verdicts.refused) return { refusal: refusalOf(plan, limits, reservation, answer), status };
      if (answer[0] === verdicts.unread) {
        try {
          await this.#readMissing(plan, limits, answer);
        } catch (error) {
          if (error instanceof GatewayError) return { refusal: error, status };
          throw error;
        }
        continue;
      }
      const [, , tokens = 0, nanoUsd = 0] = answer;
      const lease = this.#lease({ number, plan, tokens, nanoUsd, own: undefined });
      return { lease, reservedTokens: tokens, status };
    }
    return { refusal: unreadUsageRefusal(new Error("the shared store forgets it")), status: await this.peek(limits) };
  }

  #admitAlone(outage: Outage, limits: LimitSet, reservation: Reservation): Admission | Promise<Admission> {
    const plan = this.#planOf(limits);
    const wrapped = (admission: Admission): Admission => {
      if ("refusal" in admission) return admission;
      const { lease: own, reservedTokens, status } = admission;
      const facts = { number: this.#link.newLease(), plan, tokens: reservedTokens, nanoUsd: reservation.nanoUsd, own };
      return { lease: this.#lease(facts), reservedTokens, status };
    };
    const admission = outage.share.admit(limits, reservation);
    if (!(admission instanceof Promise)) return wrapped(admission);
    return admission.then((later) => {
      if (this.#outage === outage) return wrapped(later);
      // While it waited for the ledger the server was told what this share had admitted: this was not among it.
      if ("lease" in later) later.lease.settle(0, 0);
      return this.#admit(limits, reservation);
    });
  }

  #lease(facts: Pick<SharedLease, "number" | "plan" | "tokens" | "nanoUsd" | "own">): SharedLease {
    const lease = new SharedLease(facts, this.#leaseListener);
    if (facts.plan.holds) this.#leases.add(lease);
    return lease;
  }

  #settled(lease: SharedLease, tokens: number, nanoUsd: number): void {
    this.#leases.delete(lease);
    const { plan, own } = lease;
    const outage = this.#outage;
    if (!outage) {
      if (plan.quotaKeys.length > 0 || plan.holds) this.#tell("settle", lease, tokens, nanoUsd);
      return;
    }
    // Noted before its record can be in the database.
    this.#untold.add(plan.quotaKeys);
    if (!own && plan.holds) this.#tell("release", lease, tokens, nanoUsd);
    for (const key of plan.quotaKeys) {
      const used = outage.used.get(key);
      if (used) {
        used.tokens += tokens;
        used.nanoUsd += nanoUsd;
      } else outage.used.set(key, { tokens, nanoUsd });
    }
  }

  #tell(what: "extend" | "settle" | "release", lease: SharedLease, tokens = lease.tokens, nanoUsd = lease.nanoUsd) {
    const { number, plan } = lease;
    this.#link.operations.add(what, String(number), String(tokens), String(nanoUsd), ...plan.lease);
  }

  async #peek(limits: LimitSet): Promise<LimitStatus> {
    for (let attempt = 1; attempt <= mostAttempts && !this.#outage; attempt++) {
      const plan = this.#planOf(limits);
      const answer = await this.#ask(plan.keys, "peek", noReservation, plan.figures);
      if (answer) return this.#take(plan, limits, answer);
    }
    return this.#outage ? this.#outage.share.peek(limits) : { requests: undefined, tokens: undefined };
  }

  /** Undefined where nobody answered, or the question has to be asked again. */
  async #ask(
    keys: readonly string[],
    lease: string,
    { tokens, nanoUsd, minTokens, minNanoUsd }: Reservation,
    figures: readonly string[],
  ): Promise<number[] | undefined> {
    try {
      const amounts = [tokens, nanoUsd, minTokens, minNanoUsd].map(amountText);
      const answer = await this.#link.admit(keys, lease, [...amounts, ...figures]);
      if (answer[0] !== verdicts.stranger) return answer;
      await this.#link.meet();
    } catch (error) {
      // The server's own words may be about what it was sent, never about how it is reached.
      if (!this.#outage) this.#link.giveUp(error instanceof Error ? error.message : "unknown");
    }
    return undefined;
  }

  /** Keeps in mind what the answer tells of each limit. */
  #take(plan: LimitPlan, limits: LimitSet, answer: readonly number[]): LimitStatus {
    const { keys, limited } = plan;
    const buckets = keys.length - limited.length;
    for (let i = 0; i < buckets; i++) this.#seen.see(keys[i] as string, answer[headSize + 2 * i] ?? 0, 0);
    for (let i = 0; i < limited.length; i++) {
      const quota = quotaAt(answer, headSize + 2 * buckets + quotaSize * i, plan.month);
      if (!quota.isRead) continue;
      const { usedTokens, heldTokens, usedNanoUsd, heldNanoUsd } = quota;
      this.#seen.see(keys[buckets + i] as string, usedTokens + heldTokens, usedNanoUsd + heldNanoUsd);
    }
    return statusOf(bucketsIn(limits, answer), serverMs(answer));
  }

  async #readMissing(plan: LimitPlan, limits: LimitSet, answer: readonly number[]): Promise<void> {
    const from = headSize + 2 * (plan.keys.length - plan.limited.length);
    await Promise.all(
      plan.limited.map((place, i) => {
        const quota = limits.quotas[place];
        if (!quota || quotaAt(answer, from + quotaSize * i, plan.month).isRead) return undefined;
        return this.#read(quota, plan.month);
      }),
    );
  }

  /** All who ask meanwhile share one reading. Of several replicas, the first one's figures hold. */
  #read(quota: Quota, month: CalendarMonth): Promise<void> {
    const key = quotaKey(this.#prefix, month, quota.id);
    let reading = this.#reading.get(key);
    if (!reading) {
      reading = this.#load(quota, key, month).finally(() => this.#reading.delete(key));
      this.#reading.set(key, reading);
    }
    return readInTime(reading);
  }

  async #load({ owner, ownerId, environment }: Quota, key: string, { start, end }: CalendarMonth): Promise<void> {
    const { ledger } = this.#options;
    let isRead = false;
    try {
      await ledger.readTotals({ type: owner, id: ownerId, environment, since: start, until: end }, (totals) => {
        // Loads are told in the order of settlements: those before are among these, those after are told after this.
        const { session, operations } = this.#link;
        if (!this.#outage) operations.add("load", key, String(totals.tokens), String(totals.nanoUsd), session);
        isRead = true;
      });
    } catch (error) {
      throw unreadUsageRefusal(error);
    }
    if (!isRead) throw unreadUsageRefusal(new Error("the ledger gave no totals"));
    // Ahead of the next question.
    this.#link.operations.flush();
  }

  #planOf(limits: LimitSet): LimitPlan {
    const month = this.#link.month();
    let plan = this.#plans.get(limits);
    if (plan?.month !== month) {
      plan = planOf(limits, month, this.#prefix);
      this.#plans.set(limits, plan);
    }
    return plan;
  }

  #away(): void {
    if (this.#outage) return;
    const { clock, ledger, countReplicas } = this.#options;
    const replicas = Math.max(1, this.#link.live ?? 1, countReplicas?.() ?? 1);
    this.#outage = {
      share: new LimitShare({
        clock,
        ledger,
        replicas,
        lastTaken: (kind, rule) => this.#seen.taken(bucketKey(this.#prefix, kind, rule.id), rule),
        lastUsed: (quota) => this.#seen.used(quotaKey(this.#prefix, this.#link.month(), quota.id)),
      }),
      replicas,
      since: clock.nowSeconds(),
      sinceMicros: this.#link.nowMicros(),
      used: new Map(),
    };
    // Each operation has the keys that it is about among its arguments.
    const before = quotaKeys(this.#prefix);
    this.#untold.add(this.#link.operations.open.flatMap((told) => told.filter((arg) => arg.startsWith(before))));
  }

  /** The server decides from here on. It is told first what was taken and used meanwhile, and what still runs. */
  #met(isEmptied: boolean): void {
    const { operations } = this.#link;
    const outage = this.#outage;
    this.#outage = undefined;
    for (const lease of this.#leases) {
      lease.own = undefined;
      this.#tell("extend", lease);
    }
    if (!outage) return;
    // One that was emptied reads all of it from the ledger.
    if (!isEmptied) {
      for (const [key, { tokens, nanoUsd }] of outage.used) {
        operations.add("use", key, String(tokens), String(nanoUsd), String(outage.sinceMicros));
      }
    }
    for (const { kind, rule, count } of outage.share.charges(isEmptied)) {
      const isOfTokens = kind === "tokens" ? "1" : "0";
      operations.add("charge", bucketKey(this.#prefix, kind, rule.id), ...figuresOf(rule), String(count), isOfTokens);
    }
    this.#clearOnceTold();
  }
}

const noReservation: Reservation = { tokens: 0, nanoUsd: 0, minTokens: 0, minNanoUsd: 0 };

/** Lua has the same numbers; above these neither is exact. */
function amountText(amount: number): string {
  return String(Math.min(amount, Number.MAX_SAFE_INTEGER));
}
