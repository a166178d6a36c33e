// State of each engine, and of each model on it: health, open work (in prompt tokens), and speed.
import type { Clock } from "../../base/clock.ts";
import type { EngineLoad } from "../../domain/models/engine.ts";
import type { Operation } from "../../domain/models/operation.ts";
import { AdaptationMemory } from "./adaptation-memory.ts";
import { AttemptRecord } from "./attempt-record.ts";
import { Health } from "./health.ts";

/**
 * Work of generating one answer token, measured in prompt tokens. Prompt tokens are computed many at once, answer
 * tokens one by one. The true value differs by server (about 5 to 20 with many parallel requests), and little depends
 * on it.
 */
const answerTokenWork = 8;
/** Weight of the newest request in a deployment's moving averages. */
const newest = 1 / 32;
/** Minimum measured requests. With fewer, the speed counts as unknown. */
const fewestPaced = 8;
/** Expected tokens of an answer before any answer was measured. */
const firstGuess = 256;

export class EngineState {
  readonly health = new Health();
  /** Attempts at all models of the engine. */
  readonly attempts = new AttemptRecord();
  readonly models = new Map<string, DeploymentState>();
  /** Open work of all models of the engine together, because they share one machine. In prompt tokens. */
  work = 0;
  requests = 0;
  /**
   * Number of requests from other senders, computed from the load that the engine reports. `saidUntilMs` is the
   * monotonic time until which the report is used.
   */
  others = 0;
  saidUntilMs = Number.NEGATIVE_INFINITY;
  said: EngineLoad | undefined;
  lastUsedMs = Number.NEGATIVE_INFINITY;
  /**
   * Number of answers that have begun and not ended. `answeredMs` is the monotonic time at which the last answer began.
   */
  answering = 0;
  answeredMs = Number.NEGATIVE_INFINITY;
}

export class DeploymentState {
  readonly engine: EngineState;
  readonly health = new Health();
  readonly attempts = new AttemptRecord();
  /** Operations (such as chat or embeddings) that the deployment has answered at least once. */
  readonly answered = new Set<Operation>();
  /**
   * The adaptations that requests to this deployment need, because its server refuses them otherwise. Undefined until
   * one is known.
   */
  adaptations: AdaptationMemory | undefined;
  /**
   * A number that differs between deployments and is the same in every process. Used for rendezvous hashing of
   * conversations.
   */
  readonly lot: number;
  /** Sums of the work and the duration of ended requests, in which newer requests weigh more. */
  #paceWork = 0;
  #paceMs = 0;
  #paced = 0;
  #answerTokens = firstGuess;

  constructor(engine: EngineState, lot: number) {
    this.engine = engine;
    this.lot = lot;
  }

  /** True if the engine and this model on it are healthy. */
  get isWell(): boolean {
    return this.health.isWell && this.engine.health.isWell;
  }

  /** Work per millisecond for a single request. 0 if it is unknown. */
  get pace(): number {
    return this.#paced < fewestPaced ? 0 : this.#paceWork / this.#paceMs;
  }

  /** Returns the expected tokens of an answer, but no more than the limit `most`. */
  answerTokens(most: number | undefined): number {
    return Math.min(this.#answerTokens, most ?? this.#answerTokens);
  }

  learn(work: number, ms: number, answerTokens: number): void {
    this.#paceWork = this.#paceWork * (1 - newest) + work;
    this.#paceMs = this.#paceMs * (1 - newest) + Math.max(ms, 1);
    this.#paced++;
    this.#answerTokens += newest * (answerTokens - this.#answerTokens);
  }
}

/** The sizes of a request from which its work is estimated. */
export interface RequestSize {
  /** Number of prompt tokens, estimated from the text of the prompt. */
  promptTokens: number;
  /** Token limit of each generation. Undefined if the request sets none. */
  maxCompletionTokens: number | undefined;
  /** Number of parallel generations. */
  width: number;
}

/** Returns the expected work of answering a request of this size. */
export function answerWork(state: DeploymentState, { maxCompletionTokens, width }: RequestSize): number {
  return state.answerTokens(maxCompletionTokens) * width * answerTokenWork;
}

/** Counts the work of one request at a deployment, from the time when it is sent until it ends. */
export class Assignment {
  readonly #state: DeploymentState;
  readonly #clock: Clock;
  readonly #sinceMs: number;
  readonly #promptWork: number;
  readonly #width: number;
  readonly #learns: boolean;
  /** The part of the request's work that is not done yet. */
  #open: number;
  /** Keys of the adaptations that this request is trying. */
  #tried: readonly string[] = [];
  #prompted = false;
  #ended = false;

  /**
   * `promptTokens` counts the tokens that the deployment must compute. If `learns` is true, the speed of the request is
   * measured.
   */
  constructor(
    state: DeploymentState,
    promptTokens: number,
    size: RequestSize,
    clock: Clock,
    sinceMs: number,
    learns: boolean,
  ) {
    this.#state = state;
    this.#clock = clock;
    this.#sinceMs = sinceMs;
    this.#promptWork = promptTokens;
    this.#width = size.width;
    this.#learns = learns;
    this.#open = promptTokens + answerWork(state, size);
    state.engine.work += this.#open;
    state.engine.requests++;
    state.engine.lastUsedMs = sinceMs;
  }

  /** True if the deployment is healthy. A success then need not be reported to the router. */
  get isWell(): boolean {
    return this.#state.isWell;
  }

  /** Records that the deployment supports the operation. */
  answers(operation: Operation): void {
    this.#state.answered.add(operation);
  }

  /** Reports whether the deployment has answered other operations, but never this one. */
  lacks(operation: Operation): boolean {
    const { answered } = this.#state;
    return answered.size > 0 && !answered.has(operation);
  }

  /** Returns the keys of the adaptations that the deployment is known to need, or undefined if there are none. */
  get adapted(): ReadonlySet<string> | undefined {
    return this.#state.adaptations?.keys(this.#clock.monotonicMs());
  }

  /** Applies these adaptations to other requests for the deployment too, until this assignment has ended. */
  triesAdaptations(keys: readonly string[]): void {
    this.#state.adaptations ??= new AdaptationMemory();
    this.#state.adaptations.beginTrial(keys);
    this.#tried = [...this.#tried, ...keys];
  }

  /** Records that the deployment has answered a request with these adaptations. */
  adapts(keys: Iterable<string>): void {
    this.#state.adaptations ??= new AdaptationMemory();
    this.#state.adaptations.add(keys, this.#clock.monotonicMs());
  }

  /** Called when the answer has begun, which means that the prompt was computed. Later calls do nothing. */
  answering(): void {
    if (this.#prompted || this.#ended) return;
    this.#prompted = true;
    this.#state.engine.answering++;
    this.#state.engine.answeredMs = this.#clock.monotonicMs();
    this.#state.engine.work -= this.#promptWork;
    this.#open -= this.#promptWork;
  }

  get hasEnded(): boolean {
    return this.#ended;
  }

  /** Records a successful attempt. */
  worked(): void {
    const nowMs = this.#clock.monotonicMs();
    this.#state.attempts.worked(nowMs);
    this.#state.engine.attempts.worked(nowMs);
  }

  /**
   * Ends the work of the request. `answerTokens` are the tokens of all generations, or undefined if the answer is
   * incomplete. Later calls do nothing.
   */
  end(answerTokens?: number): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#state.adaptations?.endTrial(this.#tried);
    const { engine } = this.#state;
    engine.requests--;
    if (this.#prompted) engine.answering--;
    // If no request is open, the open work is set to 0, because rounding errors add up.
    engine.work = engine.requests === 0 ? 0 : engine.work - this.#open;
    if (answerTokens === undefined || !this.#learns) return;
    const work = this.#promptWork + answerTokens * answerTokenWork;
    this.#state.learn(work, this.#clock.monotonicMs() - this.#sinceMs, answerTokens / this.#width);
  }
}
