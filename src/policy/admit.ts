// Asks the limits for a request's admission: works out how much to set aside for it.
import { type Clock, systemClock } from "../base/clock.ts";
import { rateLimitRefusal } from "../domain/limits/limit-refusal.ts";
import type {
  Admission,
  Granted,
  Lease,
  LimitSet,
  LimitStatus,
  LimitStore,
  Quota,
  Reservation,
  StopReservation,
} from "../domain/limits/limits.ts";
import type { Model } from "../domain/models/model.ts";
import type { Price } from "../domain/models/price.ts";
import type { Principal } from "../domain/principal.ts";
import type { TokenUsage } from "../domain/usage/usage.ts";
import type { UsageUnits } from "../domain/usage/usage-parts.ts";
import { blockTokens } from "./answer-stop.ts";
import { LearnedCache } from "./learned-cache.ts";
import type { LearnedLengths } from "./learned-lengths.ts";
import { maxNanoUsdOf } from "./price.ts";

export interface RequestSize {
  model: Pick<Model, "id" | "context" | "price">;
  /** Estimated from the text of the request. */
  promptTokens: number;
  /** For each generation, as the request says; undefined where it says nothing; 0 where nothing is generated. */
  maxCompletionTokens: number | undefined;
  /** True if model servers hold an answer to that limit; left out: they do. */
  limitHolds?: boolean;
  /** Generations side by side. */
  width: number;
  /** Whether a limit of its tokens could end the answer; left out: it could. */
  isLimitable?: boolean;
  /** What it is counted under. */
  tags?: readonly string[] | undefined;
  /** The one on the ledger. */
  requestId?: string;
  /** Whether the answer is streamed: then a quota may end it as it goes; else it is set aside as a whole. */
  stream?: boolean;
  /** What else its cost depends on; undefined: on nothing. */
  asked?: AskedOf | undefined;
}

export interface AskedOf {
  /** Whether the prompt has images, audio or files. */
  readonly hasMedia: boolean;
  /** The tiers, speeds and regions that it asks for, of which some are dearer; found out when it is called. */
  askedTiers(): readonly string[];
  /** Counted beside tokens; undefined where nothing is. */
  readonly units?: UsageUnits | undefined;
}

export type Admitted = Granted;

/** Told the state of a request's limits, once it is decided whether it is admitted. */
export interface LimitListener {
  onLimits(status: LimitStatus): void;
}

export interface AdmitterOptions {
  limits: Pick<LimitStore, "admit" | "peek">;
  lengths: LearnedLengths;
  /** For prices that depend on the time. The system's unless told otherwise. */
  clock?: Pick<Clock, "nowSeconds">;
}

export class Admitter {
  readonly #limits: AdmitterOptions["limits"];
  readonly #lengths: LearnedLengths;
  readonly #cached = new LearnedCache();
  readonly #clock: Pick<Clock, "nowSeconds">;

  constructor({ limits, lengths, clock = systemClock }: AdmitterOptions) {
    this.#limits = limits;
    this.#lengths = lengths;
    this.#clock = clock;
  }

  /**
   * Throws the refusal, or rejects with it. `listener` is told the state of the limits either way: it belongs into the
   * answer's headers. A promise only where a quota's usage must be read first.
   */
  admit(
    principal: Pick<Principal, "limits" | "account">,
    size: RequestSize,
    listener: LimitListener,
  ): Admitted | Promise<Admitted> {
    const reservation = this.#reservation(principal.account.id, size);
    if (mayBeStopped(principal.limits, size)) reservation.stop = this.#stop(size);
    const admission = this.#limits.admit(principal.limits, reservation);
    return admission instanceof Promise ? whenAdmitted(admission, listener) : admitted(admission, listener);
  }

  /**
   * Sets aside what `fallback` may cost more than the model that the request was admitted for. Undefined where that is nothing.
   * Throws the refusal of a quota, or rejects with it. The lease is to be settled with nothing once the request has ended.
   */
  admitDearer(
    { account, limits }: Pick<Principal, "limits" | "account">,
    size: RequestSize,
    fallback: RequestSize["model"],
  ): Lease | undefined | Promise<Lease> {
    const before = this.#reservation(account.id, size);
    const now = this.#reservation(account.id, { ...size, model: { ...fallback, id: size.model.id } });
    const nanoUsd = now.nanoUsd - before.nanoUsd;
    if (nanoUsd <= 0) return undefined;
    const { tags } = before;
    const minNanoUsd = Math.max(0, now.minNanoUsd - before.minNanoUsd);
    const more = { tokens: 0, minTokens: 0, nanoUsd, minNanoUsd, model: size.model.id, tags };
    const admission = this.#limits.admit(spendOnly(limits, mayBeStopped(limits, size)), more);
    return admission instanceof Promise ? admission.then(leaseOf) : leaseOf(admission);
  }

  /**
   * Throws the refusal, or rejects with it, where the requests of `principal` are used up, whatever the next one asks for;
   * counts nothing. A promise only where another process has to be asked.
   */
  refuseSpent({ limits }: Pick<Principal, "limits">, listener: LimitListener): void | Promise<void> {
    const status = this.#limits.peek(limits);
    if (status instanceof Promise) return status.then((peeked) => throwIfSpent(limits, peeked, listener));
    throwIfSpent(limits, status, listener);
  }

  /** An answer was paid for: so much of its prompt had been read from a cache. */
  learnCached(accountId: string, { id, price }: Pick<Model, "id" | "price">, usage: TokenUsage): void {
    if (price?.cachedInput === undefined) return;
    this.#cached.learn(accountId, id, usage.promptTokens, usage.parts?.cachedTokens ?? 0);
  }

  /** An answer came to its own end; `completionTokens` is the mean length of its generations. */
  learn(model: Pick<Model, "id">, completionTokens: number): void {
    this.#lengths.learn(model.id, completionTokens);
  }

  /**
   * A request that says how long its answer may be is held to that: nothing is overrun but by what its prompt has beyond
   * the estimate, and by searches. One that does not gets what is usual, or the rest where less is left, as
   * long as that covers the prompt and one token for each generation: a small limit must not refuse what it could serve.
   *
   * Money is set aside at the dearest rates that may apply, and as if nothing were cached, or many requests at a time could all be wrong together; but what is likely
   * to be cheaper is not refused, and has all that is left set aside.
   */
  #reservation(accountId: string, size: RequestSize): Reservation {
    const { model, promptTokens, maxCompletionTokens, width, tags, requestId, limitHolds = true } = size;
    const most = roomForAnswer(model.context, promptTokens);
    const usual = limitHolds && maxCompletionTokens !== undefined ? 0 : this.#lengths.estimate(model.id);
    const wanted = width * Math.min(Math.max(maxCompletionTokens ?? 0, usual), most);
    const least = Math.min(wanted, width * (maxCompletionTokens ?? 1));
    const nanoUsd = this.#nanoUsd(size, wanted, 0);
    const cached = nanoUsd === 0 ? 0 : this.#likelyCached(accountId, model, promptTokens);
    const isSame = cached === 0 && least === wanted;
    const minNanoUsd = isSame ? nanoUsd : Math.min(nanoUsd, this.#nanoUsd(size, least, cached));
    return {
      tokens: promptTokens + wanted,
      nanoUsd,
      minTokens: promptTokens + least,
      minNanoUsd,
      model: model.id,
      tags,
      requestId,
    };
  }

  /**
   * The part of quotas that end an answer. As much as one token for each generation needs will do, with nothing of the prompt cached, as
   * it is ended by what is known then. A stream asks for more as it goes; of a whole answer all that there may be is set
   * aside, and it is held to that.
   */
  #stop(size: RequestSize): StopReservation {
    const { model, promptTokens, width, limitHolds = true, stream: grows = false } = size;
    const maxCompletionTokens = limitHolds ? size.maxCompletionTokens : undefined;
    const most = roomForAnswer(model.context, promptTokens);
    const unsaid = most === Number.POSITIVE_INFINITY ? defaultReservedTokens : most;
    const whole = width * Math.min(maxCompletionTokens ?? unsaid, most);
    const wanted = grows ? Math.min(whole, width + blockTokens) : whole;
    return {
      tokens: promptTokens + wanted,
      nanoUsd: this.#nanoUsd(size, wanted, 0),
      minTokens: promptTokens + Math.min(width, wanted),
      minNanoUsd: this.#nanoUsd(size, Math.min(width, wanted), 0),
      grows,
    };
  }

  #likelyCached(accountId: string, { id, price }: RequestSize["model"], promptTokens: number): number {
    return price?.cachedInput === undefined ? 0 : this.#cached.estimate(accountId, id, promptTokens);
  }

  #nanoUsd(
    { model: { price }, promptTokens, asked }: RequestSize,
    completionTokens: number,
    cachedTokens: number,
  ): number {
    if (!price) return 0;
    const tiers = asked && hasTiers(price) ? asked.askedTiers() : noTiers;
    const size = { promptTokens, completionTokens, cachedTokens, hasMedia: asked?.hasMedia ?? false };
    const request = { ...size, asked: tiers, units: asked?.units };
    return maxNanoUsdOf(request, price, this.#clock.nowSeconds());
  }
}

/** Tokens of a whole answer where neither the request nor a context says how long it may be: all servers know as many. */
export const defaultReservedTokens = 4_096;

/** Whether a quota may end the answer where it is spent; which of them count it is for the store to say. */
function mayBeStopped({ windows }: LimitSet, { maxCompletionTokens, isLimitable }: RequestSize): boolean {
  return (
    windows !== undefined &&
    isLimitable !== false &&
    maxCompletionTokens !== 0 &&
    windows.some(({ stops }) => stops !== undefined)
  );
}

/** The quotas in USD alone. `stops`: those that end an answer have money set aside as it goes, at the price of its model. */
function spendOnly({ quotas, windows }: LimitSet, stops: boolean): LimitSet {
  const spend = (all: readonly Quota[]) =>
    all.flatMap((quota) => {
      if (quota.nanoUsd === null || (stops && quota.stops)) return [];
      return [{ ...quota, tokens: null, requests: null, counted: undefined }];
    });
  return { requests: [], tokens: [], quotas: spend(quotas), windows: windows && spend(windows) };
}

function leaseOf(admission: Admission): Lease {
  if ("refusal" in admission) throw admission.refusal;
  return admission.lease;
}

const noTiers: readonly string[] = [];

function hasTiers({ variants }: Price): boolean {
  return variants?.some(({ served }) => served !== undefined) ?? false;
}

function throwIfSpent(limits: LimitSet, status: LimitStatus, listener: LimitListener): void {
  const { requests } = status;
  if (!requests || requests.remaining >= 1) return;
  const rule = limits.requests.find(({ limit }) => limit === requests.limit);
  if (!rule) return;
  listener.onLimits(status);
  const msOfOthers = ((rule.limit - 1) * rule.windowSeconds * 1000) / rule.limit;
  throw rateLimitRefusal("requests", rule, 1, Math.max(0, requests.resetMs - msOfOthers));
}

async function whenAdmitted(admission: Promise<Admission>, listener: LimitListener): Promise<Admitted> {
  return admitted(await admission, listener);
}

function admitted(admission: Admission, listener: LimitListener): Admitted {
  listener.onLimits(admission.status);
  if ("refusal" in admission) throw admission.refusal;
  return admission;
}

/** Tokens that fit the model's context behind the prompt. */
export function roomForAnswer(context: number | undefined, promptTokens: number): number {
  if (context === undefined) return Number.POSITIVE_INFINITY;
  // A prompt longer than the context is several of them, or an estimate that is off: the model will tell.
  return promptTokens < context ? context - promptTokens : context;
}
