// Finds requests whose answer takes far longer to begin than usual at their deployment. Another deployment can then be
// asked.
import { type IndexedItem, IndexedSet } from "../../base/indexed-set.ts";

/** Minimum answers of a kind that must be known before a request of this kind can be overdue. */
const fewestAnswers = 16;
/** A request is overdue once its wait exceeds this multiple of the longest recent time until an answer began. */
const patience = 5;
/**
 * Minimum milliseconds after which a stream can be overdue. Some servers send nothing while they load a model, or while
 * the model thinks.
 */
const minMs = 120_000;
/** Fraction by which the longest time is reduced with each answer. */
const newest = 1 / 256;
/** Maximum number of times that the limit is doubled. It doubles with each consecutive overdue request. */
const maxMisses = 4;
const pollMs = 5_000;

/** Times until a stream begins, for one deployment and one kind of request. */
export class BeginTimes {
  /**
   * The longest time until a stream began. `#largest` is the largest prompt. Both are slowly reduced by later answers.
   */
  #slowestMs = 0;
  #largest = 0;
  #answers = 0;
  #misses = 0;

  /** Records an answer. `tokens` is the number of prompt tokens. */
  add(durationMs: number, tokens: number): void {
    this.#slowestMs = Math.max(durationMs, this.#slowestMs * (1 - newest));
    this.#largest = Math.max(tokens, this.#largest * (1 - newest));
    this.#answers++;
    this.#misses = 0;
  }

  /**
   * Called if a request was overdue. The limit doubles, so that a server that has become slower gets more time at the
   * next test.
   */
  missed(): void {
    this.#misses = Math.min(this.#misses + 1, maxMisses);
  }

  /**
   * Returns the milliseconds after which a request with this many prompt tokens is overdue. Returns undefined if too
   * few answers are known.
   */
  limitMs(tokens: number): number | undefined {
    if (this.#answers < fewestAnswers) return undefined;
    const size = Math.max(1, tokens / Math.max(1, this.#largest));
    const expectedMs = Math.max(minMs, patience * this.#slowestMs);
    return expectedMs * size * 2 ** this.#misses;
  }
}

/** A request whose answer has not begun. */
export interface AwaitedAnswer extends IndexedItem {
  /** Called every few seconds. `waitedMs` excludes the time in which this process did not run. */
  checked(waitedMs: number): void;
  /** Number of checks so far. Only `OverdueWatch` writes it. */
  checks: number;
}

/** Checks all requests whose answers have not begun. The timer runs only while there are any. */
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
    // Waiting time is measured by counting checks, not with a clock. After this process was frozen, its sockets may
    // contain answers that it has not read.
    for (const answer of [...this.#awaited]) answer.checked(pollMs * answer.checks++);
    if (this.#awaited.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
