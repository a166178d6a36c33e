// A map that removes idle entries a few at a time as it is used, without timers.

/** A smaller map is not swept. */
const smallSize = 1_024;
/** At most twice the entries in use, by all plans. From here on every entry that can go is removed. */
const crowdedSize = 250_000;
const usesPerSweep = 64;
/** Eight times the uses, so that entries go faster than they come. */
const visitsPerSweep = 512;
/** How often all entries are visited while the map is not crowded. */
const roundMs = 60_000;

/** Says when entries should be visited, for any structure with many of them. */
export class SweepPace {
  #uses = 0;
  /** The visits due in this round. */
  #due = 0;
  #nextRoundMs = Number.NEGATIVE_INFINITY;

  /** Must be called once for each use, with the number of entries. `nowMs` is in monotonic milliseconds. */
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

/** How many entries to visit now, and whether there are so many that every removable entry should go. */
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
   * `giveUp` says whether an entry may go: it can be made again without loss. Making entries again that are in use all
   * the time is expensive, so `giveUp` keeps them unless the map is crowded.
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
   * Must be called once for each use that adds at most a handful of entries, while the caller holds none of them.
   * `nowMs` is in monotonic milliseconds.
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
