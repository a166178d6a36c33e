// What quotas that end an answer have set aside for it in the shared store, or in this process alone while nobody could be asked.
import type { Granted, Quota, Reservation, StopLease, StoppedBy } from "../../domain/limits/limits.ts";
import type { QuotaFigures } from "../limit-decision.ts";
import { stopFigures } from "../stop-figures.ts";

export interface StopFacts {
  /** The number of its lease, of its own. */
  readonly number: number;
  /** The quotas, and the keys of the counters in which it is held. */
  readonly quotas: readonly Quota[];
  readonly keys: readonly string[];
  /** What the request asks for and has, by which quotas count it. */
  readonly asked: Pick<Reservation, "model" | "tags">;
  /** Set aside when it began. */
  readonly tokens: number;
  readonly nanoUsd: number;
  readonly grows: boolean;
  /** The figures of each quota when it began, this one's part included. */
  readonly figures: readonly QuotaFigures[];
  /** What this process could give at most where it gave it by itself: of the figures nobody knew. */
  readonly most?: Pick<StopLease, "mostTokens" | "mostNanoUsd"> | undefined;
}

/** Sets aside more of `stop` and gives how much, with what each quota had before; undefined where nobody can tell. */
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
  /** What this process has set aside of it by itself, while nobody could be asked. */
  own: Granted | undefined;
  /** Nothing more is set aside from then on. */
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
    const left = stopFigures(quotas.map((quota, i) => ({ quota, counter: figures[i] as QuotaFigures })));
    this.tightest = left.tightest;
    this.mostTokens = most?.mostTokens ?? (grows ? left.tokens + tokens : this.tokens);
    this.mostNanoUsd = most?.mostNanoUsd ?? (grows ? left.nanoUsd + nanoUsd : this.nanoUsd);
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
    // It goes on in the windows in which it began.
    const counted = this.quotas.map((quota, i) => {
      return { quota, counter: { ...(grown.figures[i] as QuotaFigures), period: this.#figures[i]?.period } };
    });
    this.tightest = stopFigures(counted).tightest;
  }
}
