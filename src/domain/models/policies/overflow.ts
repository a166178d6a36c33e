// The overflow policy of a model: the deployments that requests use when its own are busy, and the limits of the cost.
import type { Price } from "../price.ts";

export interface OverflowPolicy {
  /** Upstreams and nodes whose deployments of the model come after all others and are used only under this policy. */
  readonly to: readonly OverflowTarget[];
  /**
   * Overflow if the expected wait at the other deployments is at least this many seconds; null: not because of waiting.
   */
  readonly afterSeconds: number | null;
  /** Overflow if the prompt has more tokens than this; null: not because of length. */
  readonly promptTokensAbove: number | null;
  /** Parts of a day (UTC), as of a price's variant, in which these deployments are used like any other; null: none. */
  readonly hours: readonly { readonly start: number; readonly end: number }[] | null;
  /** Maximum expected nano-USD of one request there; null: no limit. */
  readonly mostNanoUsdPerRequest: number | null;
  /** Maximum cost of all requests there in each span; null: no limit. */
  readonly spend: OverflowSpend | null;
}

export interface OverflowTarget {
  /** Name of an upstream or node. */
  readonly upstream: string;
  /**
   * The operator's cost of using this upstream; the cheapest is used first. null: the price of `costOf`, else the
   * model's own price.
   */
  readonly cost: Readonly<Price> | null;
  /** `vendor/model` of the price list; null: none. */
  readonly costOf: string | null;
}

export const overflowSpans = ["hour", "day", "week", "month"] as const;

export interface OverflowSpend {
  readonly nanoUsd: number;
  /** A calendar span in UTC. */
  readonly per: (typeof overflowSpans)[number];
}

/**
 * The reasons for an overflow: the other deployments are down or resting, the request would wait for them, its prompt
 * is long, or the time of day.
 */
export const overflowReasons = ["down", "wait", "prompt", "hours"] as const;
export type OverflowReason = (typeof overflowReasons)[number];

/** The spend of one model in one span. */
export interface SpendPeriod {
  /** Public id. */
  readonly model: string;
  readonly per: OverflowSpend["per"];
  /** The beginning of the span in Unix seconds. */
  readonly start: number;
}

export interface SpendChange extends SpendPeriod {
  /** Amount to reserve, or to return if negative. */
  readonly nanoUsd: number;
  /** The maximum of the total in nano-USD. If the change would exceed it, nothing is reserved. null: no maximum. */
  readonly most: number | null;
}

export interface SpendAnswer {
  readonly made: boolean;
  /** Nano-USD that are spent or reserved in the span so far, after the change. */
  readonly spentNanoUsd: number;
}

/** Thrown by a store that certainly made none of the changes, so that all can be retried. */
export class SpendUnchanged extends Error {
  override readonly name = "SpendUnchanged";
}

export interface OverflowSpendStore {
  /**
   * Makes changes in order, over all processes. They are durable when it resolves. Rejects if they may not be made,
   * with a `SpendUnchanged` if they certainly are not.
   */
  change(changes: readonly SpendChange[]): Promise<readonly SpendAnswer[]>;
  /** Returns the spend so far; 0 without any. */
  spent(period: SpendPeriod): Promise<number>;
}
