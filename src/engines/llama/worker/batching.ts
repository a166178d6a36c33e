// Brings parallel generations into common batches: each batch has the next token of all of them. The library starts a
// batch with whatever is queued at that moment. Generations come back one after another when a batch ends, so most
// batches would lack some, which then take a separate batch: 40 % more batches were measured, with four chats and with
// eight. And since batches follow each other without end, a new chat would wait for the context until a gap happened.
import type { BatchingOptions, CustomBatchingPrioritizationStrategy } from "node-llama-cpp";

/**
 * The most delays of a batch for a generation that will queue its next token soon. Each delay lets the pending
 * continuations advance; three are enough in practice. After the last, the batch is evaluated without that generation,
 * so nothing can hang here.
 */
const maxDelays = 24;

export class Batching {
  /** The options for the context that runs these generations. */
  readonly options: BatchingOptions = {
    // Batches are dispatched immediately: the library would wait for the next turn of the event loop, which only loses
    // time here.
    dispatchSchedule: (dispatch) => dispatch(),
    itemPrioritizationStrategy: (batch) => this.#arrange(batch),
  };
  /** The number of evaluations that are queued, or will be before the next turn of the event loop. */
  #expected = 0;
  #delays = 0;
  #closers = 0;
  #gate: PromiseWithResolvers<void> | undefined;
  #afterwards: (() => void)[] = [];
  #runsAfterwards = false;
  /** True while a batch has just started, so that work done now runs beside it. */
  #hasTime = false;
  #underWay: Promise<void> | undefined;

  /** Call this method before an evaluation is queued. From then on batches wait for the evaluation. */
  enter(): void {
    this.#expected += 1;
  }

  /** Call this method if the next evaluation will not be queued at once, or never. */
  leave(): void {
    this.#expected -= 1;
    if (this.#expected === 0) this.#scheduleAfterwards();
  }

  /** A promise to await, if defined, after `leave` and before another `enter`, ahead of the next evaluation. */
  get pause(): Promise<void> | undefined {
    return this.#gate?.promise;
  }

  /**
   * Does work that needs the context between two batches. The library never releases the context while batches follow
   * each other, so the generations are paused for a moment.
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

  /** Resolves once the next batch has started, when there is time for other work. */
  get underWay(): Promise<void> {
    this.#underWay ??= new Promise((resolve) => {
      this.afterwards(() => {
        this.#underWay = undefined;
        resolve();
      });
    });
    return this.#underWay;
  }

  /** Runs `action` soon. While generations run, it runs once the next batch has started, when there is time. */
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
      // The continuations of a batch, such as writing or reading a text, must not wait for another batch.
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

/** Generations take one token each. Prompts share the rest, the short ones completely. */
function fairShares(items: BatchRequest["items"], size: number): BatchItems {
  const ascending = items.toSorted((a, b) => a.tokens.length - b.tokens.length);
  let remaining = size;
  return ascending.map((item, index) => {
    const processAmount = Math.min(item.tokens.length, Math.floor(remaining / (ascending.length - index)));
    remaining -= processAmount;
    return { item, processAmount };
  });
}
