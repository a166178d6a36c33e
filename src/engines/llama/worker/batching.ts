// Brings the generations that run side by side into common batches: each batch has the next token of all of them.
// The library begins a batch with whatever is queued at that moment. As the generations come back one after the other
// when a batch is done, most batches would lack some of them, which then take a batch of their own: four tenths more
// batches at four chats and at eight. And as one batch followed the other without end, a new chat would wait for the
// context until there happened to be a gap.
import type { BatchingOptions, CustomBatchingPrioritizationStrategy } from "node-llama-cpp";

/**
 * The number of times a batch is put off for a generation that is on its way. Each time lets the pending continuations
 * advance; three are enough in practice. Beyond the bound the batch is evaluated without it, so nothing can hang here.
 */
const maxDelays = 24;

export class Batching {
  /** Options for the context whose generations these are. */
  readonly options: BatchingOptions = {
    // At once: the library would wait for the next turn of the event loop, which here is only lost time.
    dispatchSchedule: (dispatch) => dispatch(),
    itemPrioritizationStrategy: (batch) => this.#arrange(batch),
  };
  /** Evaluations that are queued, or will be before the event loop turns. */
  #expected = 0;
  #delays = 0;
  #closers = 0;
  #gate: PromiseWithResolvers<void> | undefined;
  #afterwards: (() => void)[] = [];
  #runsAfterwards = false;
  /** A batch has just got under way: what is done now is beside it. */
  #hasTime = false;
  #underWay: Promise<void> | undefined;

  /** Call before an evaluation is queued; from then on batches wait for it. */
  enter(): void {
    this.#expected += 1;
  }

  /** Call when the next evaluation will not be queued at once, or never. */
  leave(): void {
    this.#expected -= 1;
    if (this.#expected === 0) this.#scheduleAfterwards();
  }

  /** A promise to wait for, where it is defined, between `leave` and another `enter`, before the next evaluation. */
  get pause(): Promise<void> | undefined {
    return this.#gate?.promise;
  }

  /**
   * Does work that needs the context between two batches. While one batch follows the other the library never lets go
   * of the context, so the generations are held up for a moment.
   */
  async between(work: () => Promise<void>): Promise<void> {
    this.#closers += 1;
    this.#gate ??= Promise.withResolvers();
    try {
      await work();
    } finally {
      this.#closers -= 1;
      if (this.#closers === 0) {
        this.#gate.resolve();
        this.#gate = undefined;
      }
    }
  }

  /** Resolves once the next batch is under way: meanwhile there is time. */
  get underWay(): Promise<void> {
    this.#underWay ??= new Promise((resolve) => {
      this.afterwards(() => {
        this.#underWay = undefined;
        resolve();
      });
    });
    return this.#underWay;
  }

  /** Runs `action` soon, and where generations run, once the next batch is under way: meanwhile there is time. */
  afterwards(action: () => void): void {
    this.#afterwards.push(action);
    if (this.#expected === 0 || this.#hasTime) this.#scheduleAfterwards();
  }

  #scheduleAfterwards(): void {
    if (this.#runsAfterwards || this.#afterwards.length === 0) return;
    this.#runsAfterwards = true;
    setImmediate(() => {
      this.#runsAfterwards = false;
      const actions = this.#afterwards;
      this.#afterwards = [];
      // The continuations of a batch, as the writing of a text or the reading of it, must not wait for another batch.
      this.#hasTime = true;
      setImmediate(() => {
        this.#hasTime = false;
      });
      for (const action of actions) action();
    });
  }

  #arrange({ items, size }: BatchRequest): BatchItems {
    if (items.length < this.#expected && this.#delays < maxDelays) {
      this.#delays += 1;
      return [];
    }
    this.#delays = 0;
    this.#scheduleAfterwards();
    return fairShares(items, size);
  }
}

type BatchRequest = Parameters<CustomBatchingPrioritizationStrategy>[0];
type BatchItems = ReturnType<CustomBatchingPrioritizationStrategy>;

/** Generations take one token each; prompts share what is left, the short ones in full. */
function fairShares(items: BatchRequest["items"], size: number): BatchItems {
  const ascending = items.toSorted((a, b) => a.tokens.length - b.tokens.length);
  let left = size;
  return ascending.map((item, index) => {
    const processAmount = Math.min(item.tokens.length, Math.floor(left / (ascending.length - index)));
    left -= processAmount;
    return { item, processAmount };
  });
}
