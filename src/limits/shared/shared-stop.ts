// The reservation of an answer in quotas that can end it, in the shared store, or in this process alone during an
// outage.
import type { Granted, Quota, Reservation, StopLease, StoppedBy } from "../../domain/limits/limits.ts";
import type { QuotaFigures } from "../limit-decision.ts";
import { stopFigures } from "../stop-figures.ts";

export interface StopFacts {
  /** Number of the separate lease for this reservation. */
  readonly number: number;
  /** The quotas in which the answer reserves, and the keys of their counters. */
  readonly quotas: readonly Quota[];
  readonly keys: readonly string[];
  /** Model and tags of the request, which decide which quotas count it. */
  readonly asked: Pick<Reservation, "model" | "tags">;
  /** Tokens reserved at the beginning. */
  readonly tokens: number;
  readonly nanoUsd: number;
  readonly grows: boolean;
  /** The figures of each quota at the beginning, including this reservation. */
  readonly figures: readonly QuotaFigures[];
  /**
   * The maximum amounts that this process could grant, if it granted the reservation alone, because the figures of the
   * quotas were unknown.
   */
  readonly most?: Pick<StopLease, "mostTokens" | "mostNanoUsd"> | undefined;
}

/**
 * Enlarges the reservation `stop`. Returns the added amounts, with the figures of each quota before. Returns
 * undefined if these cannot be determined.
 */
export type Growing = (stop: SharedStop, tokens: number, nanoUsd: number) => Promise<Grown | undefined>;

export interface Grown {
  tokens: number;
  nanoUsd: number;
  figures: readonly QuotaFigures[];
}

export class SharedStop implements StopLease {
  readonly number: number;
  readonly quotas: readonly Quota[];
  readonly keys: readonly string[];
  readonly asked: StopFacts["asked"];
  readonly mostTokens: number;
  readonly mostNanoUsd: number;
  heldTokens: number;
  heldNanoUsd: number;
  tightest: StoppedBy | undefined;
  /** The part that this process reserved without the server during an outage. */
  own: Granted | undefined;
  /** True after settlement. From then on, no more is reserved. */
  isSettled = false;
  readonly #stopsTokens: boolean;
  readonly #stopsNanoUsd: boolean;
  readonly #growing: Growing;
  readonly #figures: readonly QuotaFigures[];

  constructor({ number, quotas, keys, asked, tokens, nanoUsd, grows, figures, most }: StopFacts, growing: Growing) {
    this.number = number;
    this.quotas = quotas;
    this.keys = keys;
    this.asked = asked;
    this.heldTokens = tokens;
    this.heldNanoUsd = nanoUsd;
    this.#growing = growing;
    this.#figures = figures;
    this.#stopsTokens = quotas.some(({ stops }) => stops?.tokens);
    this.#stopsNanoUsd = quotas.some(({ stops }) => stops?.nanoUsd);
    const remaining = stopFigures(quotas.map((quota, i) => ({ quota, counter: figures[i] as QuotaFigures })));
    this.tightest = remaining.tightest;
    this.mostTokens = most?.mostTokens ?? (grows ? remaining.tokens + tokens : this.tokens);
    this.mostNanoUsd = most?.mostNanoUsd ?? (grows ? remaining.nanoUsd + nanoUsd : this.nanoUsd);
  }

  get tokens(): number {
    return this.#stopsTokens ? this.heldTokens : Number.POSITIVE_INFINITY;
  }

  get nanoUsd(): number {
    return this.#stopsNanoUsd ? this.heldNanoUsd : Number.POSITIVE_INFINITY;
  }

  async grow(moreTokens: number, moreNanoUsd: number): Promise<void> {
    const grown = await this.#growing(this, moreTokens, moreNanoUsd).catch(() => undefined);
    if (!grown) return;
    this.heldTokens += grown.tokens;
    this.heldNanoUsd += grown.nanoUsd;
    if (grown.figures.length === 0) return;
    // The answer keeps using the windows in which it began.
    const counted = this.quotas.map((quota, i) => {
      return { quota, counter: { ...(grown.figures[i] as QuotaFigures), period: this.#figures[i]?.period } };
    });
    this.tightest = stopFigures(counted).tightest;
  }
}
