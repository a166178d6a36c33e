// Measures how many requests an engine takes at once: from what it refuses, and from how its answers slow down.
import { type Answer, type AnswerKind, AnswerTimes, Sample } from "./answer-times.ts";

/** Half as many requests in flight, to see whether the engine's answers take half as long. */
interface Trial {
  sample: Sample;
  /** The limit before. */
  from: number;
  /** The trial before this one found a queue. */
  confirmed: boolean;
  /** Requests up to this one were sent before it began. */
  sentAfter: number;
  /** Answers still left out of the sample. */
  skip: number;
}

/**
 * It grows while answers come and every place is taken: by one for each answer until the first sign of trouble, which
 * doubles it in a round, and by a tenth of itself (at least one) a round from then on. An engine that has been silent for
 * a second, as with a burst of long requests, is no reason to wait before there was any trouble: then it grows as well.
 * Two signs shrink it:
 *
 * - The engine refuses (429, 503, a timeout). The limit falls to what the engine still holds, in each round by half at
 *   most, so that a refusal for another reason, such as a rate, does not end at one.
 * - The engine takes everything and lets it wait inside, first come, first served: one tenant's burst then holds up all
 *   others. Twice as many in flight take twice as long there, so more in flight buys nothing. Where the times at hand
 *   look like that, a trial decides: half as many for a few answers. The trial stands if times fall in proportion; if
 *   they do not, the engine did work on all of them at once, and gets its places back.
 *
 * Gradient limits (Netflix, Envoy) trust a time at rest instead. But times of inference differ a hundredfold by what is
 * asked: such a limit throttles a healthy engine as soon as its requests become longer, and a trial does not.
 */
export class ConcurrencyLimit {
  readonly #max: number;
  readonly #watchesTimes: boolean;
  readonly #times = new AnswerTimes();
  #value: number;
  /** No sign of trouble yet. */
  #guess = true;
  /** An answer began, or a request was refused, since the last pause. */
  #heard = false;
  #sent = 0;
  /** Requests up to this one were sent before the last cut, and say nothing of what it left. */
  #cutAt = 0;
  #roundFloor = 1;
  /** Taken before a trial, at the level in question. */
  #before: Sample | undefined;
  /** Answers until the next doubt is listened to. */
  #quiet = 0;
  #trial: Trial | undefined;

  /** `bound`: set by the operator, and lowered by refusals alone; left out: measured. */
  constructor(bound?: number) {
    this.#max = bound ?? Number.POSITIVE_INFINITY;
    this.#watchesTimes = bound === undefined;
    this.#value = bound ?? firstGuess;
  }

  /** Requests that may be in flight; whole, at least 1. */
  get value(): number {
    return Math.floor(this.#value);
  }

  /** Call when a request is sent; the result tells `answered` and `refused` which one it was. */
  sent(): number {
    return ++this.#sent;
  }

  /** Whose answers are compared with each other alone. */
  newKind(): AnswerKind {
    return this.#times.newKind();
  }

  /** An answer began. `full`: every place is taken. */
  answered(answer: Answer, full: boolean): void {
    this.#heard = true;
    if (this.#watchesTimes) this.#watch(answer);
    if (!full || this.#before) return;
    const step = this.#guess ? 1 : Math.max(1, this.#value * growthPerRound) / this.#value;
    this.#value = Math.min(this.#max, this.#value + step);
  }

  /** The engine had no capacity for the request `sent`; it still holds `running` others. */
  refused(sent: number, running: number): void {
    this.#guess = false;
    this.#before = undefined;
    this.#trial = undefined;
    if (sent > this.#cutAt) {
      this.#cutAt = this.#sent;
      this.#roundFloor = Math.max(1, this.#value / 2);
    }
    this.#value = Math.max(this.#roundFloor, Math.min(this.#value, running));
  }

  /** Call for each second in which requests wait; whether the next one matters as well. */
  waitedASecond(): boolean {
    if (!this.#guess || !this.#watchesTimes) return false;
    if (!this.#heard) this.#value *= 1 + growthInSilence;
    this.#heard = false;
    return true;
  }

  #watch(answer: Answer): void {
    this.#times.add(answer);
    if (this.#trial) {
      // The first answers of a new level are the quick ones: with the first round they are left out.
      if (answer.sent <= this.#trial.sentAfter || this.#trial.skip-- > 0) return;
      this.#trial.sample.add(answer);
      if (this.#trial.sample.size >= sampleSize) this.#decide(this.#trial, answer);
    } else if (this.#before) {
      this.#before.add(answer);
      if (this.#before.size < sampleSize) return;
      // What raised the doubt may have been chance; the sample is not.
      if (this.#times.looksQueued(answer)) this.#try(this.#before, false);
      else this.#before = undefined;
    } else if (this.#quiet > 0) {
      this.#quiet--;
    } else if (this.#times.looksQueued(answer)) {
      this.#before = new Sample();
    }
  }

  #try(before: Sample, confirmed: boolean): void {
    this.#before = before;
    const level = Math.max(1, Math.floor(Math.min(this.#value, before.meanInFlight) / 2));
    this.#trial = { sample: new Sample(), from: this.#value, confirmed, sentAfter: this.#sent, skip: level };
    this.#value = level;
  }

  #decide({ sample, from, confirmed }: Trial, last: Answer): void {
    const slope = this.#before?.slopeTo(sample) ?? 0;
    this.#trial = undefined;
    this.#before = undefined;
    if (slope < queueSlope) {
      this.#value = from;
      this.#quiet = quietAfterTrial;
      // The times that raised the doubt were of other requests, and must not raise it again.
      if (!confirmed && slope < queueSlope / 2) this.#times.clear();
      return;
    }
    this.#guess = false;
    if (this.#value > 1 && this.#times.isSlow(last)) this.#try(sample, true);
  }
}

/**
 * Above what small servers take (1 to 8), and no hindrance to large ones (256 in vLLM), as a burst doubles it within
 * the time of one answer. A hidden queue holds this many of one tenant's requests once, before it is found out.
 */
const firstGuess = 64;
const growthPerRound = 0.1;
const growthInSilence = 0.25;
/** Answers before and in a trial. Halving changes a queue's times by far more than chance does over so many. */
const sampleSize = 24;
/** A trial that was wrong is not repeated at once, whatever the times look like. */
const quietAfterTrial = 256;
/** A batching engine reaches this slope at about four fifths of its highest throughput. */
const queueSlope = 0.7;
