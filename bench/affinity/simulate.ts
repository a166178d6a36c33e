// Plays the same sessions against replicas of a model, with one way of choosing among them, and measures what came of it.
import { makePolicy, type PolicyName, type World } from "./policies.ts";
import { type Piece, Replica, type ReplicaSettings, type SimulatedRequest } from "./replica.ts";
import type { Session } from "./traffic.ts";

export interface Scenario {
  sessions: readonly Session[];
  replicas: number;
  /** Gateways that share them, each of which knows its own requests alone; turns go to any of them. */
  gateways: number;
  settings: ReplicaSettings;
  /** Sessions begin within this time; what begins in the first fifth is not counted, as all is cold then. */
  durationMs: number;
  random(): number;
}

export interface Outcome {
  requests: number;
  promptTokens: number;
  /** Part of the prompt tokens that was computed, and part that was computed though some replica had done so before. */
  computed: number;
  recomputed: number;
  /** Requests in flight of the busiest replica over the mean of all, each second: 99 of 100 are below. */
  imbalance: number;
  /** Likewise of the work that was done in a minute, of its prompt tokens and eight times those of answers. */
  workImbalance: number;
  /** Milliseconds to the first token. */
  firstTokenP50: number;
  firstTokenP99: number;
  /** Part of the time in which a replica had something to do. */
  busy: number;
}

interface Event {
  atMs: number;
  /** The order in which events at the same time were made. */
  order: number;
  run(): void;
}

const minute = 60_000;
const workSampleMs = 5_000;

export function simulate(scenario: Scenario, policyName: PolicyName): Outcome {
  return new Simulation(scenario, policyName).run();
}

class Simulation {
  readonly #scenario: Scenario;
  readonly #replicas: Replica[];
  readonly #policies: ReturnType<typeof makePolicy>[];
  readonly #running: boolean[];
  readonly #events: Event[] = [];
  readonly #done: SimulatedRequest[] = [];
  readonly #imbalances: number[] = [];
  readonly #workImbalances: number[] = [];
  readonly #workDone: number[][] = [];
  #nowMs = 0;
  #order = 0;

  constructor(scenario: Scenario, policyName: PolicyName) {
    this.#scenario = scenario;
    const everComputed = new Set<number>();
    this.#replicas = Array.from({ length: scenario.replicas }, () => new Replica(scenario.settings, everComputed));
    this.#running = this.#replicas.map(() => false);
    const world: World = {
      replicas: this.#replicas,
      gateways: scenario.gateways,
      clock: { nowSeconds: () => Math.floor(this.#nowMs / 1_000), monotonicMs: () => this.#nowMs },
      random: scenario.random,
    };
    this.#policies = Array.from({ length: scenario.gateways }, () => makePolicy(policyName, world));
  }

  run(): Outcome {
    const { sessions, durationMs } = this.#scenario;
    for (const session of sessions) this.#at(session.startMs, () => this.#turn(session, 0, []));
    this.#every(1_000, () => this.#sample());
    this.#every(workSampleMs, () => this.#sampleWork());
    this.#every(2_000, () => {
      for (const policy of this.#policies) policy.look?.();
    });
    for (let next = this.#pop(); next && next.atMs <= durationMs; next = this.#pop()) {
      this.#nowMs = next.atMs;
      next.run();
    }
    return this.#outcome();
  }

  #turn(session: Session, index: number, before: readonly Piece[]): void {
    const turn = session.turns[index];
    if (!turn) return;
    const prompt = [...before, ...turn.added];
    const promptTokens = prompt.reduce((sum, { tokens }) => sum + tokens, 0);
    const gateway = Math.floor(this.#scenario.random() * this.#policies.length);
    const choice = this.#policies[gateway]?.choose({
      prompt,
      promptTokens,
      account: session.account,
      opening: session.turns[0]?.added.length ?? 0,
    });
    if (!choice) throw new Error("no gateway");
    const request: SimulatedRequest = {
      prompt,
      promptTokens,
      answer: turn.answer,
      sentMs: this.#nowMs,
      firstTokenMs: 0,
      endMs: 0,
      computed: 0,
      recomputed: 0,
      began: () => choice.began(),
      ended: () => {
        choice.ended(turn.answer.tokens);
        this.#done.push(request);
        const next = session.turns[index + 1];
        if (next) this.#at(this.#nowMs + next.pauseMs, () => this.#turn(session, index + 1, [...prompt, turn.answer]));
      },
    };
    this.#replicas[choice.replica]?.add(request);
    this.#start(choice.replica);
  }

  #start(index: number): void {
    const replica = this.#replicas[index];
    if (!replica || this.#running[index]) return;
    const pass = replica.pass();
    if (!pass) return;
    this.#running[index] = true;
    this.#at(this.#nowMs + pass.ms, () => {
      this.#running[index] = false;
      pass.finish(this.#nowMs);
      this.#start(index);
    });
  }

  #sample(): void {
    if (this.#nowMs < this.#countedFromMs) return;
    const loads = this.#replicas.map(({ requests }) => requests);
    this.#imbalances.push(imbalanceOf(loads));
  }

  #sampleWork(): void {
    const done = this.#replicas.map(({ promptDone, answerDone }) => promptDone + 8 * answerDone);
    const before = this.#workDone[this.#workDone.length - minute / workSampleMs];
    this.#workDone.push(done);
    if (!before || this.#nowMs < this.#countedFromMs + minute) return;
    this.#workImbalances.push(imbalanceOf(done.map((work, index) => work - (before[index] ?? 0))));
  }

  get #countedFromMs(): number {
    return this.#scenario.durationMs / 5;
  }

  #outcome(): Outcome {
    const counted = this.#done.filter(({ sentMs }) => sentMs >= this.#countedFromMs);
    const sum = (of: (request: SimulatedRequest) => number) => counted.reduce((total, one) => total + of(one), 0);
    const promptTokens = sum((request) => request.promptTokens);
    const first = counted.map(({ firstTokenMs, sentMs }) => firstTokenMs - sentMs).sort((a, b) => a - b);
    const busyMs = this.#replicas.reduce((total, replica) => total + replica.busyMs, 0);
    return {
      requests: counted.length,
      promptTokens,
      computed: sum(({ computed }) => computed) / promptTokens,
      recomputed: sum(({ recomputed }) => recomputed) / promptTokens,
      imbalance: quantile(
        this.#imbalances.sort((a, b) => a - b),
        0.99,
      ),
      workImbalance: quantile(
        this.#workImbalances.sort((a, b) => a - b),
        0.99,
      ),
      firstTokenP50: quantile(first, 0.5),
      firstTokenP99: quantile(first, 0.99),
      busy: busyMs / (this.#scenario.durationMs * this.#replicas.length),
    };
  }

  #every(ms: number, run: () => void): void {
    const again = () => {
      run();
      this.#at(this.#nowMs + ms, again);
    };
    this.#at(ms, again);
  }

  #at(atMs: number, run: () => void): void {
    const events = this.#events;
    const event = { atMs, order: ++this.#order, run };
    let index = events.push(event) - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      const above = events[parent];
      if (!above || !isBefore(event, above)) break;
      events[index] = above;
      index = parent;
    }
    events[index] = event;
  }

  #pop(): Event | undefined {
    const events = this.#events;
    const [first] = events;
    const last = events.pop();
    if (!last || events.length === 0) return first;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      const [left, right] = [events[child], events[child + 1]];
      if (left && right && isBefore(right, left)) child++;
      const below = events[child];
      if (!below || !isBefore(below, last)) break;
      events[index] = below;
      index = child;
    }
    events[index] = last;
    return first;
  }
}

function isBefore(a: Event, b: Event): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}

/** The largest over the mean; 1 where there is nothing. */
function imbalanceOf(loads: readonly number[]): number {
  const sum = loads.reduce((total, load) => total + load, 0);
  return sum === 0 ? 1 : (Math.max(...loads) * loads.length) / sum;
}

function quantile(sorted: readonly number[], part: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? 0;
}
