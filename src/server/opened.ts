// The parts that a start has opened, to be closed in the opposite order.
import type { Log } from "../base/log.ts";

export class Opened {
  readonly #closers: (() => unknown)[] = [];
  #closing: Promise<void> | undefined;

  /** Closes the part with the others; returns it, so that it can be made in the same line. */
  add<Part extends { close(): unknown }>(part: Part): Part {
    this.onClose(() => part.close());
    return part;
  }

  onClose(close: () => unknown): void {
    this.#closers.push(close);
  }

  /** One part that fails to close must not keep the others, the ledger and the lock among them, from being closed. */
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
