// A reservation in the shared store or, while it is unreachable, in this process alone.
import { type IndexedItem, noIndex } from "../../base/indexed-set.ts";
import type { Lease } from "../../domain/limits/limits.ts";
import type { LimitPlan } from "../limit-plan.ts";
import type { SharedStop } from "./shared-stop.ts";

export interface SharedLeaseListener {
  extended(lease: SharedLease): void;
  settled(lease: SharedLease, tokens: number, nanoUsd: number): void;
}

export type SharedLeaseFacts = Pick<
  SharedLease,
  "number" | "plan" | "quotaKeys" | "tokens" | "nanoUsd" | "own" | "stop"
>;

export class SharedLease implements Lease, IndexedItem {
  setIndex = noIndex;
  /** Number of the lease, never reused within this process. */
  readonly number: number;
  readonly plan: LimitPlan;
  /**
   * Redis keys of the quotas that count this lease's usage. For a rolling quota, the key of the window in which the
   * lease began.
   */
  readonly quotaKeys: readonly string[];
  /** Tokens reserved so far. */
  tokens: number;
  nanoUsd: number;
  /** The reservation in this process, if the request was admitted while the shared store was unreachable. */
  own: Lease | undefined;
  /** The separate reservation in quotas that can stop the answer; undefined if there are none. */
  readonly stop: SharedStop | undefined;
  readonly #listener: SharedLeaseListener;
  #isSettled = false;

  constructor(
    { number, plan, quotaKeys, tokens, nanoUsd, own, stop }: SharedLeaseFacts,
    listener: SharedLeaseListener,
  ) {
    this.number = number;
    this.plan = plan;
    this.quotaKeys = quotaKeys;
    this.tokens = tokens;
    this.nanoUsd = nanoUsd;
    this.own = own;
    this.stop = stop;
    this.#listener = listener;
  }

  extend(tokens: number, nanoUsd: number): void {
    if (this.#isSettled || (tokens <= this.tokens && nanoUsd <= this.nanoUsd)) return;
    this.tokens = Math.max(this.tokens, tokens);
    this.nanoUsd = Math.max(this.nanoUsd, nanoUsd);
    this.own?.extend(tokens, nanoUsd);
    this.#listener.extended(this);
  }

  settle(tokens: number, nanoUsd: number): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    if (this.stop) this.stop.isSettled = true;
    this.own?.settle(tokens, nanoUsd);
    this.stop?.own?.lease.settle(tokens, nanoUsd);
    this.#listener.settled(this, tokens, nanoUsd);
  }
}
