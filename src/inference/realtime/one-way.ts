// One direction of a relayed connection. Messages are handled one after another, no faster than the receiver reads.
import type { PausableLink } from "../../base/bytes/message-link.ts";

export interface OneWayOptions {
  /** Returns the sender's connection, which is paused while too many bytes wait. */
  from: () => PausableLink | undefined;
  /** Reports whether the receiver can accept a message. If it cannot, `goOn` must be called as soon as it can. */
  hasRoom(): boolean;
  /** Handles a message. Must neither throw nor reject. */
  take(message: Uint8Array): void | Promise<void>;
  /** Called when this many bytes of added messages are no longer buffered. */
  release?(bytes: number): void;
}

/** Number of buffered bytes above which the sender is paused. */
export const maxBufferedBytes = 256 * 1024;

export class OneWay {
  readonly #options: OneWayOptions;
  readonly #waiting: Uint8Array[] = [];
  #bytes = 0;
  #busy = false;
  #paused = false;
  #stopped = false;
  /** Called once, after the last message was handled. */
  #onEnd: (() => void) | undefined;

  constructor(options: OneWayOptions) {
    this.#options = options;
  }

  add(message: Uint8Array): void {
    if (this.#stopped) return;
    this.#waiting.push(message);
    this.#bytes += message.byteLength;
    this.goOn();
  }

  /** Handles buffered messages while the receiver accepts them. */
  goOn(): void {
    while (!this.#busy && this.#options.hasRoom()) {
      const message = this.#waiting.shift();
      if (!message) break;
      this.#bytes -= message.byteLength;
      const taken = this.#options.take(message);
      if (!taken) {
        this.#options.release?.(message.byteLength);
        continue;
      }
      this.#busy = true;
      void taken.then(() => {
        this.#options.release?.(message.byteLength);
        this.#busy = false;
        this.goOn();
      });
    }
    this.#press();
    this.#endIfDone();
  }

  /** Marks the end of this direction. `then` is called once, when all buffered messages are handled. */
  end(then: () => void): void {
    this.#onEnd = then;
    this.goOn();
  }

  /** Drops buffered messages, and ignores messages that are added later. */
  stop(): void {
    this.#stopped = true;
    for (const { byteLength } of this.#waiting.splice(0)) this.#options.release?.(byteLength);
    this.#bytes = 0;
    this.#endIfDone();
  }

  #endIfDone(): void {
    if (!this.#onEnd || this.#busy || this.#waiting.length > 0 || !this.#options.hasRoom()) return;
    const then = this.#onEnd;
    this.#onEnd = undefined;
    then();
  }

  #press(): void {
    const isFull = this.#bytes > maxBufferedBytes || !this.#options.hasRoom();
    if (this.#stopped || isFull === this.#paused) return;
    const link = this.#options.from();
    if (!link) return;
    this.#paused = isFull;
    if (isFull) link.pause();
    else link.resume();
  }
}
