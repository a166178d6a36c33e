// A map that forgets idle entries a few at a time as it is used, without timers.

/** Below this it is left alone. */
const smallSize = 1_024;
/** Twice what is in use at most, by all that is planned for: from here on, what can go goes. */
const crowdedSize = 250_000;
const usesPerSweep = 64;
/** Eight times the uses: entries go faster than they come. */
const visitsPerSweep = 512;
/** How often all of them are visited while it is not crowded. */
const roundMs = 60_000;

/** Says when entries are visited, of whatever has many of them. */
export class SweepPace {
  #uses = 0;
  /** Visits to be made in this round. */
  #due = 0;
  #nextRoundMs = Number.NEGATIVE_INFINITY;

  /** Called once for each use, with the number of entries. `nowMs`: monotonic milliseconds. */
  look(size: number, nowMs: number): Sweep {
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

/** How many entries are to be visited now, and whether there are so many that what can go should. */
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
   * `giveUp` is asked whether an entry may go. It does where it can be made anew without loss; to make those anew that
   * are in use all the time costs several times what they cost, so it spares them unless it is crowded.
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
   * Called once for each use that adds at most a handful of entries, while the caller holds none of them. `nowMs`:
   * monotonic milliseconds.
   */
  used(nowMs: number): void {
    const { visits, isCrowded } = this.#pace.look(this.#entries.size, nowMs);
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
