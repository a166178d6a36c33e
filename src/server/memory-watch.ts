// Detects that the memory for buffered bytes stays full for longer than a burst.

import type { BufferedBytes } from "../base/bytes/buffered-bytes.ts";
import type { Clock } from "../base/clock.ts";

/** The duration after which full memory is reported. Refused clients are told to retry after 2 seconds. */
const longMs = 3_000;

export class MemoryWatch {
  readonly #ledger: Pick<BufferedBytes, "isFull">;
  readonly #clock: Pick<Clock, "monotonicMs">;
  /** The monotonic time of the first of the consecutive polls that found the memory full. */
  #fullSinceMs: number | undefined;

  constructor(ledger: Pick<BufferedBytes, "isFull">, clock: Pick<Clock, "monotonicMs">) {
    this.#ledger = ledger;
    this.#clock = clock;
  }

  /** Takes a sample. Call it several times a second: only consecutive full samples count. */
  check(): void {
    if (!this.#ledger.isFull) this.#fullSinceMs = undefined;
    else this.#fullSinceMs ??= this.#clock.monotonicMs();
  }

  get isFullForLong(): boolean {
    this.check();
    return this.#fullSinceMs !== undefined && this.#clock.monotonicMs() - this.#fullSinceMs >= longMs;
  }
}
