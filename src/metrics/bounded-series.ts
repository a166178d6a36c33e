// Metric series by the value of a label, limited in number. Values beyond the limit share one series.

export interface BoundedSeriesOptions<Series> {
  most: number;
  /** Creates a series with this label. */
  make(label: string): Series;
  /** Reports whether the series of this value may be dropped to make space for another. */
  isGone(value: string): boolean;
}

const valuesPerSearch = 1_000;

/** Label of the series that further values share. */
export const otherLabel = "other";

export class BoundedSeries<Series> {
  readonly #options: BoundedSeriesOptions<Series>;
  readonly #series = new Map<string, Series>();
  #other: Series | undefined;
  /** Number of new values until the next search for a series to drop. */
  #patience = 0;

  constructor(options: BoundedSeriesOptions<Series>) {
    this.#options = options;
  }

  of(value: string): Series {
    return this.#series.get(value) ?? this.#add(value);
  }

  /** Returns the series of this value; undefined if it has none of its own. */
  find(value: string): Series | undefined {
    return this.#series.get(value);
  }

  *all(): Generator<Series> {
    yield* this.#series.values();
    if (this.#other) yield this.#other;
  }

  #add(value: string): Series {
    const { most, make } = this.#options;
    // A value that is named `other` uses the shared series, because labels must be unique.
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
