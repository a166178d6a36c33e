// Brings parallel generations into common batches: each batch has the next token of all of them. The library starts a
// batch with whatever is queued at that moment. Generations come back one after another when a batch ends, so most
// batches would lack some, which then take a separate batch: four tenths more batches at four chats and at eight. And
// since batches follow each other without end, a new chat would wait for the context until a gap happened.
import type { BatchingOptions, CustomBatchingPrioritizationStrategy } from "node-llama-cpp";

/**
 * How many times a batch is delayed for a generation that is on its way. Each time lets the pending continuations
 * advance; three are enough in practice. Then the batch is evaluated without it, so nothing can hang here.
 */
const maxDelays = 24;

export class Batching {
  /** Options for the context of these generations. */
  readonly options: BatchingOptions = {
    // Immediately: the library would wait for the next turn of the event loop, which only loses time here.
    dispatchSchedule: (dispatch) => dispatch(),
    itemPrioritizationStrategy: (batch) => this.#arrange(batch),
  };
  /** Evaluations that are queued, or will be before the next turn of the event loop. */
  #expected = 0;
  #delays = 0;
  #closers = 0;
  #gate: PromiseWithResolvers<void> | undefined;
  #afterwards: (() => void)[] = [];
  #runsAfterwards = false;
  /** A batch has just started, so work done now runs beside it. */
  #hasTime = false;
  #underWay: Promise<void> | undefined;

  /** Call it before an evaluation is queued. From then on batches wait for it. */
  enter(): void {
    this.#expected += 1;
  }

  /** Call it if the next evaluation will not be queued at once, or never. */
  leave(): void {
    this.#expected -= 1;
    if (this.#expected === 0) this.#scheduleAfterwards();
  }

  /** If defined, a promise to await between `leave` and another `enter`, before the next evaluation. */
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

  /** Resolves once the next batch runs: then there is time for other work. */
  get underWay(): Promise<void> {
    this.#underWay ??= new Promise((resolve) => {
      this.afterwards(() => {
        this.#underWay = undefined;
        resolve();
      });
    });
    return this.#underWay;
  }

  /** Runs `action` soon; if generations run, once the next batch runs, when there is time. */
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
