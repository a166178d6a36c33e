// Decides when overflow deployments of a model may serve a request, in which order, and at what cost.
import type { Clock } from "../../base/clock.ts";
import { GatewayError } from "../../base/errors.ts";
import type { Deployment, Model } from "../../domain/models/model.ts";
import type { OverflowPolicy, OverflowReason, OverflowTarget } from "../../domain/models/policies/overflow.ts";
import type { Price } from "../../domain/models/price.ts";
import { roomForAnswer } from "../../policy/admit.ts";
import type { LearnedLengths } from "../../policy/learned-lengths.ts";
import { maxNanoUsdOf, nanoUsdOf, type PricedUsage } from "../../policy/price.ts";
import { listedPrice } from "../../prices/price-list.ts";
import type { DecodedRequest } from "../../requests/decoded-request.ts";
import type { Capacity } from "../routing/capacity.ts";
import type { SlotRequest } from "../routing/gate.ts";
import type { Router } from "../routing/route.ts";
import type { OverflowSpending, SetAside } from "./overflow-spending.ts";

export interface OverflowOptions {
  router: Pick<Router, "resting">;
  capacity: Pick<Capacity, "expectedWaitMs">;
  spending: OverflowSpending;
  lengths: Pick<LearnedLengths, "estimate">;
  clock: Clock;
}

/** The deployments that a request may use now. */
export interface OverflowChoice {
  /** Deployments in the order in which to try them. */
  readonly candidates: readonly Deployment[];
  /** The reason for which overflow deployments are included. Undefined if they are not included. */
  readonly reason: OverflowReason | undefined;
  /**
   * Milliseconds until the request has waited long enough to overflow. Undefined if waiting longer has no such effect.
   */
  readonly laterMs: number | undefined;
  /** The error for the client if cost limits exclude all overflow deployments. */
  readonly refusal: GatewayError | undefined;
}

/** The money that is reserved for one request at an overflow deployment. */
export interface OverflowBill {
  /**
   * Settles the reservation with the actual usage. May be called only once. If the usage is undefined, all of the money
   * is returned.
   */
  settle(usage: PricedUsage | undefined): void;
  /** Called instead of `settle` if the usage is unknown. The whole reservation then counts as spent. */
  keep(): void;
}

interface Costs {
  readonly deployment: Deployment;
  readonly expected: number;
}

type Excess = "request" | "spend" | "untold" | "unpriced";

export class Overflow {
  readonly #options: OverflowOptions;
  /** Numbers of requests that were sent to overflow deployments, by model, deployment and reason. */
  readonly #counts = new Map<string, { labels: OverflowLabels; count: number }>();

  constructor(options: OverflowOptions) {
    this.#options = options;
  }

  get spending(): OverflowSpending {
    return this.#options.spending;
  }

  /**
   * Chooses the deployments for a request. `ranked` is the order without this policy. `waitedMs` is the time in the
   * queue.
   */
  choose(
    ranked: readonly Deployment[],
    model: Model,
    policy: OverflowPolicy,
    request: DecodedRequest,
    slotRequest: SlotRequest,
    waitedMs: number,
  ): OverflowChoice {
    const own = ranked.filter((one) => !targetOf(policy, one));
    if (own.length === ranked.length) return { candidates: ranked, ...none };
    const over = ranked.filter((one) => !own.includes(one));
    const reason = this.#reason(own, policy, request, slotRequest, waitedMs);
    const { afterSeconds } = policy;
    const isLater = reason === undefined && afterSeconds !== null && !slotRequest.onWanted;
    if (reason === undefined && !isLater) return { candidates: own, ...none };
    const costs: Costs[] = [];
    let excess: Excess | undefined;
    for (const deployment of over) {
      const found = this.#costs(deployment, model, policy, request);
      if (typeof found === "string") excess ??= found;
      else costs.push(found);
    }
    if (costs.length === 0) {
      return { candidates: own, ...none, refusal: excess && this.#refusal(excess, model, policy) };
    }
    if (reason === undefined) {
      return { candidates: own, ...none, laterMs: Math.max(1, (afterSeconds ?? 0) * 1_000 - waitedMs) };
    }
    const affordable = costs.map(({ deployment }) => deployment);
    if (reason === "hours") {
      return { ...none, candidates: ranked.filter((one) => own.includes(one) || affordable.includes(one)), reason };
    }
    const cheapest = costs.sort((a, b) => a.expected - b.expected).map(({ deployment }) => deployment);
    // The model's own deployments come last, because a long prompt would slow other requests there.
    const candidates = reason === "prompt" ? [...cheapest, ...own] : [...own, ...cheapest];
    return { ...none, candidates, reason };
  }

  /**
   * Returns the reason for which the request may overflow, or undefined. A background request (the idle lane) does not
   * overflow to avoid waiting, nor because the model's own deployments are suspended.
   */
  #reason(
    own: readonly Deployment[],
    { hours, promptTokensAbove, afterSeconds }: OverflowPolicy,
    { promptTokens }: Pick<DecodedRequest, "promptTokens">,
    slotRequest: SlotRequest,
    waitedMs: number,
  ): OverflowReason | undefined {
    const { router, capacity, clock } = this.#options;
    if (hours && isWithin(hours, clock.nowSeconds())) return "hours";
    if (promptTokensAbove !== null && promptTokens > promptTokensAbove) return "prompt";
    if (slotRequest.onWanted) return undefined;
    if (own.every((one) => router.resting(one))) return "down";
    if (afterSeconds === null) return undefined;
    const afterMs = afterSeconds * 1_000;
    if (waitedMs >= afterMs) return "wait";
    const expectedMs = capacity.expectedWaitMs(own, slotRequest);
    return expectedMs !== undefined && expectedMs >= afterMs && expectedMs > 0 ? "wait" : undefined;
  }

  /** Returns the expected cost at an overflow deployment, or the cost limit that excludes it. */
  #costs(deployment: Deployment, model: Model, policy: OverflowPolicy, request: DecodedRequest): Costs | Excess {
    const { mostNanoUsdPerRequest: most, spend } = policy;
    const price = priceAt(targetOf(policy, deployment), model);
    const isBound = most !== null || spend !== null;
    if (!price) return isBound ? "unpriced" : { deployment, expected: Number.POSITIVE_INFINITY };
    const expected = this.#nanoUsd(model, price, request, this.#expectedTokens(model, request));
    if (most !== null && expected > most) return "request";
    if (spend !== null) {
      const remaining = this.spending.remaining(model.id, spend);
      const needed = this.#mostNanoUsd(model, price, request);
      if (this.spending.isUnknown) return "untold";
      if (needed > (remaining ?? spend.nanoUsd)) return needed > spend.nanoUsd ? "request" : "spend";
    }
    return { deployment, expected };
  }

  /**
   * Returns the expected tokens of each generation: the usual length for the model, but no more than the request's
   * limit.
   */
  #expectedTokens(model: Model, request: DecodedRequest): number {
    return Math.min(request.maxCompletionTokens ?? Number.POSITIVE_INFINITY, this.#options.lengths.estimate(model.id));
  }

  /**
   * Returns the amount to reserve: the cost at the request's token limit. Without a reliable limit, it is at least the
   * cost at the usual length.
   */
  #mostNanoUsd(model: Model, price: Price, request: DecodedRequest): number {
    const { maxCompletionTokens: said, limitHolds } = request;
    const usual = said !== undefined && limitHolds ? 0 : this.#options.lengths.estimate(model.id);
    const tokens = Math.max(said ?? 0, usual);
    return this.#nanoUsd(model, price, request, tokens);
  }

  #nanoUsd({ context }: Model, price: Price, request: DecodedRequest, tokens: number): number {
    const { promptTokens, width, hasMedia, units } = request;
    const completionTokens = width * Math.min(tokens, roomForAnswer(context, promptTokens));
    const asked = price.variants ? request.askedTiers() : [];
    const size = { promptTokens, completionTokens, cachedTokens: 0, hasMedia, asked, units };
    return maxNanoUsdOf(size, price, this.#options.clock.nowSeconds());
  }

  /**
   * Reserves money before a request is sent. Returns undefined if `deployment` is no overflow deployment. The promise
   * resolves to undefined if the cap would be exceeded. In this case, the request needs another deployment.
   */
  bill(
    deployment: Deployment,
    model: Model,
    policy: OverflowPolicy,
    request: DecodedRequest,
  ): OverflowBill | Promise<OverflowBill | undefined> | undefined {
    const target = targetOf(policy, deployment);
    if (!target) return undefined;
    const { spend } = policy;
    const price = priceAt(target, model);
    if (spend === null) return freeBill;
    // The price may have been removed after the deployment was chosen.
    if (!price) return nothingToSpend;
    const at = this.#options.clock.nowSeconds();
    const setAside = this.spending.setAside(model.id, spend, this.#mostNanoUsd(model, price, request));
    return setAside.then((made) => made && new SpentBill(this.spending, made, price, at));
  }

  /** Called when a request was sent to an overflow deployment. */
  went(model: Model, deployment: Deployment, reason: OverflowReason): void {
    const labels = { model: model.id, upstream: deployment.engine.name, reason };
    const name = JSON.stringify(labels);
    const known = this.#counts.get(name);
    if (known) known.count++;
    else if (this.#counts.size < maxCounted) this.#counts.set(name, { labels, count: 1 });
  }

  get counts(): Iterable<{ readonly labels: OverflowLabels; readonly count: number }> {
    return this.#counts.values();
  }

  /** Returns the error for the client, which must not contain the operator's amounts. */
  #refusal(excess: Excess, { id }: Model, { spend }: OverflowPolicy): GatewayError {
    const begin = `The model \`${id}\` has no server of its own that takes this request now, and`;
    if (excess === "spend" && spend) {
      const opensAt = this.spending.opensAt(spend);
      const retryAfterSeconds = Math.max(1, opensAt - this.#options.clock.nowSeconds());
      const opens = new Date(opensAt * 1_000).toISOString().replace(".000", "");
      const message = `${begin} what its overflow may cost in this ${spend.per} is used up. It opens at ${opens}.`;
      return new GatewayError("service_unavailable", message, { retryAfterSeconds, refusal: "capacity" });
    }
    const message =
      excess === "request"
        ? `${begin} elsewhere it would cost more than one request may. Send a shorter prompt or a lower token limit, or retry in ${retrySeconds} s.`
        : `${begin} what it would cost elsewhere cannot be told now. Retry in ${retrySeconds} s.`;
    const detail = excess === "unpriced" ? "overflow: no cost is known; set cost or cost_of of its target" : undefined;
    return new GatewayError("service_unavailable", message, {
      retryAfterSeconds: retrySeconds,
      refusal: "capacity",
      ...(detail && { detail }),
    });
  }
}

export interface OverflowLabels {
  readonly model: string;
  readonly upstream: string;
  readonly reason: OverflowReason;
}

/** Returns the model's deployments without overflow deployments, for calls that do not queue or that cost nothing. */
export function ownDeployments({ deployments, policies }: Model): readonly Deployment[] {
  const overflow = policies?.overflow;
  return overflow ? deployments.filter((one) => !targetOf(overflow, one)) : deployments;
}

const none = { reason: undefined, laterMs: undefined, refusal: undefined } as const;
const retrySeconds = 5;
const nothingToSpend = Promise.resolve(undefined);
/** Maximum combinations of model, deployment and reason that are counted, because each is a metric series. */
const maxCounted = 1_000;
const freeBill: OverflowBill = { settle() {}, keep() {} };

class SpentBill implements OverflowBill {
  readonly #spending: OverflowSpending;
  readonly #setAside: SetAside;
  readonly #price: Price;
  readonly #at: number;
  #isSettled = false;

  constructor(spending: OverflowSpending, setAside: SetAside, price: Price, at: number) {
    this.#spending = spending;
    this.#setAside = setAside;
    this.#price = price;
    this.#at = at;
  }

  settle(usage: PricedUsage | undefined): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    this.#spending.settle(this.#setAside, usage ? (nanoUsdOf(usage, this.#price, this.#at) ?? 0) : 0);
  }

  keep(): void {
    this.#isSettled = true;
  }
}

function targetOf({ to }: OverflowPolicy, { engine }: Deployment): OverflowTarget | undefined {
  return to.find(({ upstream }) => upstream === engine.name);
}

function priceAt(target: OverflowTarget | undefined, model: Model): Price | undefined {
  if (!target) return undefined;
  return target.cost ?? (target.costOf === null ? undefined : listedPrice(target.costOf)) ?? model.price;
}

/** Reports whether the time is within the daily hours. If their end is not after their start, they cross midnight. */
function isWithin(hours: NonNullable<OverflowPolicy["hours"]>, nowSeconds: number): boolean {
  const minute = Math.floor(nowSeconds / 60) % 1_440;
  return hours.some(({ start, end }) =>
    start < end ? minute >= start && minute < end : minute >= start || minute < end,
  );
}
