// Measures how many requests an engine can work on at once, from its refusals and answer times.
import { type Answer, type AnswerKind, AnswerTimes, Sample } from "./answer-times.ts";

/** A trial, in which the limit is halved to see whether answers then take half as long. */
interface Trial {
  sample: Sample;
  /** The limit before the trial. */
  from: number;
  /** True if a trial directly before this one found a queue. */
  confirmed: boolean;
  /** Number of the last request that was sent before the trial. */
  sentAfter: number;
  /** Number of answers that are still left out of the sample. */
  skip: number;
}

/**
 * The limit grows while answers arrive and every slot is taken. Until the first sign of trouble, it grows by one for
 * each answer, which doubles it in a round. After that, it grows by a tenth (at least one) per round. Before any
 * trouble, it also grows if the engine has been silent for a second, as with a burst of long requests. Two signs make
 * the limit shrink:
 *
 * - The engine refuses requests (429, 503, a timeout). The limit falls to the number of running requests, but in each
 * round by half at most, so that a refusal for another reason, such as a rate, does not reduce it to one.
 * - The engine accepts everything and queues requests inside, first come, first served. A burst of one tenant then
 * delays all others. In such an engine, twice as many requests in flight take twice as long, so more requests in flight
 * have no benefit. If the measured times look like that, a trial decides: for a few answers, half as many requests are
 * sent. If the times fall in proportion, the limit of the trial stays. If they do not, the engine did work on all
 * requests at once and gets its slots back.
 *
 * Gradient limits (Netflix, Envoy) compare with a time at rest instead. But inference times differ a hundredfold by
 * request, so such a limit throttles a healthy engine as soon as its requests become longer. A trial does not.
 */
export class ConcurrencyLimit {
  readonly #max: number;
  readonly #watchesTimes: boolean;
  readonly #times = new AnswerTimes();
  #value: number;
  /** True until the first refusal or the first detected queue. */
  #guess = true;
  /** True if an answer has begun or a request was refused in the last second. */
  #heard = false;
  #sent = 0;
  /**
   * Number of the last request that was sent before the limit was reduced. Earlier requests do not show the effect of
   * the reduction.
   */
  #cutAt = 0;
  #roundFloor = 1;
  /** The sample of answers before a trial, taken because a queue is suspected. */
  #before: Sample | undefined;
  /** Number of answers after which another trial may begin. */
  #quiet = 0;
  #trial: Trial | undefined;

  /** `bound` is the operator's limit, which only refusals reduce. If it is missing, the limit is measured. */
  constructor(bound?: number) {
    this.#max = bound ?? Number.POSITIVE_INFINITY;
    this.#watchesTimes = bound === undefined;
    this.#value = bound ?? firstGuess;
  }

  /** Maximum requests in flight, a whole number of at least 1. */
  get value(): number {
    return Math.floor(this.#value);
  }

  /** Must be called when a request is sent. Returns the request's number, for `answered` and `refused`. */
  sent(): number {
    return ++this.#sent;
  }

  /** Returns a new kind of answers. Its answers are only compared with each other. */
  newKind(): AnswerKind {
    return this.#times.newKind();
  }

  /** Must be called when an answer has begun. `full` means that every slot is taken. */
  answered(answer: Answer, full: boolean): void {
    this.#heard = true;
    if (this.#watchesTimes) this.#watch(answer);
    if (!full || this.#before) return;
    const step = this.#guess ? 1 : Math.max(1, this.#value * growthPerRound) / this.#value;
    this.#value = Math.min(this.#max, this.#value + step);
  }

  /**
   * Must be called when the engine refused a request for lack of capacity. `sent` is the request's number, and
   * `running` is the number of other requests in flight.
   */
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

  /** Must be called for each second in which requests wait. Returns whether to call it again. */
  waitedASecond(): boolean {
    if (!this.#guess || !this.#watchesTimes) return false;
    if (!this.#heard) this.#value *= 1 + growthInSilence;
    this.#heard = false;
    return true;
  }

  #watch(answer: Answer): void {
    this.#times.add(answer);
    if (this.#trial) {
      // The first answers after the limit changed are left out, because they are the fast ones.
      if (answer.sent <= this.#trial.sentAfter || this.#trial.skip-- > 0) return;
      this.#trial.sample.add(answer);
      if (this.#trial.sample.size >= sampleSize) this.#decide(this.#trial, answer);
    } else if (this.#before) {
      this.#before.add(answer);
      if (this.#before.size < sampleSize) return;
      // The first suspicion may be chance. The trial begins only if the suspicion remains after a whole sample.
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
      // The suspicion may have come from a mixture of different requests, so the recorded times are cleared.
      if (!confirmed && slope < queueSlope / 2) this.#times.clear();
      return;
    }
    this.#guess = false;
    if (this.#value > 1 && this.#times.isSlow(last)) this.#try(sample, true);
  }
}

/**
 * The initial limit. Small servers run 1 to 8 requests at once, vLLM 256. A burst doubles the limit within one answer
 * time. A queue inside the engine grows this long once before it is detected.
 */
const firstGuess = 64;
const growthPerRound = 0.1;
const growthInSilence = 0.25;
/** Number of answers in each sample, before and during a trial. With fewer, chance could look like a halved queue. */
const sampleSize = 24;
/** Number of answers without another trial, after a trial that found no queue. */
const quietAfterTrial = 256;
/**
 * Slope from which a queue is assumed. An engine that works in batches reaches it at about four fifths of its maximum
 * throughput.
 */
const queueSlope = 0.7;
