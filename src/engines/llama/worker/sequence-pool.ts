// Lends the sequences of a llama.cpp context to generations, in order of arrival.
import type { LlamaContext, LlamaContextSequence, Token } from "node-llama-cpp";
import type { Batching } from "./batching.ts";

interface Slot {
  readonly sequence: LlamaContextSequence;
  /** The sequential number of the last loan. The sequence with the lowest number is the least recently used. */
  lastUse: number;
}

interface Waiter {
  prompt: readonly Token[];
  resolve: (lease: Lease) => void;
}

export interface Lease {
  readonly sequence: LlamaContextSequence;
  /** Returns the sequence to the pool with its tokens, for reuse. If `broken`, the sequence is cleared first. */
  release(broken: boolean): Promise<void>;
}

export interface PoolState {
  total: number;
  busy: number;
  free: number;
  waiting: number;
}

/**
 * A sequence is reused for a prompt if at least this share of the prompt is in it. Otherwise its conversation is
 * kept for later.
 */
const worthwhileShare = 0.5;

export class SequencePool {
  readonly #batching: Batching;
  readonly #onUnusable: (error: unknown) => void;
  readonly #free: Slot[];
  readonly #waiters: Waiter[] = [];
  readonly #total: number;
  #loans = 0;

  /** `onUnusable` is called if a sequence cannot be cleared, because then the context is broken. */
  constructor(context: LlamaContext, batching: Batching, onUnusable: (error: unknown) => void) {
    this.#batching = batching;
    this.#onUnusable = onUnusable;
    this.#total = context.totalSequences;
    // The library throws if no sequence is left, so all are taken now and never given back.
    this.#free = Array.from({ length: this.#total }, () => ({ sequence: context.getSequence(), lastUse: 0 }));
  }

  get state(): PoolState {
    const free = this.#free.length;
    return { total: this.#total, busy: this.#total - free, free, waiting: this.#waiters.length };
  }

  /**
   * Lends a sequence, first come, first served. Prefers the sequence that shares the longest beginning with the
   * prompt, or the least recently used if none shares enough. Rejects with the signal's reason if aborted earlier.
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
