// Records an engine's answer times by the number of requests in flight, to detect a queue inside the engine.
import { BeginTimes } from "./overdue.ts";

export interface Answer {
  /** Number of the request, as returned by `ConcurrencyLimit.sent`. */
  sent: number;
  /** Requests in flight at the engine when this one was sent, including this one. */
  inFlight: number;
  /** Milliseconds from sending the request to the first byte of the body. */
  durationMs: number;
  /**
   * The kind of the answer. Times are compared only between answers of the same model and operation, both streamed or
   * both not.
   */
  kind: AnswerKind;
}

/** Number of levels. Each level stands for twice as many requests in flight as the level below. */
const levels = 20;

/**
 * Answer times of one kind. For each level of requests in flight, it stores the mean of log(time) and the number of
 * answers.
 */
export class AnswerKind {
  #begins: BeginTimes | undefined;
  /** The mean and the count of each level, next to each other in one array. */
  #figures: Float64Array | undefined;

  /** Times until answers of this kind began, used to judge a single request. `clear` does not remove them. */
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

/** Number of recent answers over which a level's mean is computed, as a moving average. */
const remembered = 16;
const fewestAnswers = 8;
/**
 * Minimum answers at a lower level that a comparison needs. A burst passes through low levels only once, so it leaves
 * few answers there.
 */
const fewestBelow = 4;
/** A queue is suspected if log(time) rises at least this fast with log(requests in flight). 1 would be a pure queue. */
const doubtfulSlope = 0.6;
/** Minimum rise of log(time) for which a trial starts. If times have not doubled, hardly any request waits. */
const minRise = Math.LN2;
/** Minimum log(time) for which a trial starts, because shorter times depend on the gateway's own load. */
const minLogTime = Math.log(1_000);

export class AnswerTimes {
  readonly #kinds: AnswerKind[] = [];

  /** Returns a new kind of answers. Its answers are only compared with each other. */
  newKind(): AnswerKind {
    const kind = new AnswerKind();
    this.#kinds.push(kind);
    return kind;
  }

  add({ kind, inFlight, durationMs }: Answer): void {
    kind.add(levelOf(inFlight), logTime(durationMs));
  }

  /**
   * Reports whether answer times rise roughly in proportion to the requests in flight, compared with at least one lower
   * level.
   */
  looksQueued(answer: Answer): boolean {
    return this.#rises(answer, fewestBelow, doubtfulSlope);
  }

  /**
   * Reports whether answers take at least twice as long as at one of the lower levels. A single answer at that level
   * suffices.
   */
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

/** The sums of answer times for a number of consecutive answers. */
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
   * Returns the slope of log(time) over log(requests in flight) between two samples: 0 if the engine works in parallel,
   * 1 if requests queue. Each kind is compared separately. Returns undefined if both samples had about the same number
   * in flight.
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
