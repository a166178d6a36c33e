// Series by the value of a label, never more than so many: what is beyond is counted together.

export interface BoundedSeriesOptions<Series> {
  most: number;
  /** `label`: what stands in the metrics. */
  make(label: string): Series;
  /** Whether its place may be given to another: nobody has heard of it for long. */
  isGone(value: string): boolean;
}

const looksApart = 1_000;

/** Label of all that have no series of their own. */
export const otherLabel = "other";

export class BoundedSeries<Series> {
  readonly #options: BoundedSeriesOptions<Series>;
  readonly #series = new Map<string, Series>();
  #other: Series | undefined;
  /** Number of values still to be counted together before a place is looked for again. */
  #patience = 0;

  constructor(options: BoundedSeriesOptions<Series>) {
    this.#options = options;
  }

  of(value: string): Series {
    return this.#series.get(value) ?? this.#add(value);
  }

  /** The series of `value` alone, where it has one. */
  find(value: string): Series | undefined {
    return this.#series.get(value);
  }

  *all(): Generator<Series> {
    yield* this.#series.values();
    if (this.#other) yield this.#other;
  }

  #add(value: string): Series {
    const { most, make } = this.#options;
    // A value with the name of the rest is counted with it: no series may stand there twice.
    if (value === otherLabel || (this.#series.size >= most && !this.#makeRoom())) {
      this.#other ??= make(otherLabel);
      return this.#other;
    }
    const series = make(value);
    this.#series.set(value, series);
    return series;
  }

  #makeRoom(): boolean {
    if (this.#patience-- > 0) return false;
    this.#patience = looksApart;
    for (const value of this.#series.keys()) {
      if (!this.#options.isGone(value)) continue;
      this.#patience = 0;
      return this.#series.delete(value);
    }
    return false;
  }
}
