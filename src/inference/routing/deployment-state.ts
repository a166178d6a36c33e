// What the gateway knows of one engine and of each model on it: health, work that is open there, and its pace.
import type { Clock } from "../../base/clock.ts";
import type { EngineLoad } from "../../domain/models/engine.ts";
import type { Operation } from "../../domain/models/operation.ts";
import { Health } from "./health.ts";

/**
 * Work is counted in prompt tokens. A token of the answer counts as this many: it is computed alone, a prompt's many at
 * once. Servers differ (about 5 to 20 where many requests run side by side), and little depends on it.
 */
const answerTokenWork = 8;
/** Weight of the newest request in what is known of a deployment. */
const newest = 1 / 32;
/** Requests before its pace is believed. */
const fewestPaced = 8;
/** Tokens of an answer before anything is known. */
const firstGuess = 256;

export class EngineState {
  readonly health = new Health();
  readonly models = new Map<string, DeploymentState>();
  /** Work under way for all its models together: they share one machine. */
  work = 0;
  requests = 0;
  /** Requests that others have sent it, as it says itself, and until when (monotonic milliseconds) that is believed. */
  others = 0;
  saidUntilMs = Number.NEGATIVE_INFINITY;
  said: EngineLoad | undefined;
  lastUsedMs = Number.NEGATIVE_INFINITY;
  /** Requests whose answers have begun, and monotonic milliseconds at which one began last. */
  answering = 0;
  answeredMs = Number.NEGATIVE_INFINITY;
}

export class DeploymentState {
  readonly engine: EngineState;
  readonly health = new Health();
  /** The operations that the deployment has answered. */
  readonly answered = new Set<Operation>();
  /** Differs between deployments, and is the same in every process: where a conversation has its place. */
  readonly lot: number;
  /** Work and milliseconds of the requests that ended, the last ones most. */
  #paceWork = 0;
  #paceMs = 0;
  #paced = 0;
  #answerTokens = firstGuess;

  constructor(engine: EngineState, lot: number) {
    this.engine = engine;
    this.lot = lot;
  }

  /** Whether the engine is well, and this model on it. */
  get isWell(): boolean {
    return this.health.isWell && this.engine.health.isWell;
  }

  /** Work in a millisecond as one request saw it; 0 before it is known. */
  get pace(): number {
    return this.#paced < fewestPaced ? 0 : this.#paceWork / this.#paceMs;
  }

  /** Tokens of an answer that says how long it may be at most, or does not. */
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

/** A request as far as its work is concerned. */
export interface RequestSize {
  /** Estimated from the text. */
  promptTokens: number;
  /** Per generation; undefined where the request sets no limit. */
  maxCompletionTokens: number | undefined;
  /** Generations side by side. */
  width: number;
}

/** Work of what `size` makes the deployment generate, most likely. */
export function answerWork(state: DeploymentState, { maxCompletionTokens, width }: RequestSize): number {
  return state.answerTokens(maxCompletionTokens) * width * answerTokenWork;
}

/** A request's work at a deployment, from the moment it is sent. */
export class Assignment {
  readonly #state: DeploymentState;
  readonly #clock: Clock;
  readonly #sinceMs: number;
  readonly #promptWork: number;
  readonly #width: number;
  readonly #learns: boolean;
  /** Still counted. */
  #open: number;
  #prompted = false;
  #ended = false;

  /** `promptTokens`: those that it has to read, as far as is known; `learns`: whether its pace matters to anybody. */
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

  /** Whether its deployment is: then nobody has to be told that it works. */
  get isWell(): boolean {
    return this.#state.isWell;
  }

  /** Remembers that the deployment answers the operation. */
  answers(operation: Operation): void {
    this.#state.answered.add(operation);
  }

  /** Reports whether the deployment has answered other operations and never this one. */
  lacks(operation: Operation): boolean {
    const { answered } = this.#state;
    return answered.size > 0 && !answered.has(operation);
  }

  /** The answer began, so its prompt was read. Only the first call counts. */
  answering(): void {
    if (this.#prompted || this.#ended) return;
    this.#prompted = true;
    this.#state.engine.answering++;
    this.#state.engine.answeredMs = this.#clock.monotonicMs();
    this.#state.engine.work -= this.#promptWork;
    this.#open -= this.#promptWork;
  }

  /** `answerTokens`: of all its generations, where the answer came whole. Only the first call counts. */
  end(answerTokens?: number): void {
    if (this.#ended) return;
    this.#ended = true;
    const { engine } = this.#state;
    engine.requests--;
    if (this.#prompted) engine.answering--;
    // Sums of fractions do not come out even: where nothing is open, nothing is left.
    engine.work = engine.requests === 0 ? 0 : engine.work - this.#open;
    if (answerTokens === undefined || !this.#learns) return;
    const work = this.#promptWork + answerTokens * answerTokenWork;
    this.#state.learn(work, this.#clock.monotonicMs() - this.#sinceMs, answerTokens / this.#width);
  }
}
