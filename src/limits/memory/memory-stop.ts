// The reservations of a running answer in quotas that stop it when they are used up, and what these quotas have left.
import type { StopLease, StoppedBy, StopReservation } from "../../domain/limits/limits.ts";
import { stopFigures } from "../stop-figures.ts";
import { shareOf } from "../stop-share.ts";
import type { CountedWindow } from "./memory-windows.ts";

export class MemoryStop implements StopLease {
  readonly mostTokens: number;
  readonly mostNanoUsd: number;
  tightest: StoppedBy | undefined;
  readonly #windows: readonly CountedWindow[];
  readonly #stopsTokens: boolean;
  readonly #stopsNanoUsd: boolean;
  #heldTokens: number;
  #heldNanoUsd: number;
  #settled = false;

  /** `windows` are the quotas that can stop the answer. Each must have at least the required amount left. */
  constructor(windows: readonly CountedWindow[], reservation: StopReservation) {
    const { tokens, nanoUsd, minTokens, minNanoUsd, grows } = reservation;
    this.#windows = windows;
    this.#stopsTokens = windows.some(({ quota }) => quota.stops?.tokens);
    this.#stopsNanoUsd = windows.some(({ quota }) => quota.stops?.nanoUsd);
    const remaining = stopFigures(this.#windows);
    const share = (wanted: number, least: number, of: number) =>
      grows ? least + shareOf(wanted - least, of - least, remaining.running + 1) : Math.min(wanted, of);
    this.#heldTokens = this.#stopsTokens ? share(tokens, minTokens, remaining.tokens) : tokens;
    this.#heldNanoUsd = this.#stopsNanoUsd ? share(nanoUsd, minNanoUsd, remaining.nanoUsd) : nanoUsd;
    // If the reservation cannot grow, it is also the maximum of the answer.
    this.mostTokens = grows ? remaining.tokens : this.tokens;
    this.mostNanoUsd = grows ? remaining.nanoUsd : this.nanoUsd;
    this.tightest = remaining.tightest;
  }

  get tokens(): number {
    return this.#stopsTokens ? this.#heldTokens : Number.POSITIVE_INFINITY;
  }

  get nanoUsd(): number {
    return this.#stopsNanoUsd ? this.#heldNanoUsd : Number.POSITIVE_INFINITY;
  }

  /** Makes the reservations. Call this once. */
  begin(): void {
    for (const { counter } of this.#windows) counter.begin(this.#heldTokens, this.#heldNanoUsd);
  }

  grow(moreTokens: number, moreNanoUsd: number): void {
    if (this.#settled) return;
    const remaining = stopFigures(this.#windows);
    const tokens = this.#stopsTokens ? shareOf(moreTokens, remaining.tokens, remaining.running) : moreTokens;
    const nanoUsd = this.#stopsNanoUsd ? shareOf(moreNanoUsd, remaining.nanoUsd, remaining.running) : moreNanoUsd;
    for (const { counter } of this.#windows) counter.hold(tokens, nanoUsd);
    this.#heldTokens += tokens;
    this.#heldNanoUsd += nanoUsd;
    this.tightest = remaining.tightest;
  }

  settle(tokens: number, nanoUsd: number): void {
    if (this.#settled) return;
    this.#settled = true;
    for (const { counter } of this.#windows) counter.book(tokens, nanoUsd, this.#heldTokens, this.#heldNanoUsd);
  }
}
