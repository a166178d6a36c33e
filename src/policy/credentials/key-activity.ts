// Remembers when keys were last used and writes it in the background, off the path of requests.
import type { Log } from "../../base/log.ts";
import { inOrderOfTexts } from "../../base/text/text-order.ts";
import type { KeyStore } from "../../domain/principal.ts";

/** A use of a key that is not written yet, or was. Who knows it tells the next use here for as long as it waits. */
export interface KeyUse {
  /** Unix time. */
  seconds: number;
  isWaiting: boolean;
}

export interface KeyActivityOptions {
  keys: Pick<KeyStore, "touchKeys">;
  log: Log;
  flushMs?: number;
  /** Keys that are written each time. */
  mostAtOnce?: number;
}

const defaultFlushMs = 5_000;
/** The others have their turn next time: to write all of 100,000 keys in use every few seconds would be felt by their requests. */
const defaultMostAtOnce = 2_000;
/** Keys whose times wait to be written; beyond it the time of the next key is given up until there is room again. */
const maxPending = 100_000;
/** Those included whose times were written. */
const maxKnown = 2 * maxPending;

export class KeyActivity {
  readonly #options: KeyActivityOptions;
  /**
   * Those that wait, and until the next round begins those that were written: to take one out and put it in again with its
   * next use would have the collector visit all of a large map each time.
   */
  readonly #uses = new Map<string, KeyUse>();
  #waiting = 0;
  /** Where too many wait for one write: those that have their turn before all others, in the order in which they do. */
  #round: string[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(options: KeyActivityOptions) {
    this.#options = options;
  }

  /** At `seconds`, Unix time. Undefined where there is no room for it. */
  used(keyId: string, seconds: number): KeyUse | undefined {
    let use = this.#uses.get(keyId);
    if (!use?.isWaiting && this.#waiting >= maxPending) return undefined;
    if (!use) {
      if (this.#uses.size >= maxKnown) this.#forgetWritten();
      use = { seconds, isWaiting: false };
      this.#uses.set(keyId, use);
    }
    if (!use.isWaiting) this.#waiting++;
    use.isWaiting = true;
    use.seconds = seconds;
    this.#writeLater();
    return use;
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
    const { flushMs = defaultFlushMs, mostAtOnce = defaultMostAtOnce } = this.#options;
    this.#timer = setTimeout(() => void this.#write(mostAtOnce), flushMs);
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
    if (batch.size === 0) return;
    if (this.#waiting > 0) this.#writeLater();
    try {
      await this.#options.keys.touchKeys(batch);
    } catch (error) {
      this.#options.log.warn("key_activity_write_failed", { detail: String(error), keys: batch.size });
      for (const [keyId, seconds] of batch) if (!this.#uses.get(keyId)?.isWaiting) this.used(keyId, seconds);
    }
  }

  /** Those that wait the longest: a key that is used again meanwhile keeps its place. */
  async #take(most: number): Promise<Map<string, number>> {
    if (this.#waiting <= most) this.#round = this.#waitingAlone();
    else if (this.#round.length === 0) this.#round = await this.#newRound();
    const batch = new Map<string, number>();
    for (const keyId of this.#round.splice(0, most)) {
      const use = this.#uses.get(keyId);
      if (!use) continue;
      use.isWaiting = false;
      this.#waiting--;
      batch.set(keyId, use.seconds);
    }
    return batch;
  }

  /** All that wait; the others are forgotten. */
  #waitingAlone(): string[] {
    this.#forgetWritten();
    return [...this.#uses.keys()];
  }

  /** Those that were not used since. */
  #forgetWritten(): void {
    if (this.#waiting === this.#uses.size) return;
    for (const [keyId, { isWaiting }] of this.#uses) if (!isWaiting) this.#uses.delete(keyId);
  }

  /**
   * All that wait now, in about the order of their ids, which is the one in which a database has them: those that share a
   * page are written together, where each would change a page of its own.
   */
  async #newRound(): Promise<string[]> {
    const keyIds = this.#waitingAlone();
    const sorting = inOrderOfTexts(keyIds);
    for (;;) {
      const { done, value: order } = sorting.next();
      if (done) return Array.from(order, (place) => keyIds[place] ?? "");
      // Requests have their turn.
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}
