// Remembers when keys were last used and writes it in the background, off the path of requests.
import type { Log } from "../domain/log.ts";
import type { KeyStore } from "../domain/principal.ts";

export interface KeyActivityOptions {
  keys: Pick<KeyStore, "touchKeys">;
  log: Log;
  flushMs?: number;
}

const defaultFlushMs = 5_000;
/** Keys whose times wait to be written; beyond it the time of the next key is given up until there is room again. */
const maxPending = 100_000;

export class KeyActivity {
  readonly #options: KeyActivityOptions;
  #pending = new Map<string, number>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(options: KeyActivityOptions) {
    this.#options = options;
  }

  /** At `seconds`, Unix time. */
  used(keyId: string, seconds: number): void {
    if (this.#pending.size >= maxPending && !this.#pending.has(keyId)) return;
    this.#pending.set(keyId, seconds);
    if (this.#timer) return;
    this.#timer = setTimeout(() => void this.flush(), this.#options.flushMs ?? defaultFlushMs);
    this.#timer.unref();
  }

  /** Writes what is pending; what could not be written waits for the next time. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#writing = this.#writing.then(() => this.#write());
    return this.#writing;
  }

  close(): Promise<void> {
    return this.flush();
  }

  async #write(): Promise<void> {
    if (this.#pending.size === 0) return;
    const batch = this.#pending;
    this.#pending = new Map();
    try {
      await this.#options.keys.touchKeys(batch);
    } catch (error) {
      this.#options.log.warn("key_activity_write_failed", { detail: String(error), keys: batch.size });
      for (const [keyId, seconds] of batch) if (!this.#pending.has(keyId)) this.used(keyId, seconds);
    }
  }
}
