// A reservation that the shared store keeps, or this process alone while nobody could be asked.
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
  /** A number within this process that is never used again. */
  readonly number: number;
  readonly plan: LimitPlan;
  /** The keys by which its quotas are told what it used: of one that rolls that of the window in which it began. */
  readonly quotaKeys: readonly string[];
  /** Set aside by now. */
  tokens: number;
  nanoUsd: number;
  /** The lease of this process, where nobody else knows of it. */
  own: Lease | undefined;
  /** What quotas that end the answer have set aside, under a number of its own; undefined where none does. */
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
