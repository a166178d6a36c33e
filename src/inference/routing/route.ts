// Chooses the order in which a model's deployments are tried: by health, then by load, cached prompts and least work.
import type { Clock } from "../../base/clock.ts";
import type { Engine, EngineLoad } from "../../domain/models/engine.ts";
import type { Deployment, Model } from "../../domain/models/model.ts";
import type { AttemptDelta, Fault } from "../../domain/usage/attempt-health.ts";
import type { AttemptRecord } from "./attempt-record.ts";
import { Assignment, DeploymentState, EngineState, type RequestSize } from "./deployment-state.ts";
import type { HealthState } from "./health.ts";
import { OverdueWatch } from "./overdue.ts";
import { PrefixTable } from "./prefix-table.ts";
import type { PromptPrefix } from "./prompt-prefix.ts";
import { type Candidate, coldPart, ranked } from "./ranking.ts";
import { RetryBudget } from "./retry-budget.ts";

/** The parts of a request that its routing depends on. */
export interface Workload extends RequestSize {
  /**
   * Returns the hashes of the prompt's beginning, always the same object. Called only if there are several deployments.
   */
  prefix(): PromptPrefix | undefined;
}

/** The part that failed: the whole engine, or one model on it. */
export type FailureScope = "engine" | "deployment";

/** Milliseconds for which the load that a server has reported is used. */
const saidMs = 10_000;
/** Work of a prompt token that was sent before and so may be cached. The value was found by simulation. */
const warmTokenWork = 0.25;
/** Maximum models for which sent prompts are remembered. If there are more, the oldest table is dropped. */
const maxTables = 32;
/**
 * Maximum remembered hashes in a generation, for each deployment. `hashesInAll` is the maximum for all together, about
 * 25 MB.
 */
const hashesEach = 2_048;
const hashesInAll = 262_144;

export class Router {
  /** Names of engines that are draining: they finish their requests and get no new ones. */
  drained: ReadonlySet<string> = new Set();
  /** Called when an engine is suspended. After `restMs` it may be tested. */
  onRest: ((engine: Engine, restMs: number) => void) | undefined;
  /** Called after an attempt at which the engine failed. */
  onFault: (() => void) | undefined;
  /** Watches requests whose answers have not begun, if another deployment could answer them. */
  readonly overdue = new OverdueWatch();
  /** Returns the number of gateway processes that use the same engines, including this one. */
  gateways: () => number = () => 1;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #engines = new WeakMap<Engine, EngineState>();
  readonly #deployments = new WeakMap<Deployment, DeploymentState>();
  readonly #tables = new Map<string, PrefixTable<DeploymentState>>();
  readonly #budgets = new Map<string, RetryBudget>();

  /** `random` returns numbers from 0 up to but not including 1. */
  constructor(clock: Clock, random: () => number = Math.random) {
    this.#clock = clock;
    this.#random = random;
  }

  /**
   * Returns the deployments in the order in which to try them. Draining ones are left out, so the list may be empty.
   */
  order(model: Model, workload: Workload): readonly Deployment[] {
    const open = this.#open(model);
    return open.length < 2 ? open : this.#rank(open, model, workload);
  }

  #rank(open: readonly Deployment[], model: Model, workload: Workload): readonly Deployment[] {
    const nowMs = this.#clock.monotonicMs();
    let well = 0;
    const candidates = open.map((deployment): Candidate => {
      const state = this.#state(deployment);
      const away = isAway(state, nowMs);
      if (!away) well++;
      return { deployment, state, isAway: away, warm: 0 };
    });
    const prefix = well < 2 ? undefined : workload.prefix();
    if (prefix) this.#tables.get(model.id)?.read(prefix, candidates);
    return ranked(candidates, { size: workload, prefix, nowMs, gateways: this.gateways() }, this.#random);
  }

  /** Returns the health of the engine or that of this model on it, whichever is worse. */
  state(deployment: Deployment): HealthState {
    return stateOf(this.#state(deployment), this.#clock.monotonicMs());
  }

  /** Reports whether the deployment is suspended or being tested. */
  resting(deployment: Deployment): boolean {
    const state = this.#state(deployment);
    return isAway(state, this.#clock.monotonicMs());
  }

  /** Reports whether the model has a deployment that takes new requests and is not suspended. */
  works(model: Model): boolean {
    return this.#open(model).some((deployment) => !this.resting(deployment));
  }

  /** Returns the recorded attempts at the engine, and those at each of its models. */
  attemptsAt(engine: Engine): { all: AttemptRecord; models: ReadonlyMap<string, { attempts: AttemptRecord }> } {
    const { attempts, models } = this.#engine(engine);
    return { all: attempts, models };
  }

  /** Records an attempt at which the engine failed. */
  countFailure(deployment: Deployment, fault: Fault): void {
    const { attempts, engine } = this.#state(deployment);
    const nowMs = this.#clock.monotonicMs();
    attempts.failed(fault, nowMs);
    engine.attempts.failed(fault, nowMs);
    this.onFault?.();
  }

  /** Adds attempts that a worker process has made. */
  addAttempts(engine: Engine, model: string, delta: AttemptDelta): void {
    const { attempts, engine: whole } = this.#stateOf(engine, model);
    const nowMs = this.#clock.monotonicMs();
    attempts.add(delta, nowMs);
    whole.attempts.add(delta, nowMs);
    if (delta.last) this.onFault?.();
  }

  engineState(engine: Engine): HealthState {
    return this.#engine(engine).health.state(this.#clock.monotonicMs());
  }

  /** Reports whether the engine or one of its models has failed and has not recovered yet. */
  rests(engine: Engine): boolean {
    const { health, models } = this.#engine(engine);
    return !health.isWell || [...models.values()].some((model) => !model.health.isWell);
  }

  /**
   * Must be called when a slot is taken. Returns true if the request tests a suspended deployment. The caller must then
   * report the result, or call `release`.
   */
  claim(deployment: Deployment): boolean {
    const state = this.#state(deployment);
    if (state.isWell) return false;
    const nowMs = this.#clock.monotonicMs();
    const triesEngine = state.engine.health.claim(nowMs);
    return state.health.claim(nowMs) || triesEngine;
  }

  /** Called if the test of a suspended deployment had no result. */
  release(deployment: Deployment): void {
    const { engine, health } = this.#state(deployment);
    engine.health.release();
    health.release();
  }

  /** Counts the work of the request as open until the request ends. Records that the deployment is sent the prompt. */
  begin(
    deployment: Deployment,
    model: Model,
    workload: Workload,
    sinceMs: number = this.#clock.monotonicMs(),
  ): Assignment {
    const state = this.#state(deployment);
    let { promptTokens } = workload;
    // If the model has only one deployment, its speed is not measured.
    const isAlone = model.deployments.length < 2;
    const prefix = !isAlone && this.#isChoice(model) ? workload.prefix() : undefined;
    if (prefix) {
      const cold = coldPart(prefix, this.#remember(model, state, prefix));
      promptTokens *= cold + warmTokenWork * (1 - cold);
    }
    return new Assignment(state, promptTokens, workload, this.#clock, sinceMs, !isAlone);
  }

  succeeded(deployment: Deployment): void {
    const state = this.#state(deployment);
    if (state.isWell) return;
    const nowMs = this.#clock.monotonicMs();
    state.engine.health.succeeded(nowMs);
    state.health.succeeded(nowMs);
  }

  failed(deployment: Deployment, scope: FailureScope): void {
    const { engine, health } = this.#state(deployment);
    if (scope === "engine") {
      health.release();
      this.unreachable(deployment.engine);
    } else {
      const nowMs = this.#clock.monotonicMs();
      // The engine has responded, so only this model on it has failed.
      engine.health.succeeded(nowMs);
      health.failed(nowMs, this.#random);
    }
  }

  /** Called when the engine responded to something other than a request, such as a poll for its models. */
  reached(engine: Engine): void {
    this.#engine(engine).health.succeeded(this.#clock.monotonicMs());
  }

  /**
   * Called if the engine did not list its models in time. `sinceMs` is the time at which the poll began. An engine that
   * has sent an answer since then is merely busy.
   */
  silent(engine: Engine, sinceMs: number): void {
    const { answeredMs, answering } = this.#engine(engine);
    if (answering === 0 && answeredMs < sinceMs) this.unreachable(engine);
  }

  /** Reports whether any answer of the engine has begun after `sinceMs` (monotonic milliseconds). */
  answeredSince(engine: Engine, sinceMs: number): boolean {
    return this.#engine(engine).answeredMs > sinceMs;
  }

  /** Reports whether the engine is sending an answer at the moment. */
  isAnswering(engine: Engine): boolean {
    return this.#engine(engine).answering > 0;
  }

  unreachable(engine: Engine): void {
    const nowMs = this.#clock.monotonicMs();
    const { health } = this.#engine(engine);
    if (health.failed(nowMs, this.#random)) this.onRest?.(engine, health.restLeftMs(nowMs));
  }

  /** Records the load that the engine has reported. Requests that this gateway did not send are from other senders. */
  said(engine: Engine, load: EngineLoad): void {
    const state = this.#engine(engine);
    state.said = load;
    state.others = Math.max(0, load.running + load.waiting - state.requests);
    state.saidUntilMs = this.#clock.monotonicMs() + saidMs;
  }

  /** Returns the load that the engine has reported, or undefined if there is no recent report. */
  loadOf(engine: Engine): EngineLoad | undefined {
    const { said, saidUntilMs } = this.#engine(engine);
    return saidUntilMs > this.#clock.monotonicMs() ? said : undefined;
  }

  /** Does the same as `claim`, for a test that is no client's request. */
  claimEngine(engine: Engine): boolean {
    return this.#engine(engine).health.claim(this.#clock.monotonicMs());
  }

  releaseEngine(engine: Engine): void {
    this.#engine(engine).health.release();
  }

  /** Returns the time in monotonic milliseconds at which the engine got its last request. */
  lastUsedMs(engine: Engine): number {
    return this.#engine(engine).lastUsedMs;
  }

  /** Returns the number of this gateway's requests at the engine. */
  requestsAt(engine: Engine): number {
    return this.#engine(engine).requests;
  }

  /** Returns the retry budget of this model. */
  retryBudget(modelId: string): RetryBudget {
    let budget = this.#budgets.get(modelId);
    if (!budget) {
      budget = new RetryBudget(this.#clock, () => this.gateways());
      this.#budgets.set(modelId, budget);
    }
    return budget;
  }

  #open({ deployments }: Model): readonly Deployment[] {
    for (const { engine } of deployments) if (!this.isOpen(engine)) return this.#openOf(deployments);
    return deployments;
  }

  #openOf(deployments: readonly Deployment[]): readonly Deployment[] {
    return deployments.filter(({ engine }) => this.isOpen(engine));
  }

  /** Reports whether the engine accepts new requests, which means that it is connected and not draining. */
  isOpen({ name, accepts }: Engine): boolean {
    return accepts !== false && !this.drained.has(name);
  }

  /** Reports whether the model has several healthy deployments. With only one, sent prompts need not be remembered. */
  #isChoice(model: Model): boolean {
    const nowMs = this.#clock.monotonicMs();
    let well = 0;
    for (const deployment of this.#open(model)) if (!isAway(this.#state(deployment), nowMs)) well++;
    return well > 1;
  }

  /**
   * Records that the deployment is sent the prompt. Returns how many characters of its beginning the deployment was
   * sent before.
   */
  #remember({ id, deployments }: Model, state: DeploymentState, prefix: PromptPrefix): number {
    if (prefix.hashes.length === 0) return 0;
    let table = this.#tables.get(id);
    if (!table) {
      for (const oldest of this.#tables.keys()) {
        if (this.#tables.size < maxTables) break;
        this.#tables.delete(oldest);
      }
      table = new PrefixTable();
      this.#tables.set(id, table);
    }
    const warm = table.warm(prefix, state);
    table.record(prefix, state, Math.min(hashesEach * deployments.length, hashesInAll / this.#tables.size));
    return warm;
  }

  #state(deployment: Deployment): DeploymentState {
    let state = this.#deployments.get(deployment);
    if (!state) {
      // The catalog creates new `Deployment` objects at each poll, so the state is looked up by engine and model.
      state = this.#stateOf(deployment.engine, deployment.model);
      this.#deployments.set(deployment, state);
    }
    return state;
  }

  #stateOf(engine: Engine, model: string): DeploymentState {
    const whole = this.#engine(engine);
    let state = whole.models.get(model);
    if (!state) {
      state = new DeploymentState(whole, Bun.hash.xxHash32(`${engine.name} ${model}`));
      whole.models.set(model, state);
    }
    return state;
  }

  #engine(engine: Engine): EngineState {
    let state = this.#engines.get(engine);
    if (!state) {
      state = new EngineState();
      this.#engines.set(engine, state);
    }
    return state;
  }
}

function isAway(state: DeploymentState, nowMs: number): boolean {
  if (state.isWell) return false;
  const now = stateOf(state, nowMs);
  return now === "resting" || now === "trying";
}

function stateOf({ engine, health }: DeploymentState, nowMs: number): HealthState {
  const [one, other] = [engine.health.state(nowMs), health.state(nowMs)];
  for (const state of ["resting", "trying", "ready"] as const) if (one === state || other === state) return state;
  return "ok";
}
