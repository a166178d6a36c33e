// The reservation of a running answer in quotas that stop it when they are used up: in the shared store or, during an
// outage, in this process.
import type { Granted, Quota, Reservation, StopLease, StoppedBy } from "../../domain/limits/limits.ts";
import type { QuotaFigures } from "../limit-decision.ts";
import { stopFigures } from "../stop-figures.ts";

export interface StopFacts {
  /** Number of the lease for this reservation, which is separate from the request's lease. */
  readonly number: number;
  /** The quotas with a reservation for this answer, and the Redis keys of their counters. */
  readonly quotas: readonly Quota[];
  readonly keys: readonly string[];
  /** Model and tags of the request, which decide which quotas count it. */
  readonly asked: Pick<Reservation, "model" | "tags">;
  /** Tokens reserved at the beginning. */
  readonly tokens: number;
  readonly nanoUsd: number;
  readonly grows: boolean;
  /** The state of each quota at the beginning, including this reservation. */
  readonly figures: readonly QuotaFigures[];
  /** The maximum amounts, if this process made the reservation without the server. */
  readonly most?: Pick<StopLease, "mostTokens" | "mostNanoUsd"> | undefined;
}

/**
 * Enlarges the reservation `stop`. Resolves to the added amounts and the state of each quota before; undefined if that
 * failed.
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
  /** The reservation that this process made itself during an outage. */
  own: Granted | undefined;
  /** True once the answer has ended; nothing more is reserved. */
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
    // The answer keeps the windows in which it began.
    const counted = this.quotas.map((quota, i) => {
      return { quota, counter: { ...(grown.figures[i] as QuotaFigures), period: this.#figures[i]?.period } };
    });
    this.tightest = stopFigures(counted).tightest;
  }
}
