// Remembers when keys were last used and writes it in the background, off the path of requests.
import type { Log } from "../../base/log.ts";
import { inOrderOfTexts } from "../../base/text/text-order.ts";
import type { KeyStore } from "../../domain/principal.ts";

/** The last use of a key, as whoever knows the key keeps it: that is where it waits to be written. */
export interface KeyUse {
  readonly keyId: string;
  /** Unix time. */
  seconds: number;
  /** Whether it is not written yet: then a later time may be put in its place. */
  isWaiting: boolean;
}

export interface KeyActivityOptions {
  keys: Pick<KeyStore, "touchKeys">;
  log: Log;
  flushMs?: number;
  /** Keys that are written each time. */
  maxAtOnce?: number;
}

const defaultFlushMs = 5_000;
/** The others have their turn next time: to write all of 100,000 keys in use every few seconds would be felt by their requests. */
const defaultMaxAtOnce = 2_000;
/** Keys whose times wait to be written; beyond it the time of the next key is given up until there is room again. */
const maxPending = 100_000;
/** An array that is added to is visited as a whole by the next collection: uses wait in several, of so many each. */
const chunkLength = 512;

export class KeyActivity {
  readonly #options: KeyActivityOptions;
  /** In the order in which they came. A key that is read anew meanwhile may have two: the later one is written. */
  #waiting: KeyUse[][] = [];
  #count = 0;
  /** Where too many wait for one write: those that have their turn before all others, in the order in which they do. */
  #round: KeyUse[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(options: KeyActivityOptions) {
    this.#options = options;
  }

  /** The key was used at `seconds`, Unix time. Where there is no room for one more, it waits for the next use. */
  used(use: KeyUse, seconds: number): void {
    if (!use.isWaiting) {
      if (this.#count >= maxPending) return;
      this.#wait(use);
    }
    use.seconds = seconds;
    this.#writeLater();
  }

  /** Writes what is pending; what could not be written waits for the next time. */
  flush(): Promise<void> {
    return this.#write(Number.POSITIVE_INFINITY);
  }

  close(): Promise<void> {
    return this.flush();
  }

  #writeLater(): void {
    if (this.#timer) return;
    const { flushMs = defaultFlushMs, maxAtOnce = defaultMaxAtOnce } = this.#options;
    this.#timer = setTimeout(() => void this.#write(maxAtOnce), flushMs);
    this.#timer.unref();
  }

  #write(most: number): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#writing = this.#writing.then(() => this.#writeNow(most));
    return this.#writing;
  }

  async #writeNow(most: number): Promise<void> {
    const batch = await this.#take(most);
    if (batch.length === 0) return;
    if (this.#count > 0) this.#writeLater();
    const times = new Map<string, number>();
    for (const { keyId, seconds } of batch) times.set(keyId, Math.max(seconds, times.get(keyId) ?? seconds));
    try {
      await this.#options.keys.touchKeys(times);
    } catch (error) {
      this.#options.log.warn("key_activity_write_failed", { detail: String(error), keys: times.size });
      for (const use of batch) this.used(use, use.seconds);
    }
  }

  #wait(use: KeyUse): void {
    use.isWaiting = true;
    this.#count++;
    const last = this.#waiting.at(-1);
    if (last && last.length < chunkLength) last.push(use);
    else this.#waiting.push([use]);
  }

  /** Those that wait the longest: a key that is used again meanwhile keeps its place. */
  async #take(most: number): Promise<KeyUse[]> {
    if (this.#count <= most) this.#round = [...this.#round, ...this.#allWaiting()];
    else if (this.#round.length === 0) this.#round = await this.#newRound();
    const batch = this.#round.splice(0, most);
    for (const use of batch) use.isWaiting = false;
    this.#count -= batch.length;
    return batch;
  }

  /** Those that come later wait for themselves. */
  #allWaiting(): KeyUse[] {
    const all = this.#waiting.flat();
    this.#waiting = [];
    return all;
  }

  /**
   * All that wait now, in about the order of their ids, which is the one in which a database has them: those that share a
   * page are written together, where each would change a page of its own.
   */
  async #newRound(): Promise<KeyUse[]> {
    const uses = this.#allWaiting();
    const sorting = inOrderOfTexts(uses.map(({ keyId }) => keyId));
    for (;;) {
      const { done, value: order } = sorting.next();
      if (done) return Array.from(order, (index) => uses[index] as KeyUse);
      // Requests have their turn.
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}
