// Whether so much is held in memory that everybody is refused, and has been for longer than a burst takes.

import type { BufferedBytes } from "../base/bytes/buffered-bytes.ts";
import type { Clock } from "../base/clock.ts";

/** Clients are told to come again after 2 seconds. */
const longMs = 3_000;

export class MemoryWatch {
  readonly #ledger: Pick<BufferedBytes, "isFull">;
  readonly #clock: Pick<Clock, "monotonicMs">;
  /** Monotonic milliseconds of the first of the looks that all found it full. */
  #fullSinceMs: number | undefined;

  constructor(ledger: Pick<BufferedBytes, "isFull">, clock: Pick<Clock, "monotonicMs">) {
    this.#ledger = ledger;
    this.#clock = clock;
  }

  /** To be called some times a second: memory that was full between two looks alone counts for nothing. */
  look(): void {
    if (!this.#ledger.isFull) this.#fullSinceMs = undefined;
    else this.#fullSinceMs ??= this.#clock.monotonicMs();
  }

  get isFullForLong(): boolean {
    this.look();
    return this.#fullSinceMs !== undefined && this.#clock.monotonicMs() - this.#fullSinceMs >= longMs;
  }
}
