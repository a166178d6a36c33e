// Records the times of an engine's answers by the number of requests in flight, to detect that requests queue inside
// the engine.
import { BeginTimes } from "./overdue.ts";

export interface Answer {
  /** Number of the request, from `ConcurrencyLimit.sent`. */
  sent: number;
  /** Requests at the engine when this one was sent, including this one. */
  inFlight: number;
  /** Time from sending to the first byte of the body. */
  durationMs: number;
  /** Only answers of one kind are compared: the same model, operation and streaming. */
  kind: AnswerKind;
}

/**
 * Number of levels, one for each doubling of requests in flight; no engine takes more than the last level stands for.
 */
const levels = 20;

/** For one kind of answers: the mean of log(time) and the number of answers, by requests in flight. */
export class AnswerKind {
  #begins: BeginTimes | undefined;
  /** Mean and count of each level side by side, because each answer needs both. */
  #figures: Float64Array | undefined;

  /**
   * Times to the beginning of these answers. `clear` keeps them, because they are used to judge one request and not the
   * concurrency.
   */
  get begins(): BeginTimes {
    this.#begins ??= new BeginTimes();
    return this.#begins;
  }

  mean(level: number): number {
    return this.#figures?.[2 * level] ?? 0;
  }

  count(level: number): number {
    return this.#figures?.[2 * level + 1] ?? 0;
  }

  add(level: number, value: number): void {
    this.#figures ??= new Float64Array(2 * levels);
    const count = Math.min(this.count(level) + 1, remembered);
    this.#figures[2 * level] = this.mean(level) + (value - this.mean(level)) / count;
    this.#figures[2 * level + 1] = count;
  }

  clear(): void {
    this.#figures?.fill(0);
  }
}

/** Number of answers that a level's mean effectively covers. */
const remembered = 16;
const fewestAnswers = 8;
/** Minimum answers at a lower level. A burst passes the lower levels once: four answers for levels from 4 on. */
const fewestBelow = 4;
/**
 * Rise of log(time) per doubling of requests in flight, relative to that of a queue, from which on a queue is
 * suspected.
 */
const doubtfulSlope = 0.6;
/** Minimum rise worth a trial: below it hardly any request waits. */
const minRise = Math.LN2;
/** Minimum time worth a trial: nothing starves within a second, and short times rise with the gateway's own load. */
const minLogTime = Math.log(1_000);

export class AnswerTimes {
  readonly #kinds: AnswerKind[] = [];

  /** Returns a new kind of answers, which are compared only with each other. */
  newKind(): AnswerKind {
    const kind = new AnswerKind();
    this.#kinds.push(kind);
    return kind;
  }

  add({ kind, inFlight, durationMs }: Answer): void {
    kind.add(levelOf(inFlight), logTime(durationMs));
  }

  /**
   * Reports whether the times of this kind of answers rise about in proportion to the requests in flight, compared with
   * any lower level.
   */
  looksQueued(answer: Answer): boolean {
    return this.#rises(answer, fewestBelow, doubtfulSlope);
  }

  /** Reports whether answers take twice as long as at any lower level, however few are known. */
  isSlow(answer: Answer): boolean {
    return this.#rises(answer, 1, 0);
  }

  clear(): void {
    for (const kind of this.#kinds) kind.clear();
  }

  #rises({ kind, inFlight }: Answer, fewest: number, minSlope: number): boolean {
    const top = levelOf(inFlight);
    const mean = kind.mean(top);
    if (kind.count(top) < fewestAnswers || mean < minLogTime) return false;
    for (let level = top - 1; level >= 0; level--) {
      if (kind.count(level) < fewest) continue;
      const rise = mean - kind.mean(level);
      if (rise >= minRise && rise >= minSlope * (top - level) * Math.LN2) return true;
    }
    return false;
  }
}

interface Sums {
  count: number;
  inFlight: number;
  time: number;
}

/** A sample of consecutive answers. */
export class Sample {
  readonly #kinds = new Map<AnswerKind, Sums>();
  #size = 0;
  #inFlight = 0;

  get size(): number {
    return this.#size;
  }

  get meanInFlight(): number {
    return this.#inFlight / Math.max(1, this.#size);
  }

  add(answer: Answer): void {
    const { kind, inFlight, durationMs } = answer;
    let sums = this.#kinds.get(kind);
    if (!sums) {
      sums = { count: 0, inFlight: 0, time: 0 };
      this.#kinds.set(kind, sums);
    }
    sums.count++;
    sums.inFlight += Math.log(inFlight);
    sums.time += logTime(durationMs);
    this.#size++;
    this.#inFlight += inFlight;
  }

  /**
   * Returns the slope of log(time) over log(in flight) between this sample and another, comparing each kind with
   * itself: 0 if the engine works on all requests at once, 1 if they queue. Undefined if both had about the same
   * number in flight.
   */
  slopeTo(other: Sample): number | undefined {
    let [run, rise, weights] = [0, 0, 0];
    for (const [kind, mine] of this.#kinds) {
      const theirs = other.#kinds.get(kind);
      if (!theirs) continue;
      const weight = (mine.count * theirs.count) / (mine.count + theirs.count);
      run += weight * (mine.inFlight / mine.count - theirs.inFlight / theirs.count);
      rise += weight * (mine.time / mine.count - theirs.time / theirs.count);
      weights += weight;
    }
    return run > minRun * weights ? rise / run : undefined;
  }
}

const minRun = 0.3;

function levelOf(inFlight: number): number {
  return Math.min(31 - Math.clz32(inFlight), levels - 1);
}

function logTime(durationMs: number): number {
  return Math.log(Math.max(durationMs, 0.01));
}
