// Measures how many requests an engine can work on at once, from its refusals and answer times.
import { type Answer, type AnswerKind, AnswerTimes, Sample } from "./answer-times.ts";

/** A trial: the limit is halved, to see whether answers then take half as long. */
interface Trial {
  sample: Sample;
  /** The limit before the trial. */
  from: number;
  /** True if the previous trial found a queue. */
  confirmed: boolean;
  /** Number of the last request that was sent before the trial. */
  sentAfter: number;
  /** Number of answers that the sample still leaves out. */
  skip: number;
}

/**
 * The limit grows while answers arrive and every slot is taken: by one for each answer until the first sign of trouble,
 * which doubles it in a round, and by a tenth (at least one) per round afterwards. Before any trouble, it also grows if
 * the engine has been silent for a second, as with a burst of long requests. Two signs shrink it:
 *
 * - The engine refuses (429, 503, a timeout). The limit falls to what the engine still holds, in each round by half at
 * most, so that a refusal for another reason, such as a rate, does not end at one.
 * - The engine accepts everything and queues inside, first come, first served: one tenant's burst then delays all
 * others. In such an engine, twice as many requests in flight take twice as long, so more in flight has no benefit. If
 * the measured times look like that, a trial decides: half as many requests for a few answers. The trial's limit stays
 * if times fall in proportion. If they do not, the engine did work on all requests at once and gets its slots back.
 *
 * Gradient limits (Netflix, Envoy) trust a time at rest instead. But inference times differ a hundredfold by request:
 * such a limit throttles a healthy engine as soon as its requests become longer, and a trial does not.
 */
export class ConcurrencyLimit {
  readonly #max: number;
  readonly #watchesTimes: boolean;
  readonly #times = new AnswerTimes();
  #value: number;
  /** True until the first refusal or detected queue. */
  #guess = true;
  /** True if an answer began or a request was refused since the last pause. */
  #heard = false;
  #sent = 0;
  /** Number of the last request before the limit was reduced. Earlier requests do not show the effect. */
  #cutAt = 0;
  #roundFloor = 1;
  /** Sample at the suspected level, taken before a trial. */
  #before: Sample | undefined;
  /** Number of answers until another trial may begin. */
  #quiet = 0;
  #trial: Trial | undefined;

  /** `bound` is the operator's limit, which only refusals lower. If absent, the limit is measured. */
  constructor(bound?: number) {
    this.#max = bound ?? Number.POSITIVE_INFINITY;
    this.#watchesTimes = bound === undefined;
    this.#value = bound ?? firstGuess;
  }

  /** Maximum requests in flight, a whole number of at least 1. */
  get value(): number {
    return Math.floor(this.#value);
  }

  /** Call when a request is sent. Returns its number for `answered` and `refused`. */
  sent(): number {
    return ++this.#sent;
  }

  /** Returns a new kind of answers, which are compared only with each other. */
  newKind(): AnswerKind {
    return this.#times.newKind();
  }

  /** Call when an answer began. `full` means that every slot is taken. */
  answered(answer: Answer, full: boolean): void {
    this.#heard = true;
    if (this.#watchesTimes) this.#watch(answer);
    if (!full || this.#before) return;
    const step = this.#guess ? 1 : Math.max(1, this.#value * growthPerRound) / this.#value;
    this.#value = Math.min(this.#max, this.#value + step);
  }

  /** Call when the engine refused request `sent` for lack of capacity; `running` others are in flight. */
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

  /** Call for each second in which requests wait. Returns whether to call again. */
  waitedASecond(): boolean {
    if (!this.#guess || !this.#watchesTimes) return false;
    if (!this.#heard) this.#value *= 1 + growthInSilence;
    this.#heard = false;
    return true;
  }

  #watch(answer: Answer): void {
    this.#times.add(answer);
    if (this.#trial) {
      // Leave out the first answers after a change, which are the fast ones.
      if (answer.sent <= this.#trial.sentAfter || this.#trial.skip-- > 0) return;
      this.#trial.sample.add(answer);
      if (this.#trial.sample.size >= sampleSize) this.#decide(this.#trial, answer);
    } else if (this.#before) {
      this.#before.add(answer);
      if (this.#before.size < sampleSize) return;
      // The first suspicion may be chance, so check again after a whole sample.
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
      // Requests of different kinds may have caused the suspicion, so the recorded times are cleared.
      if (!confirmed && slope < queueSlope / 2) this.#times.clear();
      return;
    }
    this.#guess = false;
    if (this.#value > 1 && this.#times.isSlow(last)) this.#try(sample, true);
  }
}

/**
 * Initial limit. Small servers take 1 to 8 requests, vLLM 256; a burst doubles the limit within one answer time. A
 * hidden queue grows this long once before it is detected.
 */
const firstGuess = 64;
const growthPerRound = 0.1;
const growthInSilence = 0.25;
/** Answers in each sample, before and during a trial: enough that chance cannot look like a halved queue. */
const sampleSize = 24;
/** Number of answers without another trial after one that found no queue. */
const quietAfterTrial = 256;
/**
 * A slope from which a queue is assumed: a batching engine reaches it at about four fifths of its maximum throughput.
 */
const queueSlope = 0.7;
