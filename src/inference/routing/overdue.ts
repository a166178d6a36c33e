// Finds requests whose deployment takes far longer to begin an answer than it ever did, so that another one can be asked.
import { type IndexedItem, IndexedSet } from "../../base/indexed-set.ts";

/** Answers of a kind that have to be known before any request of that kind is overdue. */
const fewestAnswers = 16;
/** A request is overdue after this many times the slowest answer that is known. */
const patience = 5;
/** No stream is overdue sooner: some servers send nothing while a model thinks, and load a model without notice. */
const minMs = 120_000;
/** Weight of a new answer against the slowest one that is known. */
const newest = 1 / 256;
/** The bound doubles with each overdue request in a row, this often at most. */
const maxMisses = 4;
const pollMs = 5_000;

/** Times from a request to the begin of its stream, for one deployment and one kind of request. */
export class BeginTimes {
  /** Milliseconds and tokens: maxima that later answers outweigh slowly. */
  #slowestMs = 0;
  #largest = 0;
  #answers = 0;
  #misses = 0;

  /** `tokens`: those of the prompt. */
  add(durationMs: number, tokens: number): void {
    this.#slowestMs = Math.max(durationMs, this.#slowestMs * (1 - newest));
    this.#largest = Math.max(tokens, this.#largest * (1 - newest));
    this.#answers++;
    this.#misses = 0;
  }

  /** A request was overdue. A server that needs longer by now, as to load its model, gets more time with each trial. */
  missed(): void {
    this.#misses = Math.min(this.#misses + 1, maxMisses);
  }

  /** Milliseconds after which a request is overdue; undefined where too little is known. */
  limitMs(tokens: number): number | undefined {
    if (this.#answers < fewestAnswers) return undefined;
    const size = Math.max(1, tokens / Math.max(1, this.#largest));
    const expectedMs = Math.max(minMs, patience * this.#slowestMs);
    return expectedMs * size * 2 ** this.#misses;
  }
}

/** A request that waits for the begin of its answer. */
export interface AwaitedAnswer extends IndexedItem {
  /** Called every few seconds. `waitedMs`: without the time in which this process did not run. */
  checked(waitedMs: number): void;
  /** Looks so far. Only the watch writes it. */
  checks: number;
}

/** Looks at all that wait, with one timer, which runs only while there are any. */
export class OverdueWatch {
  readonly #awaited = new IndexedSet<AwaitedAnswer>();
  #timer: ReturnType<typeof setInterval> | undefined;

  add(answer: AwaitedAnswer): void {
    this.#awaited.add(answer);
    if (this.#timer) return;
    this.#timer = setInterval(() => this.check(), pollMs);
    this.#timer.unref();
  }

  delete(answer: AwaitedAnswer): void {
    this.#awaited.delete(answer);
  }

  check(): void {
    // A process that was frozen has answers in its sockets that it has not read: a look is counted, and no clock is asked.
    for (const answer of [...this.#awaited]) answer.checked(pollMs * answer.checks++);
    if (this.#awaited.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
