// What the gateway knows of one engine and of each of its models: health, open work and pace.
import type { Clock } from "../../base/clock.ts";
import type { EngineLoad } from "../../domain/models/engine.ts";
import type { Operation } from "../../domain/models/operation.ts";
import { AdaptationMemory } from "./adaptation-memory.ts";
import { Health } from "./health.ts";

/**
 * Work of an answer token in prompt tokens: answer tokens are computed one by one, prompt tokens many at once.
 * Servers differ (about 5 to 20 with many parallel requests), and little depends on it.
 */
const answerTokenWork = 8;
/** Weight of the newest request in the averages of a deployment. */
const newest = 1 / 32;
/** Minimum requests before the measured pace is used. */
const fewestPaced = 8;
/** Estimated tokens of an answer before any is known. */
const firstGuess = 256;

export class EngineState {
  readonly health = new Health();
  readonly models = new Map<string, DeploymentState>();
  /** Open work of all its models together, because they share one machine. */
  work = 0;
  requests = 0;
  /** Requests of other senders, as the engine reports them, and the monotonic time until which the report is valid. */
  others = 0;
  saidUntilMs = Number.NEGATIVE_INFINITY;
  said: EngineLoad | undefined;
  lastUsedMs = Number.NEGATIVE_INFINITY;
  /** Number of requests whose answers have begun, and the monotonic time of the last beginning. */
  answering = 0;
  answeredMs = Number.NEGATIVE_INFINITY;
}

export class DeploymentState {
  readonly engine: EngineState;
  readonly health = new Health();
  /** The operations that the deployment has answered. */
  readonly answered = new Set<Operation>();
  /** Keeps what requests need here because the server refuses them otherwise; undefined until that is known. */
  adaptations: AdaptationMemory | undefined;
  /**
   * A number that differs between deployments and is the same in every process: it decides where a conversation goes.
   */
  readonly lot: number;
  /** Work and milliseconds of ended requests, weighted towards the latest. */
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

  /** Work per millisecond as one request sees it; 0 if unknown. */
  get pace(): number {
    return this.#paced < fewestPaced ? 0 : this.#paceWork / this.#paceMs;
  }

  /** Returns the expected tokens of an answer with or without a limit. */
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

/** The facts of a request that determine its work. */
export interface RequestSize {
  /** Estimated from the text. */
  promptTokens: number;
  /** Token limit of each generation; undefined if the request has none. */
  maxCompletionTokens: number | undefined;
  /** Number of parallel generations. */
  width: number;
}

/** Returns the expected work of the answer at the deployment for a request of `size`. */
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
  /** The work that is still counted as open. */
  #open: number;
  #prompted = false;
  #ended = false;

  /**
   * `promptTokens` are those that the deployment has to read, as far as known. `learns` is true if its pace is needed.
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

  /** True if the deployment is healthy, so that a success need not be reported. */
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

  /** Returns the keys of the adaptations that the deployment is known to need; undefined if there are none. */
  get adapted(): ReadonlySet<string> | undefined {
    return this.#state.adaptations?.keys(this.#clock.monotonicMs());
  }

  /** Remembers that the deployment answered after these adaptations. */
  adapts(keys: Iterable<string>): void {
    this.#state.adaptations ??= new AdaptationMemory();
    this.#state.adaptations.add(keys, this.#clock.monotonicMs());
  }

  /** Called when the answer began, so that its prompt was read. Only the first call counts. */
  answering(): void {
    if (this.#prompted || this.#ended) return;
    this.#prompted = true;
    this.#state.engine.answering++;
    this.#state.engine.answeredMs = this.#clock.monotonicMs();
    this.#state.engine.work -= this.#promptWork;
    this.#open -= this.#promptWork;
  }

  /**
   * Ends the assignment. `answerTokens` are those of all generations, if the answer came whole. Only the first call
   * counts.
   */
  end(answerTokens?: number): void {
    if (this.#ended) return;
    this.#ended = true;
    const { engine } = this.#state;
    engine.requests--;
    if (this.#prompted) engine.answering--;
    // Sums of fractions leave a remainder, so the open work is reset if no request is open.
    engine.work = engine.requests === 0 ? 0 : engine.work - this.#open;
    if (answerTokens === undefined || !this.#learns) return;
    const work = this.#promptWork + answerTokens * answerTokenWork;
    this.#state.learn(work, this.#clock.monotonicMs() - this.#sinceMs, answerTokens / this.#width);
  }
}
