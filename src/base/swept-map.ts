// A map that removes idle entries without timers: each use of the map may check a few entries.

/** A smaller map is not swept. */
const smallSize = 1_024;
/**
 * Number of entries above which the map removes every removable entry. It is twice the maximum number of entries that
 * are planned to be in use.
 */
const crowdedSize = 250_000;
const usesPerSweep = 64;
/**
 * Number of entries that a sweep visits. It is eight times the number of uses between two sweeps, so that entries are
 * removed faster than they are added.
 */
const visitsPerSweep = 512;
/** Minimum milliseconds between the starts of two rounds over all entries, unless the map is crowded. */
const roundMs = 60_000;

/** Decides how many entries to visit at each use. Usable for any structure with many entries. */
export class SweepPace {
  #uses = 0;
  /** Number of entries still to visit in this round. */
  #due = 0;
  #nextRoundMs = Number.NEGATIVE_INFINITY;

  /** Call this once for each use of the map. `size` is the number of entries. `nowMs` is in monotonic milliseconds. */
  check(size: number, nowMs: number): Sweep {
    if (++this.#uses % usesPerSweep !== 0 || size < smallSize) return noSweep;
    const isCrowded = size > crowdedSize;
    if (this.#due <= 0) {
      if (nowMs < this.#nextRoundMs && !isCrowded) return noSweep;
      this.#nextRoundMs = nowMs + roundMs;
      this.#due = size;
    }
    this.#due -= visitsPerSweep;
    return { visits: visitsPerSweep, isCrowded };
  }
}

/** Number of entries to visit now, and whether there are so many that every removable entry should be removed. */
export interface Sweep {
  readonly visits: number;
  readonly isCrowded: boolean;
}

const noSweep: Sweep = { visits: 0, isCrowded: false };

export class SweptMap<Value> {
  readonly #entries = new Map<string, Value>();
  readonly #giveUp: (value: Value, isCrowded: boolean) => boolean;
  readonly #pace = new SweepPace();
  #cursor: Iterator<[string, Value]>;

  /**
   * `giveUp` reports whether an entry may be removed, because it can be recreated without loss. It keeps entries that
   * are in constant use, whose recreation is expensive, unless the map is crowded.
   */
  constructor(giveUp: (value: Value, isCrowded: boolean) => boolean) {
    this.#giveUp = giveUp;
    this.#cursor = this.#entries.entries();
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: string): Value | undefined {
    return this.#entries.get(key);
  }

  set(key: string, value: Value): void {
    this.#entries.set(key, value);
  }

  /**
   * Call this once for each use, while the caller holds no entry, because any entry may be removed. A use may add only
   * a few entries. `nowMs` is in monotonic milliseconds.
   */
  used(nowMs: number): void {
    const { visits, isCrowded } = this.#pace.check(this.#entries.size, nowMs);
    for (let visit = 0; visit < visits; visit++) {
      const { done, value } = this.#cursor.next();
      if (done) {
        this.#cursor = this.#entries.entries();
        return;
      }
      if (this.#giveUp(value[1], isCrowded)) this.#entries.delete(value[0]);
    }
  }
}
