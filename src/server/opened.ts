// The opened parts of a start, which are closed in reverse order.
import type { Log } from "../base/log.ts";

export class Opened {
  readonly #closers: (() => unknown)[] = [];
  #closing: Promise<void> | undefined;

  /** Registers the part for closing, and returns it. */
  add<Part extends { close(): unknown }>(part: Part): Part {
    this.onClose(() => part.close());
    return part;
  }

  onClose(close: () => unknown): void {
    this.#closers.push(close);
  }

  /** Closes all parts. If closing one fails, all others, including ledger and lock, are still closed. */
  close(log: Log): Promise<void> {
    this.#closing ??= this.#closeEach(log);
    return this.#closing;
  }

  async #closeEach(log: Log): Promise<void> {
    for (const close of this.#closers.toReversed()) {
      try {
        await close();
      } catch (error) {
        log.error("close_failed", { detail: error instanceof Error ? (error.stack ?? error.message) : String(error) });
      }
    }
  }
}
