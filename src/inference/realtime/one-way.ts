// One way of a relayed connection: its messages in their order, each once the one before is done with, and no more of them than are taken at the other end.
import type { PausableLink } from "../../base/bytes/message-link.ts";

export interface OneWayOptions {
  /** Where they come from; kept waiting while too much of it is here. */
  from: () => PausableLink | undefined;
  /** Whether one can be taken now; where not, `goOn` is called once it can. */
  hasRoom(): boolean;
  /** Never rejects, and never throws. */
  take(message: Uint8Array): void | Promise<void>;
  /** So many bytes of what was added are held no more; left out: nobody counts them. */
  release?(bytes: number): void;
}

/** With more than this here the sender is kept waiting. */
export const maxHeldBytes = 256 * 1024;

export class OneWay {
  readonly #options: OneWayOptions;
  readonly #waiting: Uint8Array[] = [];
  #bytes = 0;
  #busy = false;
  #paused = false;
  #stopped = false;
  /** Called once everything is done with, where nothing more comes. */
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

  /** Takes what waits, as far as there is room for it. */
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

  /** Nothing more comes: `then` is called once, behind the last of what came before, and once there is room. */
  end(then: () => void): void {
    this.#onEnd = then;
    this.goOn();
  }

  /** Takes nothing more, and forgets what waits. */
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
    const isFull = this.#bytes > maxHeldBytes || !this.#options.hasRoom();
    if (this.#stopped || isFull === this.#paused) return;
    const link = this.#options.from();
    if (!link) return;
    this.#paused = isFull;
    if (isFull) link.pause();
    else link.resume();
  }
}
