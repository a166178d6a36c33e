// Computes how much to reserve for a request, and asks the limits to admit the request.
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
import { EndUserLimits, type Limited } from "./end-user-limits.ts";
import { LearnedCache } from "./learned-cache.ts";
import type { LearnedLengths } from "./learned-lengths.ts";
import { maxNanoUsdOf } from "./price.ts";

export interface RequestSize {
  model: Pick<Model, "id" | "context" | "price">;
  /** Prompt tokens as estimated from the text of the request. */
  promptTokens: number;
  /** Token limit of each generation in the request; undefined if the request has none; 0 if nothing is generated. */
  maxCompletionTokens: number | undefined;
  /** True if model servers obey the token limit. Default: true. */
  limitHolds?: boolean;
  /** Number of parallel generations. */
  width: number;
  /** False if a token limit cannot end the answer. Default: true. */
  isLimitable?: boolean;
  /** Tags under which the request is counted. */
  tags?: readonly string[] | undefined;
  /** Id of the request in the ledger. */
  requestId?: string;
  /** True if the answer is streamed, so that a quota can end it midway. Other answers are reserved as a whole. */
  stream?: boolean;
  /** Further facts on which the cost depends; undefined if there are none. */
  asked?: AskedOf | undefined;
}

export interface AskedOf {
  /** True if the prompt has images, audio or files. */
  readonly hasMedia: boolean;
  /** Returns the tiers, speeds and regions that the request asks for, some of which cost more. */
  askedTiers(): readonly string[];
  /** Units that are counted in addition to tokens; undefined if there are none. */
  readonly units?: UsageUnits | undefined;
}

export type Admitted = Granted;

/** Receives the state of a request's limits after the decision about its admission. */
export interface LimitListener {
  onLimits(status: LimitStatus): void;
}

export interface AdmitterOptions {
  limits: Pick<LimitStore, "admit" | "peek">;
  lengths: LearnedLengths;
  /** The clock for prices that depend on the time. Default: the system's clock. */
  clock?: Pick<Clock, "nowSeconds">;
}

export class Admitter {
  readonly #limits: AdmitterOptions["limits"];
  readonly #lengths: LearnedLengths;
  readonly #cached = new LearnedCache();
  readonly #endUsers = new EndUserLimits();
  readonly #clock: Pick<Clock, "nowSeconds">;

  constructor({ limits, lengths, clock = systemClock }: AdmitterOptions) {
    this.#limits = limits;
    this.#lengths = lengths;
    this.#clock = clock;
  }

  /**
   * Admits a request. Throws, or rejects with, the refusal's error. `listener` gets the state of the limits for the
   * answer's headers, whether the request is admitted or refused. Returns a promise only if the usage of a quota must
   * be read first.
   */
  admit(principal: Limited, size: RequestSize, listener: LimitListener): Admitted | Promise<Admitted> {
    const limits = this.#endUsers.of(principal, size.tags);
    const reservation = this.#reservation(principal.account.id, size);
    if (mayBeStopped(limits, size)) reservation.stop = this.#stop(size);
    const admission = this.#limits.admit(limits, reservation);
    return admission instanceof Promise ? whenAdmitted(admission, listener) : admitted(admission, listener);
  }

  /**
   * Reserves the amount by which `fallback` may cost more than the model that the request was admitted for. Returns
   * undefined if the amount is zero. Throws, or rejects with, the refusal's error if a quota is exceeded. Settle the
   * lease with zero when the request has ended.
   */
  admitDearer(
    principal: Limited,
    size: RequestSize,
    fallback: RequestSize["model"],
  ): Lease | undefined | Promise<Lease> {
    const { account } = principal;
    const limits = this.#endUsers.of(principal, size.tags);
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
   * Throws, or rejects with, the refusal's error if the request limits of `principal` are used up, whatever the next
   * request asks for. Counts nothing. Returns a promise only if another process must be asked.
   */
  refuseSpent({ limits }: Pick<Principal, "limits">, listener: LimitListener): void | Promise<void> {
    const status = this.#limits.peek(limits);
    if (status instanceof Promise) return status.then((peeked) => throwIfSpent(limits, peeked, listener));
    throwIfSpent(limits, status, listener);
  }

  /** Learns from a paid answer how much of its prompt was read from a cache. */
  learnCached(accountId: string, { id, price }: Pick<Model, "id" | "price">, usage: TokenUsage): void {
    if (price?.cachedInput === undefined) return;
    this.#cached.learn(accountId, id, usage.promptTokens, usage.parts?.cachedTokens ?? 0);
  }

  /** Learns from an answer that the model ended. `completionTokens` is the mean length of its generations. */
  learn(model: Pick<Model, "id">, completionTokens: number): void {
    this.#lengths.learn(model.id, completionTokens);
  }

  /**
   * Computes the reservation of a request. A request with a token limit cannot exceed its reservation, except by
   * searches and by a prompt that is longer than estimated. A request without a limit reserves the model's usual answer
   * length, or less if less is left. The minimum is the prompt and one token for each generation, so that a small limit
   * does not refuse a request that it could serve. Money is reserved at the highest rates that may apply and as if
   * nothing were cached; otherwise many concurrent requests could exceed the quota together. A request that is likely
   * to cost less is not refused: it reserves everything that is left.
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
   * Computes the part of the reservation for quotas that can end an answer. The minimum is enough for one token of each
   * generation, without cached tokens, because these are not known yet when the answer is ended. A stream reserves more
   * as it grows. An answer that is not streamed reserves its maximum and is limited to that.
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
    const hasMedia = asked?.hasMedia ?? false;
    const request = { promptTokens, completionTokens, cachedTokens, hasMedia, asked: tiers, units: asked?.units };
    return maxNanoUsdOf(request, price, this.#clock.nowSeconds());
  }
}

/**
 * Tokens reserved for an answer that is not streamed if neither the request nor a context limits it. All model servers
 * support this many.
 */
export const defaultReservedTokens = 4_096;

/**
 * Reports whether a used-up quota may end the answer. The store then decides which of these quotas apply to the
 * request.
 */
function mayBeStopped({ windows }: LimitSet, { maxCompletionTokens, isLimitable }: RequestSize): boolean {
  return (
    windows !== undefined &&
    isLimitable !== false &&
    maxCompletionTokens !== 0 &&
    windows.some(({ stops }) => stops !== undefined)
  );
}

/**
 * Returns only the quotas in USD. With `stops`, quotas that can end an answer are left out: they reserve money during
 * the answer, at its model's price.
 */
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

/** Returns the tokens that fit into the model's context after the prompt. */
export function roomForAnswer(context: number | undefined, promptTokens: number): number {
  if (context === undefined) return Number.POSITIVE_INFINITY;
  // A longer prompt consists of several prompts, or its estimate is wrong. The model server decides.
  return promptTokens < context ? context - promptTokens : context;
}
