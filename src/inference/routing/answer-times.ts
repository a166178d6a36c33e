// Times of an engine's answers by how many requests were in flight: what raises the doubt that they wait inside of it.
import { BeginTimes } from "./overdue.ts";

export interface Answer {
  /** Number of the request, from `ConcurrencyLimit.sent`. */
  sent: number;
  /** Requests with the engine when it was sent, itself included. */
  inFlight: number;
  /** From sending to the first byte of the body. */
  durationMs: number;
  /** Only answers of one kind are compared: the same model, operation and manner of answering. */
  kind: AnswerKind;
}

/** One for each doubling of what is in flight; no engine takes more at once than the last one stands for. */
const levels = 20;

/** Means of log(time) of one kind of answers by how many were in flight, and of how many answers each is. */
export class AnswerKind {
  #begins: BeginTimes | undefined;
  /** Mean and count of each level beside each other, as an answer needs both. */
  #figures: Float64Array | undefined;

  /** Times to the begin of these answers. `clear` keeps them, because they judge one request and not the concurrency. */
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

/** Weight of a new answer in its level's mean, once the level has this many. */
const remembered = 16;
const fewestAnswers = 8;
/** A burst passes through the lower levels once: four answers for those from 4 on. */
const fewestBelow = 4;
/** Rise of log(time) for each doubling in flight, relative to a queue's, that raises the doubt. */
const doubtfulSlope = 0.6;
/** Below this rise nothing is worth a trial: hardly anybody waits. */
const minRise = Math.LN2;
/**
 * It is not below this time either: nobody starves within a second, and the times of quick answers rise with the load of the
 * gateway itself.
 */
const minLogTime = Math.log(1_000);

export class AnswerTimes {
  readonly #kinds: AnswerKind[] = [];

  /** Whose answers are compared with each other alone. */
  newKind(): AnswerKind {
    const kind = new AnswerKind();
    this.#kinds.push(kind);
    return kind;
  }

  add({ kind, inFlight, durationMs }: Answer): void {
    kind.add(levelOf(inFlight), logTime(durationMs));
  }

  /** Whether answers of this kind take longer about in proportion to what is in flight, by any lower level. */
  looksQueued(answer: Answer): boolean {
    return this.#rises(answer, fewestBelow, doubtfulSlope);
  }

  /** Whether they take twice as long as at any lower level, however little is known of it. */
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

/** Some answers in a row. */
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
   * Slope of log(time) over log(in flight) between this sample and another, each kind compared with itself: 0 where the
   * engine works on all at once, 1 where they wait. Undefined where both had about as many in flight.
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
