// Chooses the order in which a model's deployments are tried: health first, then bounded load, warm prompts, least work.
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

/** A request as its way is chosen by. */
export interface Workload extends RequestSize {
  /** Asked for only where there is a choice; the same one each time. */
  prefix(): PromptPrefix | undefined;
}

/** Where a failure lies: with the server, or with one model that it has. */
export type FailureScope = "engine" | "deployment";

/** What a server said of its load is no longer believed after this. */
const saidMs = 10_000;
/** Work of a prompt token that is warm, as far as is known: it may be gone by now. By simulation. */
const warmTokenWork = 0.25;
/** Models with a table of their own; that of whichever has had it longest makes room. */
const maxTables = 32;
/** Hashes of prompts that are remembered for each deployment, and for all, from one turn to the next: some 25 MB. */
const hashesEach = 2_048;
const hashesInAll = 262_144;

export class Router {
  /** Names of engines that finish what they have and get nothing new. */
  drained: ReadonlySet<string> = new Set();
  /** Told when an engine begins to rest: somebody may ask it after `restMs` whether it is back. */
  onRest: ((engine: Engine, restMs: number) => void) | undefined;
  /** Requests that another deployment could answer as well. */
  readonly overdue = new OverdueWatch();
  /** Processes that send to the same engines, this one included. */
  gateways: () => number = () => 1;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #engines = new WeakMap<Engine, EngineState>();
  readonly #deployments = new WeakMap<Deployment, DeploymentState>();
  readonly #tables = new Map<string, PrefixTable<DeploymentState>>();
  readonly #budgets = new Map<string, RetryBudget>();

  /** `random`: from 0 up to, and without, 1. */
  constructor(clock: Clock, random: () => number = Math.random) {
    this.#clock = clock;
    this.#random = random;
  }

  /** Without what is drained, so it may be empty. */
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

  /** The state of the engine or of this model on it, whichever is worse. */
  state(deployment: Deployment): HealthState {
    return stateOf(this.#state(deployment), this.#clock.monotonicMs());
  }

  /** Whether it failed a moment ago, or somebody tries it again already. */
  resting(deployment: Deployment): boolean {
    const state = this.#state(deployment);
    return isAway(state, this.#clock.monotonicMs());
  }

  /** Whether it has a deployment that takes new requests and is not at rest. */
  works(model: Model): boolean {
    return this.#open(model).some((deployment) => !this.resting(deployment));
  }

  engineState(engine: Engine): HealthState {
    return this.#engine(engine).health.state(this.#clock.monotonicMs());
  }

  /** Reports whether the engine, or one of its models, failed and was not found well since. */
  rests(engine: Engine): boolean {
    const { health, models } = this.#engine(engine);
    return !health.isWell || [...models.values()].some((model) => !model.health.isWell);
  }

  /**
   * For whoever takes a place: true where its request is the one that tries the deployment after a rest, while the others
   * wait. Then it owes a verdict, or a call of `release`.
   */
  claim(deployment: Deployment): boolean {
    const state = this.#state(deployment);
    if (state.isWell) return false;
    const nowMs = this.#clock.monotonicMs();
    const triesEngine = state.engine.health.claim(nowMs);
    return state.health.claim(nowMs) || triesEngine;
  }

  /** What was claimed came to no verdict. */
  release(deployment: Deployment): void {
    const { engine, health } = this.#state(deployment);
    engine.health.release();
    health.release();
  }

  /** Counts the request's work as outstanding until its assignment ends; the deployment is warm for its prompt from now on. */
  begin(
    deployment: Deployment,
    model: Model,
    workload: Workload,
    sinceMs: number = this.#clock.monotonicMs(),
  ): Assignment {
    const state = this.#state(deployment);
    let { promptTokens } = workload;
    // Nothing has to be known of the pace of one that there is no other beside.
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
      // It answered, so the server is there.
      engine.health.succeeded(nowMs);
      health.failed(nowMs, this.#random);
    }
  }

  /** The engine answered something that was no request. */
  reached(engine: Engine): void {
    this.#engine(engine).health.succeeded(this.#clock.monotonicMs());
  }

  /** The engine did not list its models in time, asked at `sinceMs`. One that is only busy is in the middle of an answer, or began one. */
  silent(engine: Engine, sinceMs: number): void {
    const { answeredMs, answering } = this.#engine(engine);
    if (answering === 0 && answeredMs < sinceMs) this.unreachable(engine);
  }

  /** Reports whether the engine began any answer after `sinceMs`, in monotonic milliseconds. */
  answeredSince(engine: Engine, sinceMs: number): boolean {
    return this.#engine(engine).answeredMs > sinceMs;
  }

  /** Reports whether any answer of the engine has begun and not ended. */
  isAnswering(engine: Engine): boolean {
    return this.#engine(engine).answering > 0;
  }

  unreachable(engine: Engine): void {
    const nowMs = this.#clock.monotonicMs();
    const { health } = this.#engine(engine);
    if (health.failed(nowMs, this.#random)) this.onRest?.(engine, health.restLeftMs(nowMs));
  }

  /** What the engine says of its load: what is beyond ours was sent by others. */
  said(engine: Engine, load: EngineLoad): void {
    const state = this.#engine(engine);
    state.said = load;
    state.others = Math.max(0, load.running + load.waiting - state.requests);
    state.saidUntilMs = this.#clock.monotonicMs() + saidMs;
  }

  /** Undefined where it said nothing lately. */
  loadOf(engine: Engine): EngineLoad | undefined {
    const { said, saidUntilMs } = this.#engine(engine);
    return saidUntilMs > this.#clock.monotonicMs() ? said : undefined;
  }

  /** Like `claim` and `release`, for whoever asks the engine something that is no request. */
  claimEngine(engine: Engine): boolean {
    return this.#engine(engine).health.claim(this.#clock.monotonicMs());
  }

  releaseEngine(engine: Engine): void {
    this.#engine(engine).health.release();
  }

  /** Monotonic milliseconds of the last request to it. */
  lastUsedMs(engine: Engine): number {
    return this.#engine(engine).lastUsedMs;
  }

  /** Requests that the engine has from this gateway. */
  requestsAt(engine: Engine): number {
    return this.#engine(engine).requests;
  }

  /** For requests for this model. */
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

  /** Whether it takes new requests: it is neither away nor drained. */
  isOpen({ name, accepts }: Engine): boolean {
    return accepts !== false && !this.drained.has(name);
  }

  /** Whether another could have been asked as well: for one alone nothing has to be remembered. */
  #isChoice(model: Model): boolean {
    const nowMs = this.#clock.monotonicMs();
    let well = 0;
    for (const deployment of this.#open(model)) if (!isAway(this.#state(deployment), nowMs)) well++;
    return well > 1;
  }

  /** Characters of the prompt that it was sent before. */
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
      // The catalog makes its deployments anew at each look: what is known is known of the model on the engine.
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
