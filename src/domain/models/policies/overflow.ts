// The overflow policy of a model: additional deployments for when its usual ones are busy, with limits on the cost.
import type { Price } from "../price.ts";

export interface OverflowPolicy {
  /** Upstreams and nodes that are used only under this policy, after all other deployments of the model. */
  readonly to: readonly OverflowTarget[];
  /**
   * Overflow if the expected wait at the usual deployments is at least this long. Null means never because of waiting.
   */
  readonly afterSeconds: number | null;
  /** Overflow if the prompt has more tokens than this. Null means never because of its length. */
  readonly promptTokensAbove: number | null;
  /**
   * Parts of the day (UTC), as in `PriceVariant.hours`, in which the overflow deployments are used like the usual ones.
   * Null means none.
   */
  readonly hours: readonly { readonly start: number; readonly end: number }[] | null;
  /** Maximum expected cost in nano-USD of one request at an overflow deployment. Null means no limit. */
  readonly mostNanoUsdPerRequest: number | null;
  /** Maximum cost of all requests at overflow deployments in each period. Null means no limit. */
  readonly spend: OverflowSpend | null;
}

export interface OverflowTarget {
  /** Name of an upstream or node. */
  readonly upstream: string;
  /**
   * The operator's cost of using this upstream. The cheapest upstream is used first. If null, the price of `costOf`
   * applies, else the model's own price.
   */
  readonly cost: Readonly<Price> | null;
  /** `vendor/model` of the price list. Null means none. */
  readonly costOf: string | null;
}

export const overflowSpans = ["hour", "day", "week", "month"] as const;

export interface OverflowSpend {
  readonly nanoUsd: number;
  /** A calendar period in UTC. */
  readonly per: (typeof overflowSpans)[number];
}

/**
 * The reason why a request overflows. `down`: the usual deployments are unavailable. `wait`: the request would wait for
 * them. `prompt`: its prompt is long. `hours`: the time of day.
 */
export const overflowReasons = ["down", "wait", "prompt", "hours"] as const;
export type OverflowReason = (typeof overflowReasons)[number];

/** Identifies the spend of one model in one period. */
export interface SpendPeriod {
  /** Public id. */
  readonly model: string;
  readonly per: OverflowSpend["per"];
  /** Start of the period in Unix seconds. */
  readonly start: number;
}

export interface SpendChange extends SpendPeriod {
  /** Amount to reserve. A negative amount releases reserved nano-USD. */
  readonly nanoUsd: number;
  /**
   * Maximum spend of the period in nano-USD. If the change would exceed it, nothing is reserved. Null means no maximum.
   */
  readonly most: number | null;
}

export interface SpendAnswer {
  readonly made: boolean;
  /** Nano-USD spent or reserved in the period so far. Includes this change if it was made. */
  readonly spentNanoUsd: number;
}

/** Thrown if it is certain that no change was made, so that all changes can be retried. */
export class SpendUnchanged extends Error {
  override readonly name = "SpendUnchanged";
}

export interface OverflowSpendStore {
  /**
   * Makes the changes in order, across all processes. When this resolves, they are durable. If this rejects, they may
   * have been made, except with a `SpendUnchanged`.
   */
  change(changes: readonly SpendChange[]): Promise<readonly SpendAnswer[]>;
  /** Returns the nano-USD that are spent or reserved in the period so far. */
  spent(period: SpendPeriod): Promise<number>;
}
