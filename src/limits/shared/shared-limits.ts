// Rate limits and quotas that replicas share through Redis or Valkey. A Lua script decides about all limits of a
// request atomically, by the server's clock.

import type { Clock } from "../../base/clock.ts";
import { GatewayError } from "../../base/errors.ts";
import { IndexedSet } from "../../base/indexed-set.ts";
import type { Log } from "../../base/log.ts";
import { unreadUsageRefusal } from "../../domain/limits/limit-refusal.ts";
import type {
  Admission,
  Granted,
  LimitSet,
  LimitStatus,
  LimitStore,
  Quota,
  QuotaUse,
  Reservation,
  StopReservation,
  WindowUse,
} from "../../domain/limits/limits.ts";
import type { Ledger, UsageTotals } from "../../domain/usage/usage.ts";
import {
  type AnsweredQuota,
  bucketsIn,
  growHeadSize,
  headSize,
  quotaAt,
  quotaSize,
  quotasIn,
  refusalOf,
  serverMs,
  verdicts,
  type WindowTime,
} from "../limit-answer.ts";
import { statusOf } from "../limit-decision.ts";
import {
  amountsOf,
  bucketKey,
  figuresOf,
  isRolling,
  type LimitPlan,
  quotaArguments,
  quotaKey,
  quotaKeys,
  rollingCounterKey,
  stopArguments,
} from "../limit-plan.ts";
import { LimitPlans } from "../limit-plans.ts";
import { LimitShare } from "../limit-share.ts";
import { readInTime } from "../read-in-time.ts";
import { rollingSpan } from "../rolling-span.ts";
import { SeenLimits } from "../seen-limits.ts";
import { LimitsLink, type ServerTime } from "./limits-link.ts";
import { OutageUse } from "./outage-use.ts";
import { SharedLease, type SharedLeaseFacts, type SharedLeaseListener } from "./shared-lease.ts";
import { type Growing, type Grown, SharedStop } from "./shared-stop.ts";
import { UnsentQuotas } from "./unsent-quotas.ts";

export interface SharedLimitsOptions {
  /** URL of the server, with its password. Must never be shown. */
  url: string;
  clock: Clock;
  ledger: Pick<Ledger, "readTotals">;
  log: Log;
  /** Directory of the file that lists quotas whose usage the server may lack. It must exist. */
  directory: string;
  /** Prefix of all Redis keys. Default: `headrace:`. */
  prefix?: string;
  /** Returns the number of replicas, for a start while the store is unreachable. */
  countReplicas?: () => number;
  /** Milliseconds after which a command without an answer fails. */
  deadlineMs?: number;
  /** Milliseconds between two connection attempts. */
  retryMs?: number;
  /** Replaces the server's clock in tests. */
  time?: ServerTime;
}

export type SharedLimitsState =
  | { status: "ok"; replicas: number }
  /** The store is unreachable, and each replica admits its share alone. `since` is in Unix seconds. */
  | { status: "degraded"; since: number; reason: string; replicas: number };

/** Maximum attempts of an operation. A server that loses its data again and again counts as unreachable. */
const maxAttempts = 4;
/** Milliseconds until usage that another replica settled is in the ledger. The Lua scripts use the same value. */
const writtenMs = 400;

/** Usage of a quota from the ledger. `readFrom` is the server's time in microseconds when reading began. */
interface LoadedUse extends QuotaUse {
  readFrom: number;
}

interface Outage {
  share: LimitShare;
  replicas: number;
  since: number;
  used: OutageUse;
}

export class SharedLimits implements LimitStore {
  readonly #options: SharedLimitsOptions;
  readonly #prefix: string;
  readonly #link: LimitsLink;
  readonly #plans: LimitPlans;
  readonly #leases = new IndexedSet<SharedLease>();
  readonly #leaseListener: SharedLeaseListener = {
    extended: (lease) => {
      if (!this.#outage && lease.plan.holds) this.#send("extend", lease);
    },
    settled: (lease, tokens, nanoUsd) => this.#settled(lease, tokens, nanoUsd),
  };
  readonly #reading = new Map<string, Promise<void>>();
  readonly #seen: SeenLimits;
  readonly #unsentQuotas: UnsentQuotas;
  #outage: Outage | undefined;

  /** Resolves after the first connection attempt. If it fails, limits apply without the server, and attempts go on. */
  static async open(options: SharedLimitsOptions): Promise<SharedLimits> {
    const limits = new SharedLimits(options);
    await limits.#link.start();
    return limits;
  }

  private constructor(options: SharedLimitsOptions) {
    const { clock, log, url, time, deadlineMs, retryMs, directory, prefix = "headrace:" } = options;
    this.#options = options;
    this.#prefix = prefix;
    this.#plans = new LimitPlans(prefix);
    this.#seen = new SeenLimits(clock);
    this.#unsentQuotas = new UnsentQuotas(directory, quotaKeys(prefix), log, clock);
    this.#link = new LimitsLink({
      url,
      prefix,
      clock,
      log,
      time,
      deadlineMs,
      retryMs,
      onMet: ({ isEmptied, doubted }) => this.#met(isEmptied, doubted),
      onAway: () => this.#away(),
      openLeases: () =>
        new Set([...this.#leases].flatMap(({ number, stop }) => (stop ? [number, stop.number] : [number]))),
    });
    this.#away();
    this.#forget([...this.#unsentQuotas.keys]);
  }

  state(): SharedLimitsState {
    const outage = this.#outage;
    if (!outage) return { status: "ok", replicas: this.#link.live ?? 1 };
    return { status: "degraded", since: outage.since, reason: this.#link.reason, replicas: outage.replicas };
  }

  /** Sends this replica's heartbeat and drops reservations of dead replicas. The regular timer does the same. */
  beat(): Promise<void> {
    return this.#link.beat();
  }

  /**
   * Closes the connection. Resolves to whether the server has all usage. If not, the next process with the same
   * directory makes the affected quotas load again.
   */
  async close(): Promise<boolean> {
    await this.#link.close();
    return this.#unsentQuotas.keys.size === 0;
  }

  admit(limits: LimitSet, reservation: Reservation): Admission | Promise<Admission> {
    return this.#outage ? this.#admitAlone(this.#outage, limits, reservation) : this.#admit(limits, reservation);
  }

  peek(limits: LimitSet): LimitStatus | Promise<LimitStatus> {
    return this.#outage ? this.#outage.share.peek(limits) : this.#peek(limits);
  }

  async used(quota: Quota): Promise<UsageTotals> {
    const { tokens, nanoUsd } = await this.usedInWindow(quota);
    return { tokens, nanoUsd };
  }

  async usedInWindow(quota: Quota): Promise<WindowUse> {
    for (let attempt = 1; attempt <= maxAttempts; attempt++) {
      if (this.#outage) return this.#outage.share.usedInWindow(quota);
      const time = this.#link.windowTime();
      const key = quotaKey(this.#prefix, quota, time.now);
      const answer = await this.#ask([key], "peek", noReservation, ["0", "0", "1", ...amountsOf(quota)]);
      if (!answer) continue;
      const figures = quotaAt(answer, headSize, quota, time);
      const { usedRequests: requests, usedTokens: tokens, usedNanoUsd: nanoUsd, period, isRead } = figures;
      if (isRead) return { requests, tokens, nanoUsd, period };
      await this.#read(quota, figures);
    }
    throw unreadUsageRefusal(new Error("the shared store forgets it"));
  }

  /** Makes quotas load their usage from the ledger again, because the shared store lacks some of it. */
  forgetQuotas(quotas: Iterable<Quota>): void {
    const now = this.#link.nowSeconds();
    this.#forget(Array.from(quotas, (quota) => quotaKey(this.#prefix, quota, now)));
  }

  #forget(keys: readonly string[]): void {
    this.#unsentQuotas.add(keys);
    for (const key of keys) this.#link.operations.add("forget", key);
    this.#clearOnceSent();
  }

  #clearOnceSent(): void {
    this.#link.operations.onceDone(() => {
      if (!this.#outage) this.#unsentQuotas.clear();
    });
  }

  async #admit(limits: LimitSet, reservation: Reservation): Promise<Admission> {
    for (let attempt = 1; attempt <= maxAttempts; attempt++) {
      if (this.#outage) return this.#admitAlone(this.#outage, limits, reservation);
      const time = this.#link.windowTime();
      const plan = this.#plans.of(limits, reservation, time.now);
      const number = this.#link.newLease();
      const stopNumber = reservation.stop && plan.stops.length > 0 ? this.#link.newLease() : undefined;
      const answer = await this.#ask(
        plan.keys,
        plan.holds ? String(number) : "",
        reservation,
        plan.figures,
        stopNumber,
      );
      if (!answer) continue;
      const status = this.#take(plan, limits, answer);
      if (answer[0] === verdicts.refused)
        return { refusal: refusalOf(plan, limits, reservation, answer, time), status };
      if (answer[0] === verdicts.unread) {
        try {
          await this.#readMissing(plan, quotasIn(plan, answer, time));
        } catch (error) {
          if (error instanceof GatewayError) return { refusal: error, status };
          throw error;
        }
        continue;
      }
      const [, , tokens = 0, nanoUsd = 0] = answer;
      const keys = plan.rolls ? this.#keysIn(plan, quotasIn(plan, answer, time)) : plan.quotaKeys;
      const stop =
        stopNumber === undefined ? undefined : this.#stopOf(stopNumber, plan, keys, reservation, answer, time);
      const lease = this.#lease({ number, plan, quotaKeys: keys, tokens, nanoUsd, own: undefined, stop });
      return { lease, reservedTokens: tokens, status, stop };
    }
    return { refusal: unreadUsageRefusal(new Error("the shared store forgets it")), status: await this.peek(limits) };
  }

  #admitAlone(outage: Outage, limits: LimitSet, reservation: Reservation): Admission | Promise<Admission> {
    const plan = this.#plans.of(limits, reservation, this.#link.nowSeconds());
    const wrapped = (admission: Admission): Admission => {
      if ("refusal" in admission) return admission;
      const { lease: own, reservedTokens, status } = admission;
      const { quotaKeys: keys } = plan;
      const amounts = { tokens: reservedTokens, nanoUsd: reservation.nanoUsd };
      const stop = admission.stop && this.#stopAlone(admission, plan, reservation);
      const lease = this.#lease({ number: this.#link.newLease(), plan, quotaKeys: keys, ...amounts, own, stop });
      return { lease, reservedTokens, status, stop };
    };
    const admission = outage.share.admit(limits, reservation);
    if (!(admission instanceof Promise)) return wrapped(admission);
    return admission.then((later) => {
      if (this.#outage === outage) return wrapped(later);
      // The server is reachable again and was not told of this admission, so ask the server.
      if ("lease" in later) later.lease.settle(0, 0);
      return this.#admit(limits, reservation);
    });
  }

  /** Returns the Redis keys of a lease's quotas. The keys of rolling quotas contain a name from the script's answer. */
  #keysIn({ quotas, quotaKeys: keys, limited }: LimitPlan, answered: readonly AnsweredQuota[]): string[] {
    const names = new Map(limited.map((index, i) => [index, answered[i]?.name ?? 0]));
    return keys.map((key, index) => {
      const quota = quotas[index] as Quota;
      return isRolling(quota) ? rollingCounterKey(this.#prefix, quota, names.get(index) ?? 0) : key;
    });
  }

  #lease(facts: SharedLeaseFacts): SharedLease {
    const lease = new SharedLease(facts, this.#leaseListener);
    if (facts.plan.holds) this.#leases.add(lease);
    return lease;
  }

  #settled(lease: SharedLease, tokens: number, nanoUsd: number): void {
    this.#leases.delete(lease);
    const { plan, quotaKeys: keys, own } = lease;
    const outage = this.#outage;
    if (!outage) {
      if (keys.length > 0 || plan.holds) this.#send("settle", lease, tokens, nanoUsd);
      if (lease.stop) this.#sendStop("release", lease.stop);
      return;
    }
    // Record the keys before the request's record can be in the database.
    this.#unsentQuotas.add(keys);
    if (!own && plan.holds) this.#send("release", lease, tokens, nanoUsd);
    if (lease.stop) this.#sendStop("release", lease.stop);
    const nowMs = this.#options.clock.monotonicMs();
    for (const key of keys) outage.used.add(key, nowMs, { requests: 1, tokens, nanoUsd });
  }

  #send(what: "extend" | "settle" | "release", lease: SharedLease, tokens = lease.tokens, nanoUsd = lease.nanoUsd) {
    const { number, plan, quotaKeys: keys, stop } = lease;
    // In quotas that can stop the answer, a separate lease has the reservation, but the usage counts there too.
    const later = [...plan.lease, ...quotaArguments(plan, keys, what === "extend" && stop !== undefined)];
    this.#link.operations.add(what, String(number), String(tokens), String(nanoUsd), ...later);
  }

  #sendStop(what: "extend" | "release", { number, keys, heldTokens, heldNanoUsd }: SharedStop): void {
    const later = ["0", String(keys.length), ...keys.flatMap((key) => [key, "1"])];
    this.#link.operations.add(what, String(number), amountText(heldTokens), amountText(heldNanoUsd), ...later);
  }

  #stopOf(
    number: number,
    { quotas, limited, stops }: LimitPlan,
    quotaKeys: readonly string[],
    reservation: Reservation,
    answer: readonly number[],
    time: WindowTime,
  ): SharedStop {
    const [, , , , tokens = 0, nanoUsd = 0] = answer;
    const buckets = (answer.length - headSize - quotaSize * limited.length) / 2;
    const figures = stops.map((index) => {
      const at = headSize + 2 * buckets + quotaSize * limited.indexOf(index);
      return quotaAt(answer, at, quotas[index] as Quota, time);
    });
    const grows = reservation.stop?.grows ?? false;
    const facts = { number, asked: reservation, tokens, nanoUsd, grows, figures };
    const keys = stops.map((index) => quotaKeys[index] as string);
    return new SharedStop({ ...facts, quotas: stops.map((index) => quotas[index] as Quota), keys }, this.#grow);
  }

  /** Returns the reservation in quotas that can stop the answer, made by this process without the server. */
  #stopAlone(
    { stop, lease, reservedTokens, status }: Granted,
    { quotas, quotaKeys, stops }: LimitPlan,
    reservation: Reservation,
  ): SharedStop {
    const held = (amount: number) => (amount === Number.POSITIVE_INFINITY ? 0 : amount);
    const { tokens = 0, nanoUsd = 0 } = stop ?? {};
    const number = this.#link.newLease();
    const grows = reservation.stop?.grows ?? false;
    const amounts = { tokens: held(tokens), nanoUsd: held(nanoUsd), grows, most: stop };
    const facts = { number, asked: reservation, ...amounts };
    const some = stops.map((index) => quotas[index] as Quota);
    const keys = stops.map((index) => quotaKeys[index] as string);
    const made = new SharedStop({ ...facts, quotas: some, keys, figures: some.map(() => nothingUsed) }, this.#grow);
    made.own = { stop, lease, reservedTokens, status };
    return made;
  }

  readonly #grow: Growing = async (stop, tokens, nanoUsd) => {
    for (let attempt = 1; attempt <= maxAttempts; attempt++) {
      // The answer may have ended meanwhile, so nothing would release a new reservation.
      if (stop.isSettled) return undefined;
      if (this.#outage) return this.#growAlone(this.#outage, stop, tokens, nanoUsd);
      const time = this.#link.windowTime();
      const answer = await this.#askToGrow(stop, tokens, nanoUsd);
      if (!answer) continue;
      const figures = stop.quotas.map((quota, i) => quotaAt(answer, growHeadSize + quotaSize * i, quota, time));
      if (figures.every(({ isRead }) => isRead)) return { tokens: answer[2] ?? 0, nanoUsd: answer[3] ?? 0, figures };
      const unread = stop.quotas.filter((_, i) => !figures[i]?.isRead);
      await Promise.all(unread.map((quota) => this.usedInWindow(quota)));
    }
    return undefined;
  };

  async #askToGrow(stop: SharedStop, tokens: number, nanoUsd: number): Promise<number[] | undefined> {
    const { number, quotas, keys } = stop;
    const of = quotas.flatMap((quota, i) => stopArguments(quota, keys[i] as string));
    try {
      const amounts = [tokens, Math.ceil(nanoUsd)].map(amountText);
      const answer = await this.#link.grow([String(number), ...amounts, String(quotas.length), ...of]);
      if (answer[0] !== verdicts.stranger) return answer;
      await this.#link.meet();
    } catch (error) {
      if (!this.#outage) this.#link.giveUp(error instanceof Error ? error.message : "unknown");
    }
    return undefined;
  }

  /** Enlarges a reservation while the server is unreachable, within this replica's share of each quota. */
  async #growAlone({ share }: Outage, stop: SharedStop, tokens: number, nanoUsd: number): Promise<Grown | undefined> {
    let { own } = stop;
    if (!own) {
      const wanted = { tokens: 0, nanoUsd: 0, minTokens: 0, minNanoUsd: 0, grows: true };
      // The request is not counted twice, because quotas that can stop answers count no requests here.
      const admission = await share.admit(
        { requests: [], tokens: [], quotas: [], windows: stop.quotas },
        { ...stop.asked, ...wanted, stop: wanted },
      );
      if ("refusal" in admission) return undefined;
      if (stop.isSettled) {
        admission.lease.settle(0, 0);
        return undefined;
      }
      own = admission;
      stop.own = own;
    }
    const { stop: given } = own;
    if (!given) return undefined;
    const before = [given.tokens, given.nanoUsd] as const;
    await given.grow(tokens, nanoUsd);
    stop.tightest = given.tightest;
    const more = (now: number, was: number) => (now === Number.POSITIVE_INFINITY ? 0 : now - was);
    return { tokens: more(given.tokens, before[0]), nanoUsd: more(given.nanoUsd, before[1]), figures: [] };
  }

  async #peek(limits: LimitSet): Promise<LimitStatus> {
    for (let attempt = 1; attempt <= maxAttempts && !this.#outage; attempt++) {
      const plan = this.#plans.of(limits, noReservation, this.#link.nowSeconds());
      const answer = await this.#ask(plan.keys, "peek", noReservation, plan.figures);
      if (answer) return this.#take(plan, limits, answer);
    }
    return this.#outage ? this.#outage.share.peek(limits) : { requests: undefined, tokens: undefined };
  }

  /** Runs the script that admits. Returns undefined if there was no answer or the caller must try again. */
  async #ask(
    keys: readonly string[],
    lease: string,
    { tokens, nanoUsd, minTokens, minNanoUsd, stop }: Reservation,
    figures: readonly string[],
    stopNumber?: number,
  ): Promise<number[] | undefined> {
    try {
      const amounts = [tokens, nanoUsd, minTokens, minNanoUsd].map(amountText);
      const stopping = stopNumber === undefined || !stop ? noStop : [String(stopNumber), ...stopAmounts(stop)];
      const answer = await this.#link.admit(keys, lease, [...amounts, ...stopping, ...figures]);
      if (answer[0] !== verdicts.stranger) return answer;
      await this.#link.meet();
    } catch (error) {
      // The error message may quote the script's input, but never the address with the password.
      if (!this.#outage) this.#link.giveUp(error instanceof Error ? error.message : "unknown");
    }
    return undefined;
  }

  /** Remembers the state of each limit for an outage. Returns the state for the client. */
  #take(plan: LimitPlan, limits: LimitSet, answer: readonly number[]): LimitStatus {
    const { keys, limited } = plan;
    const buckets = keys.length - limited.length;
    for (let i = 0; i < buckets; i++) this.#seen.see(keys[i] as string, answer[headSize + 2 * i] ?? 0, 0, 0);
    for (const [i, quota] of quotasIn(plan, answer, this.#link.windowTime()).entries()) {
      if (!quota.isRead) continue;
      const { usedRequests, leases, usedTokens, heldTokens, usedNanoUsd, heldNanoUsd } = quota;
      const key = keys[buckets + i] as string;
      this.#seen.see(key, usedTokens + heldTokens, usedNanoUsd + heldNanoUsd, usedRequests + leases);
    }
    return statusOf(bucketsIn(limits, answer), serverMs(answer));
  }

  async #readMissing({ quotas, limited }: LimitPlan, answered: readonly AnsweredQuota[]): Promise<void> {
    await Promise.all(
      answered.map((figures, i) => {
        const quota = quotas[limited[i] ?? 0];
        return quota && !figures.isRead ? this.#read(quota, figures) : undefined;
      }),
    );
  }

  /**
   * Loads the usage of a quota into the server. Concurrent callers share one read. If several replicas load the usage,
   * the first load counts.
   */
  #read(quota: Quota, figures: AnsweredQuota): Promise<void> {
    const { now } = this.#link.windowTime();
    const key = quotaKey(this.#prefix, quota, now);
    let reading = this.#reading.get(key);
    if (!reading) {
      const load = () =>
        isRolling(quota) ? this.#loadRolling(quota, key, figures) : this.#loadPeriod(quota, key, figures);
      // If the server had dropped the quota, other replicas may have settled usage that only the ledger will have. Wait
      // until they have written it.
      const isElsewhere = figures.isForgotten && (this.#link.live ?? 1) > 1;
      const later = isElsewhere ? Bun.sleep(writtenMs).then(load) : load();
      reading = later.finally(() => this.#reading.delete(key));
      this.#reading.set(key, reading);
    }
    return readInTime(reading);
  }

  #loadPeriod(quota: Quota, key: string, { period }: AnsweredQuota): Promise<void> {
    const { start: since, end: until } = period ?? { start: 0, end: 0 };
    return this.#load(quota, { since, until }, (used) => this.#sendLoad(key, used));
  }

  /**
   * Loads the usage of a rolling quota. If the server does not know the start of the window, sends the start before the
   * usage.
   */
  #loadRolling(quota: Quota, key: string, { start, name, period }: AnsweredQuota): Promise<void> {
    const { now, aheadSeconds } = this.#link.windowTime();
    const { since, until } = rollingSpan(now, quota.window?.seconds ?? 0);
    if (start > 0) {
      const counter = rollingCounterKey(this.#prefix, quota, name);
      return this.#load(quota, { since: period?.start ?? since, until }, (used) => this.#sendLoad(counter, used));
    }
    return this.#load(quota, { since, until }, (used, firstAt) => {
      const from = firstAt === undefined ? 0 : firstAt - aheadSeconds;
      const { operations } = this.#link;
      if (!this.#outage) operations.add("begin", key, String(from), String(quota.window?.seconds));
      if (from !== 0) this.#sendLoad(rollingCounterKey(this.#prefix, quota, from * 1e6), used);
    });
  }

  #sendLoad(key: string, { tokens, nanoUsd, requests, readFrom }: LoadedUse): void {
    if (this.#outage) return;
    const { session, operations } = this.#link;
    operations.add("load", key, String(tokens), String(nanoUsd), session, String(requests), String(readFrom));
  }

  /**
   * Reads usage from the ledger and sends it to the server. The usage includes all settlements that were sent before
   * it, and none that are sent after it.
   */
  async #load(
    { owner, ownerId, environment, filter }: Quota,
    span: { since: number; until: number },
    add: (used: LoadedUse, firstAt: number | undefined) => void,
  ): Promise<void> {
    const { ledger } = this.#options;
    const asked = { type: owner, id: ownerId, environment, ...span, ...filter };
    let isRead = false;
    const readFrom = Math.floor(this.#link.nowMicros());
    try {
      await ledger.readTotals(asked, ({ firstAt, ...used }) => {
        add({ ...used, readFrom }, firstAt);
        isRead = true;
      });
    } catch (error) {
      throw unreadUsageRefusal(error);
    }
    if (!isRead) throw unreadUsageRefusal(new Error("the ledger gave no totals"));
    // Send the usage before the next request.
    this.#link.operations.flush();
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
        lastUsed: (quota) => this.#seen.used(quotaKey(this.#prefix, quota, this.#link.nowSeconds())),
      }),
      replicas,
      since: clock.nowSeconds(),
      used: new OutageUse(),
    };
    // The arguments of pending operations contain the Redis keys of their quotas.
    const before = quotaKeys(this.#prefix);
    this.#unsentQuotas.add(
      this.#link.operations.open.flatMap((operation) => operation.filter((arg) => arg.startsWith(before))),
    );
  }

  /** Ends an outage. Sends the server what was admitted and used during the outage, and the open reservations. */
  #met(isEmptied: boolean, doubted: readonly string[]): void {
    const { operations } = this.#link;
    const outage = this.#outage;
    this.#outage = undefined;
    if (doubted.length > 0) this.#forget(doubted);
    for (const lease of this.#leases) {
      lease.own = undefined;
      this.#send("extend", lease);
      if (!lease.stop) continue;
      lease.stop.own = undefined;
      this.#sendStop("extend", lease.stop);
    }
    if (!outage) return;
    for (const [key, slots] of outage.used) {
      const figures = slots.flatMap(({ endMs, tokens, nanoUsd, requests }) => [
        Math.round(this.#link.microsAt(endMs)),
        ...[tokens, nanoUsd, requests],
      ]);
      operations.add("use", key, ...figures.map(String));
    }
    for (const { kind, rule, count } of outage.share.charges(isEmptied)) {
      const isOfTokens = kind === "tokens" ? "1" : "0";
      operations.add("charge", bucketKey(this.#prefix, kind, rule.id), ...figuresOf(rule), String(count), isOfTokens);
    }
    this.#clearOnceSent();
  }
}

const noStop = ["", "0", "0", "0", "0", "0"];
const nothingUsed = {
  ...{ usedRequests: 0, usedTokens: 0, usedNanoUsd: 0, leases: 0, heldTokens: 0, heldNanoUsd: 0 },
  ...{ period: undefined, isRead: true },
};

function stopAmounts({ tokens, nanoUsd, minTokens, minNanoUsd, grows }: StopReservation): string[] {
  return [...[tokens, nanoUsd, minTokens, minNanoUsd].map(amountText), grows ? "1" : "0"];
}

const noReservation: Reservation = { tokens: 0, nanoUsd: 0, minTokens: 0, minNanoUsd: 0 };

/** Both Lua and JavaScript count exactly only up to this number. */
function amountText(amount: number): string {
  return String(Math.min(amount, Number.MAX_SAFE_INTEGER));
}
