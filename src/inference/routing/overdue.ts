// Finds requests whose deployment takes far longer to begin an answer than ever before, so that another one can be
// asked.
import { type IndexedItem, IndexedSet } from "../../base/indexed-set.ts";

/** Minimum known answers of a kind before a request of that kind can be overdue. */
const fewestAnswers = 16;
/** A request is overdue after this multiple of the slowest known answer. */
const patience = 5;
/**
 * Minimum milliseconds before a stream is overdue: some servers send nothing while a model thinks, and load models
 * silently.
 */
const minMs = 120_000;
/** Weight of a new answer against the slowest known one. */
const newest = 1 / 256;
/** The limit doubles with each consecutive overdue request, at most this often. */
const maxMisses = 4;
const pollMs = 5_000;

/** Times from a request to the beginning of its stream, for one deployment and one kind of request. */
export class BeginTimes {
  /** Milliseconds and tokens: maxima that decay slowly with later answers. */
  #slowestMs = 0;
  #largest = 0;
  #answers = 0;
  #misses = 0;

  /** `tokens` are those of the prompt. */
  add(durationMs: number, tokens: number): void {
    this.#slowestMs = Math.max(durationMs, this.#slowestMs * (1 - newest));
    this.#largest = Math.max(tokens, this.#largest * (1 - newest));
    this.#answers++;
    this.#misses = 0;
  }

  /**
   * Called for an overdue request. A server that is slower now, for example because it loads its model, gets more time
   * with each test.
   */
  missed(): void {
    this.#misses = Math.min(this.#misses + 1, maxMisses);
  }

  /** Returns the milliseconds after which a request is overdue; undefined if too little is known. */
  limitMs(tokens: number): number | undefined {
    if (this.#answers < fewestAnswers) return undefined;
    const size = Math.max(1, tokens / Math.max(1, this.#largest));
    const expectedMs = Math.max(minMs, patience * this.#slowestMs);
    return expectedMs * size * 2 ** this.#misses;
  }
}

/** A request that waits for the beginning of its answer. */
export interface AwaitedAnswer extends IndexedItem {
  /** Called every few seconds. `waitedMs` excludes time in which this process did not run. */
  checked(waitedMs: number): void;
  /** Number of checks so far. Only the watch writes it. */
  checks: number;
}

/** Checks all waiting requests, with one timer that runs only while there are any. */
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
    // Checks are counted instead of reading a clock: a process that was frozen has unread answers in its sockets.
    for (const answer of [...this.#awaited]) answer.checked(pollMs * answer.checks++);
    if (this.#awaited.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
