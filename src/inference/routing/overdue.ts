// Finds requests whose answer takes far longer to begin than usual at their deployment, so that another one can be
// asked.
import { type IndexedItem, IndexedSet } from "../../base/indexed-set.ts";

/** Minimum known answers of a kind before a request of that kind can be overdue. */
const fewestAnswers = 16;
/** A request is overdue after this multiple of the longest recent time until an answer began. */
const patience = 5;
/**
 * Minimum milliseconds before a stream is overdue, because some servers send nothing while they load a model or the
 * model thinks.
 */
const minMs = 120_000;
/** Fraction by which the longest known time decays with each answer. */
const newest = 1 / 256;
/** The limit doubles with each consecutive overdue request, up to this many times. */
const maxMisses = 4;
const pollMs = 5_000;

/** Times until a stream begins, for one deployment and one kind of request. */
export class BeginTimes {
  /** Longest time and largest prompt. Both decay slowly with later answers. */
  #slowestMs = 0;
  #largest = 0;
  #answers = 0;
  #misses = 0;

  /** `tokens` is the number of prompt tokens. */
  add(durationMs: number, tokens: number): void {
    this.#slowestMs = Math.max(durationMs, this.#slowestMs * (1 - newest));
    this.#largest = Math.max(tokens, this.#largest * (1 - newest));
    this.#answers++;
    this.#misses = 0;
  }

  /**
   * Called for an overdue request. The limit doubles, so that a server that is slower now gets more time at the next
   * test.
   */
  missed(): void {
    this.#misses = Math.min(this.#misses + 1, maxMisses);
  }

  /**
   * Returns the milliseconds after which a request with this many prompt tokens is overdue; undefined if too few
   * answers are known.
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
  /** Called every few seconds. `waitedMs` excludes time in which this process did not run. */
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
    // Count checks instead of reading a clock: after this process was frozen, sockets may hold answers that it has not
    // read.
    for (const answer of [...this.#awaited]) answer.checked(pollMs * answer.checks++);
    if (this.#awaited.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
