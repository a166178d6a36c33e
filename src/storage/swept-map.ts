// A map that forgets idle entries a few at a time as it is used, without timers.

/** Below this it is left alone. */
const smallSize = 1_024;
const usesPerSweep = 64;
/** More than one use ever adds, so that entries go faster than they come. */
const visitsPerUse = 8;

export class SweptMap<Value> {
  readonly #entries = new Map<string, Value>();
  /** An entry for which it holds can be made anew without loss. */
  readonly #isIdle: (value: Value) => boolean;
  #cursor: Iterator<[string, Value]>;
  #uses = 0;

  constructor(isIdle: (value: Value) => boolean) {
    this.#isIdle = isIdle;
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

  /** To be called once for each use that adds at most a handful of entries, while none of them is held by the caller. */
  used(): void {
    if (++this.#uses % usesPerSweep !== 0 || this.#entries.size < smallSize) return;
    for (let visits = usesPerSweep * visitsPerUse; visits > 0; visits--) {
      const { done, value } = this.#cursor.next();
      if (done) {
        this.#cursor = this.#entries.entries();
        return;
      }
      if (this.#isIdle(value[1])) this.#entries.delete(value[0]);
    }
  }
}
