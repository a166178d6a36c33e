// Chooses the order in which a model's deployments are tried: health first, then bounded load, warm prompts, least
// work.
import type { Clock } from "../../base/clock.ts";
import type { Engine, EngineLoad } from "../../domain/models/engine.ts";
import type { Deployment, Model } from "../../domain/models/model.ts";
import { Assignment, DeploymentState, EngineState, type RequestSize } from "./deployment-state.ts";
import type { HealthState } from "./health.ts";
import { OverdueWatch } from "./overdue.ts";
import { PrefixTable } from "./prefix-table.ts";
import type { PromptPrefix } from "./prompt-prefix.ts";
import { type Candidate, coldPart, ranked } from "./ranking.ts";
import { RetryBudget } from "./retry-budget.ts";

/** The facts of a request that its routing depends on. */
export interface Workload extends RequestSize {
  /** Called only if there is a choice; returns the same prefix each time. */
  prefix(): PromptPrefix | undefined;
}

/** Where a failure lies: at the server, or at one of its models. */
export type FailureScope = "engine" | "deployment";

/** Milliseconds for which a server's reported load is valid. */
const saidMs = 10_000;
/** Work of a prompt token that is expected to be warm; it may no longer be cached. Found by simulation. */
const warmTokenWork = 0.25;
/** Maximum models with a table; the oldest table is dropped. */
const maxTables = 32;
/** Maximum hashes of prompts for each deployment and for all, per generation: about 25 MB. */
const hashesEach = 2_048;
const hashesInAll = 262_144;

export class Router {
  /** Names of draining engines, which finish their requests and get no new ones. */
  drained: ReadonlySet<string> = new Set();
  /** Called when an engine is suspended: it may be asked after `restMs` whether it is back. */
  onRest: ((engine: Engine, restMs: number) => void) | undefined;
  /** Requests that another deployment could answer as well. */
  readonly overdue = new OverdueWatch();
  /** Returns the number of processes that send to the same engines, including this one. */
  gateways: () => number = () => 1;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #engines = new WeakMap<Engine, EngineState>();
  readonly #deployments = new WeakMap<Deployment, DeploymentState>();
  readonly #tables = new Map<string, PrefixTable<DeploymentState>>();
  readonly #budgets = new Map<string, RetryBudget>();

  /** `random` returns numbers from 0 up to, but not including, 1. */
  constructor(clock: Clock, random: () => number = Math.random) {
    this.#clock = clock;
    this.#random = random;
  }

  /** Returns the deployments in order, without draining ones; may be empty. */
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

  /** Returns the state of the engine or of this model on it, whichever is worse. */
  state(deployment: Deployment): HealthState {
    return stateOf(this.#state(deployment), this.#clock.monotonicMs());
  }

  /** Reports whether the deployment failed a moment ago, or is already being tested. */
  resting(deployment: Deployment): boolean {
    const state = this.#state(deployment);
    return isAway(state, this.#clock.monotonicMs());
  }

  /** Reports whether the model has a deployment that takes new requests and is not suspended. */
  works(model: Model): boolean {
    return this.#open(model).some((deployment) => !this.resting(deployment));
  }

  engineState(engine: Engine): HealthState {
    return this.#engine(engine).health.state(this.#clock.monotonicMs());
  }

  /** Reports whether the engine or one of its models failed and has not recovered. */
  rests(engine: Engine): boolean {
    const { health, models } = this.#engine(engine);
    return !health.isWell || [...models.values()].some((model) => !model.health.isWell);
  }

  /**
   * Call when taking a slot: returns true if the request tests the deployment after a suspension while others wait.
   * The request then owes a verdict or a call of `release`.
   */
  claim(deployment: Deployment): boolean {
    const state = this.#state(deployment);
    if (state.isWell) return false;
    const nowMs = this.#clock.monotonicMs();
    const triesEngine = state.engine.health.claim(nowMs);
    return state.health.claim(nowMs) || triesEngine;
  }

  /** Called if the test had no verdict. */
  release(deployment: Deployment): void {
    const { engine, health } = this.#state(deployment);
    engine.health.release();
    health.release();
  }

  /** Counts the request's work as open until its assignment ends; the deployment is warm for its prompt from now on. */
  begin(
    deployment: Deployment,
    model: Model,
    workload: Workload,
    sinceMs: number = this.#clock.monotonicMs(),
  ): Assignment {
    const state = this.#state(deployment);
    let { promptTokens } = workload;
    // The pace of a model's only deployment is not needed.
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
      // The model answered, so the server works too.
      engine.health.succeeded(nowMs);
      health.failed(nowMs, this.#random);
    }
  }

  /** Called when the engine was reached without a request, for example when it listed its models. */
  reached(engine: Engine): void {
    this.#engine(engine).health.succeeded(this.#clock.monotonicMs());
  }

  /**
   * Called when the engine did not list its models in time; the poll began at `sinceMs`. An engine that is only busy
   * is in the middle of an answer, or began one since.
   */
  silent(engine: Engine, sinceMs: number): void {
    const { answeredMs, answering } = this.#engine(engine);
    if (answering === 0 && answeredMs < sinceMs) this.unreachable(engine);
  }

  /** Reports whether the engine began any answer after `sinceMs`, in monotonic milliseconds. */
  answeredSince(engine: Engine, sinceMs: number): boolean {
    return this.#engine(engine).answeredMs > sinceMs;
  }

  /** Reports whether an answer of the engine has begun and not ended. */
  isAnswering(engine: Engine): boolean {
    return this.#engine(engine).answering > 0;
  }

  unreachable(engine: Engine): void {
    const nowMs = this.#clock.monotonicMs();
    const { health } = this.#engine(engine);
    if (health.failed(nowMs, this.#random)) this.onRest?.(engine, health.restLeftMs(nowMs));
  }

  /** Notes the load that the engine reports: the part beyond this gateway's requests comes from other senders. */
  said(engine: Engine, load: EngineLoad): void {
    const state = this.#engine(engine);
    state.said = load;
    state.others = Math.max(0, load.running + load.waiting - state.requests);
    state.saidUntilMs = this.#clock.monotonicMs() + saidMs;
  }

  /** Returns the reported load; undefined if there is no recent report. */
  loadOf(engine: Engine): EngineLoad | undefined {
    const { said, saidUntilMs } = this.#engine(engine);
    return saidUntilMs > this.#clock.monotonicMs() ? said : undefined;
  }

  /** Like `claim` and `release`, for a check of the engine that is no request. */
  claimEngine(engine: Engine): boolean {
    return this.#engine(engine).health.claim(this.#clock.monotonicMs());
  }

  releaseEngine(engine: Engine): void {
    this.#engine(engine).health.release();
  }

  /** Returns the monotonic time of the last request to the engine. */
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

  /** Reports whether the engine takes new requests: it is neither away nor draining. */
  isOpen({ name, accepts }: Engine): boolean {
    return accepts !== false && !this.drained.has(name);
  }

  /** Reports whether there was a choice: for a single deployment nothing has to be remembered. */
  #isChoice(model: Model): boolean {
    const nowMs = this.#clock.monotonicMs();
    let well = 0;
    for (const deployment of this.#open(model)) if (!isAway(this.#state(deployment), nowMs)) well++;
    return well > 1;
  }

  /** Returns how many characters of the prompt the deployment was sent before, and records the prompt. */
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
      const { model } = deployment;
      const engine = this.#engine(deployment.engine);
      // The catalog creates new deployments at each poll, so the state belongs to the model on the engine.
      state = engine.models.get(model);
      if (!state) {
        state = new DeploymentState(engine, Bun.hash.xxHash32(`${deployment.engine.name} ${model}`));
        engine.models.set(model, state);
      }
      this.#deployments.set(deployment, state);
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
