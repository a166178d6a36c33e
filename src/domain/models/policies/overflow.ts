// Where requests for a model go when its own deployments keep them waiting, and how much that may cost.
import type { Price } from "../price.ts";

export interface OverflowPolicy {
  /** Upstreams and nodes whose deployments of the model come behind all others, and are asked by this policy alone. */
  readonly to: readonly OverflowTarget[];
  /** Seconds of expected wait at the others from which on they are asked; null: the wait is no reason. */
  readonly afterSeconds: number | null;
  /** Tokens of a prompt beyond which they are asked; null: its length is no reason. */
  readonly promptTokensAbove: number | null;
  /** Parts of a day (UTC) at which they are asked as any other, as of a price's variant; null: no hours are a reason. */
  readonly hours: readonly { readonly start: number; readonly end: number }[] | null;
  /** The most nano-USD that one request may be expected to cost there; null: any. */
  readonly mostNanoUsdPerRequest: number | null;
  /** What all requests together may cost there in each span; null: any. */
  readonly spend: OverflowSpend | null;
}

export interface OverflowTarget {
  /** Name of an upstream or node. */
  readonly upstream: string;
  /** What its use costs the operator, by which the cheapest is asked first; null: as `costOf`, else the model's own price. */
  readonly cost: Readonly<Price> | null;
  /** `vendor/model` of the price list; null: none. */
  readonly costOf: string | null;
}

export const overflowSpans = ["hour", "day", "week", "month"] as const;

export interface OverflowSpend {
  readonly nanoUsd: number;
  /** By calendar, in UTC. */
  readonly per: (typeof overflowSpans)[number];
}

/** Why a request went there: the others are away or at rest, keep it waiting, its prompt is long, or the time of day. */
export const overflowReasons = ["down", "wait", "prompt", "hours"] as const;
export type OverflowReason = (typeof overflowReasons)[number];

/** Money of one model in one span. */
export interface SpendPlace {
  /** Public id. */
  readonly model: string;
  readonly per: OverflowSpend["per"];
  /** Begin of the span: Unix seconds. */
  readonly start: number;
}

export interface SpendChange extends SpendPlace {
  /** What is set aside, or given back where it is below 0. */
  readonly nanoUsd: number;
  /** Set aside only where all that is spent stays within; null: in any case. */
  readonly most: number | null;
}

export interface SpendAnswer {
  readonly made: boolean;
  /** All that is spent, and set aside, in that span by then. */
  readonly spentNanoUsd: number;
}

/** Thrown by a store that certainly made none of the changes, so that all of them can be made again. */
export class SpendUnchanged extends Error {
  override readonly name = "SpendUnchanged";
}

export interface OverflowSpendStore {
  /**
   * Makes changes one after the other, over all processes; they outlive this one when it resolves. Rejects if they may not be
   * made, with a `SpendUnchanged` if they certainly are not.
   */
  change(changes: readonly SpendChange[]): Promise<readonly SpendAnswer[]>;
  /** What is spent by now, 0 where nothing is. */
  spent(place: SpendPlace): Promise<number>;
}
