// Makes parallel generations share batches, each with the next token of every generation. The library starts a batch
// with the evaluations that are queued. A generation that queues its next token a moment later would miss the batch and
// need another one (40 % more batches, measured with four and eight chats). A new chat would also wait long for the
// context, because batches leave no gap.
import type { BatchingOptions, CustomBatchingPrioritizationStrategy } from "node-llama-cpp";

/**
 * The number of times that a batch is delayed for a generation that will queue its next token soon. Three are usually
 * enough. After the last delay the batch starts without that generation, so nothing can hang.
 */
const maxDelays = 24;

export class Batching {
  /** The batching options for the library's context. */
  readonly options: BatchingOptions = {
    // Batches start immediately. By default the library waits for the next tick of the event loop.
    dispatchSchedule: (dispatch) => dispatch(),
    itemPrioritizationStrategy: (batch) => this.#arrange(batch),
  };
  /** The number of evaluations that a batch waits for. */
  #expected = 0;
  #delays = 0;
  #closers = 0;
  #gate: PromiseWithResolvers<void> | undefined;
  #afterwards: (() => void)[] = [];
  #runsAfterwards = false;
  /** True just after a batch has started, when other work runs beside the computation. */
  #hasTime = false;
  #underWay: Promise<void> | undefined;

  /** Call this before you queue an evaluation. From then on batches wait for the evaluation. */
  enter(): void {
    this.#expected += 1;
  }

  /** Call this if the generation will not queue another evaluation at once. */
  leave(): void {
    this.#expected -= 1;
    if (this.#expected === 0) this.#scheduleAfterwards();
  }

  /**
   * The promise of a pause, or undefined if there is no pause. Call `leave`, await the promise, and call `enter` before
   * the next evaluation.
   */
  get pause(): Promise<void> | undefined {
    return this.#gate?.promise;
  }

  /**
   * Runs `work`, which needs the context while no batch is computed. Pauses the generations, because otherwise
   * batches follow each other without a gap.
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

  /** Resolves once the next batch is being computed, when there is time for other work. */
  get underWay(): Promise<void> {
    this.#underWay ??= new Promise((resolve) => {
      this.afterwards(() => {
        this.#underWay = undefined;
        resolve();
      });
    });
    return this.#underWay;
  }

  /** Runs `action` soon. While generations run, it runs during the computation of the next batch. */
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
      // If one of these actions adds another action, the added action also runs soon and does not wait for another
      // batch.
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

/** Divides the batch size: each generation takes one token, and prompts share the rest, shortest first. */
function fairShares(items: BatchRequest["items"], size: number): BatchItems {
  const ascending = items.toSorted((a, b) => a.tokens.length - b.tokens.length);
  let remaining = size;
  return ascending.map((item, index) => {
    const processAmount = Math.min(item.tokens.length, Math.floor(remaining / (ascending.length - index)));
    remaining -= processAmount;
    return { item, processAmount };
  });
}
