// Remembers when keys were last used and writes the times in the background, outside of requests.
import type { Log } from "../../base/log.ts";
import { inOrderOfTexts } from "../../base/text/text-order.ts";
import type { KeyStore } from "../../domain/principal.ts";

/** The last use of a key, stored with the cached key until it is written. */
export interface KeyUse {
  readonly keyId: string;
  /** The time of the use in Unix seconds. */
  seconds: number;
  /** True if the time is not written yet, so that a later time may replace it. */
  isWaiting: boolean;
}

export interface KeyActivityOptions {
  keys: Pick<KeyStore, "touchKeys">;
  log: Log;
  flushMs?: number;
  /** Maximum keys in one write. */
  maxAtOnce?: number;
}

const defaultFlushMs = 5_000;
/**
 * Maximum keys in one write; the others follow in the next write. Writing 100,000 used keys every few seconds would
 * slow their requests.
 */
const defaultMaxAtOnce = 2_000;
/** Maximum keys that wait for a write. Beyond it, times of further keys are dropped until there is space. */
const maxPending = 100_000;
/**
 * Uses wait in several arrays of this length, because the next garbage collection visits the whole of an array that
 * grew.
 */
const chunkLength = 512;

export class KeyActivity {
  readonly #options: KeyActivityOptions;
  /**
   * The waiting uses in order of arrival. A key that was read again meanwhile may have two entries; the later time is
   * written.
   */
  #waiting: KeyUse[][] = [];
  #count = 0;
  /** The uses to write next, in this order, if too many wait for one write. */
  #round: KeyUse[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(options: KeyActivityOptions) {
    this.#options = options;
  }

  /** Records that a key was used at `seconds`, Unix time. If too many uses wait for a write, drops this use. */
  used(use: KeyUse, seconds: number): void {
    if (!use.isWaiting) {
      if (this.#count >= maxPending) return;
      this.#wait(use);
    }
    use.seconds = seconds;
    this.#writeLater();
  }

  /** Writes pending times. If a write fails, they wait for the next one. */
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

  /** Takes the uses that have waited longest. A key that is used again while it waits keeps its position. */
  async #take(most: number): Promise<KeyUse[]> {
    if (this.#count <= most) this.#round = [...this.#round, ...this.#allWaiting()];
    else if (this.#round.length === 0) this.#round = await this.#newRound();
    const batch = this.#round.splice(0, most);
    for (const use of batch) use.isWaiting = false;
    this.#count -= batch.length;
    return batch;
  }

  /** Takes all waiting uses out of the queue. */
  #allWaiting(): KeyUse[] {
    const all = this.#waiting.flat();
    this.#waiting = [];
    return all;
  }

  /**
   * Returns all waiting uses, roughly in the order of their ids. The database has the same order, so keys on one page
   * are written together.
   */
  async #newRound(): Promise<KeyUse[]> {
    const uses = this.#allWaiting();
    const sorting = inOrderOfTexts(uses.map(({ keyId }) => keyId));
    for (;;) {
      const { done, value: order } = sorting.next();
      if (done) return Array.from(order, (index) => uses[index] as KeyUse);
      // Let requests run between two steps of sorting.
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}
