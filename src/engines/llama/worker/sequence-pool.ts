// Lends the sequences of the context, one per generation, in order of arrival.
import type { LlamaContext, LlamaContextSequence, Token } from "node-llama-cpp";
import type { Batching } from "./batching.ts";

interface Slot {
  readonly sequence: LlamaContextSequence;
  /** A number that grows with every loan. The sequence with the lowest number was unused for the longest time. */
  lastUse: number;
}

interface Waiter {
  prompt: readonly Token[];
  resolve: (lease: Lease) => void;
}

export interface Lease {
  readonly sequence: LlamaContextSequence;
  /** Returns the sequence to the pool with its tokens. If `broken`, its state is unreliable and is cleared first. */
  release(broken: boolean): Promise<void>;
}

export interface PoolState {
  total: number;
  busy: number;
  free: number;
  waiting: number;
}

/** The share of the prompt below which keeping another conversation's tokens is worth more than reusing these. */
const worthwhileShare = 0.5;

export class SequencePool {
  readonly #batching: Batching;
  readonly #onUnusable: (error: unknown) => void;
  readonly #free: Slot[];
  readonly #waiters: Waiter[] = [];
  readonly #total: number;
  #loans = 0;

  /** `onUnusable` is called when a sequence cannot even be cleared: then the context itself is broken. */
  constructor(context: LlamaContext, batching: Batching, onUnusable: (error: unknown) => void) {
    this.#batching = batching;
    this.#onUnusable = onUnusable;
    this.#total = context.totalSequences;
    // The library throws if it has no sequence left, so all are taken at once and never returned to it.
    this.#free = Array.from({ length: this.#total }, () => ({ sequence: context.getSequence(), lastUse: 0 }));
  }

  get state(): PoolState {
    const free = this.#free.length;
    return { total: this.#total, busy: this.#total - free, free, waiting: this.#waiters.length };
  }

  /**
   * Lends a sequence. Resolves once one is free, first come, first served. Of several, takes the sequence with the
   * longest common beginning with `prompt`, or the least recently used one if none shares enough of it. Rejects with
   * the signal's reason if aborted earlier.
   */
  async acquire(prompt: readonly Token[], signal: AbortSignal): Promise<Lease> {
    signal.throwIfAborted();
    const slot = this.#take(prompt);
    if (slot !== undefined) return this.#lend(slot);
    return await new Promise<Lease>((resolve, reject) => {
      const onAbort = () => {
        const index = this.#waiters.indexOf(waiter);
        if (index >= 0) this.#waiters.splice(index, 1);
        reject(signal.reason);
      };
      const waiter: Waiter = {
        prompt,
        resolve: (lease) => {
          signal.removeEventListener("abort", onAbort);
          resolve(lease);
        },
      };
      signal.addEventListener("abort", onAbort, { once: true });
      this.#waiters.push(waiter);
    });
  }

  #take(prompt: readonly Token[]): Slot | undefined {
    let best: Slot | undefined;
    let bestShared = 0;
    for (const slot of this.#free) {
      const shared = slot.sequence.compareContextTokens(prompt as Token[]).firstDifferentIndex;
      const reusable = shared >= prompt.length * worthwhileShare ? shared : 0;
      if (best === undefined || reusable > bestShared || (reusable === bestShared && slot.lastUse < best.lastUse)) {
        best = slot;
        bestShared = reusable;
      }
    }
    if (best !== undefined) this.#free.splice(this.#free.indexOf(best), 1);
    return best;
  }

  #lend(slot: Slot): Lease {
    this.#loans += 1;
    slot.lastUse = this.#loans;
    let released = false;
    return {
      sequence: slot.sequence,
      release: async (broken) => {
        if (released) return;
        released = true;
        if (broken) await this.#clear(slot);
        this.#free.push(slot);
        const waiter = this.#waiters.shift();
        const next = waiter === undefined ? undefined : this.#take(waiter.prompt);
        if (waiter !== undefined && next !== undefined) waiter.resolve(this.#lend(next));
      },
    };
  }

  async #clear(slot: Slot): Promise<void> {
    try {
      await this.#batching.between(() => slot.sequence.clearHistory());
    } catch (error) {
      this.#onUnusable(error);
    }
  }
}
