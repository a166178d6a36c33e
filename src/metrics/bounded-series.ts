// Keeps a limited number of series by the value of a label; all further values are counted together.

export interface BoundedSeriesOptions<Series> {
  most: number;
  /** Creates a series. `label` is its label in the metrics. */
  make(label: string): Series;
  /** Reports whether the series may be replaced, because its value has not occurred for long. */
  isGone(value: string): boolean;
}

const valuesPerSearch = 1_000;

/** Label of all values without their own series. */
export const otherLabel = "other";

export class BoundedSeries<Series> {
  readonly #options: BoundedSeriesOptions<Series>;
  readonly #series = new Map<string, Series>();
  #other: Series | undefined;
  /** Number of values that are still counted together before another search for a free series. */
  #patience = 0;

  constructor(options: BoundedSeriesOptions<Series>) {
    this.#options = options;
  }

  of(value: string): Series {
    return this.#series.get(value) ?? this.#add(value);
  }

  /** Returns the series of `value`, if it has its own. */
  find(value: string): Series | undefined {
    return this.#series.get(value);
  }

  *all(): Generator<Series> {
    yield* this.#series.values();
    if (this.#other) yield this.#other;
  }

  #add(value: string): Series {
    const { most, make } = this.#options;
    // A value with the name of the common label is counted there, because no series may occur twice.
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
    this.#patience = valuesPerSearch;
    for (const value of this.#series.keys()) {
      if (!this.#options.isGone(value)) continue;
      this.#patience = 0;
      return this.#series.delete(value);
    }
    return false;
  }
}
