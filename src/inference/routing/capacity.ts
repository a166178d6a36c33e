// Gives requests their places at engines; when all are taken, lets them wait in a bounded, fair queue with a deadline.

import type { Cancellation } from "../../base/cancellation.ts";
import type { Clock } from "../../base/clock.ts";
import { GatewayError } from "../../base/errors.ts";
import { IndexedSet, noIndex } from "../../base/indexed-set.ts";
import type { Engine, OnDemand } from "../../domain/models/engine.ts";
import type { Deployment } from "../../domain/models/model.ts";
import { generates } from "../../domain/models/operation.ts";
import type { Priority } from "../../domain/models/policies/priority.ts";
import type { Sharer } from "./fair-queue.ts";
import { Gate, type RoomFound, type Slot, type SlotRequest, type Waiting } from "./gate.ts";
import type { Router } from "./route.ts";

export interface CapacityBounds {
  /** Requests that may wait for one engine; 0: none waits. */
  maxWaiting: number;
  maxWaitMs: number;
}

export interface CapacityOptions {
  clock: Clock;
  router: Pick<Router, "resting" | "claim">;
  /** Asked for whenever a request has to wait: a reload may change them. */
  bounds(): CapacityBounds;
  /** Most requests of the idle lane at an engine of which nobody says how many it takes. Left out: as many as are measured. */
  maxIdle?(): number;
}

/** For metrics and the state of models. */
export interface CapacityFigures {
  /** The engine's own id of the model; null where one limit holds for all of its models together. */
  model: string | null;
  limit: number;
  inFlight: number;
  waiting: number;
}

/** What waits with one priority for a model at an engine, and what a request that came now would have to expect. */
export interface QueueForecast {
  waiting: number;
  /** Whole milliseconds; 0: it would not wait, null: nothing is known yet of how long answers take. */
  expectedMs: number | null;
}

/** When a request came, and how long it may wait in all, however often it comes back. */
export interface QueueTicket {
  order: number;
  /** Monotonic milliseconds. */
  deadlineMs: number;
  /** While it waits, since when, in monotonic milliseconds. */
  waiting?: Waiting | undefined;
  sinceMs?: number;
}

/** Where a request stands that waits. */
export interface QueuePosition {
  /** 1: it is next. */
  place: number;
  /** Requests that wait, itself included. */
  of: number;
  /** Whole milliseconds. */
  waitedMs: number;
  /** Whole milliseconds that it has to wait still; undefined where nothing is known yet of how long answers take. */
  expectedMs: number | undefined;
}

interface EngineGates {
  shared: Gate | undefined;
  generation: Map<string, Gate>;
  /** Apart: the built-in engine has places of their own for embeddings. */
  embedding: Map<string, Gate>;
}

const maxRetrySeconds = 60;
/** Where nothing is known yet of how long answers take. */
const defaultRetrySeconds = 5;

/** How soon it is noticed that an engine's rest is over, while requests wait for it. */
const restCheckMs = 250;

export class Capacity {
  readonly #options: CapacityOptions;
  readonly #engines = new WeakMap<Engine, EngineGates>();
  readonly #waiting = new IndexedSet<Waiting>();
  #arrivals = 0;

  constructor(options: CapacityOptions) {
    this.#options = options;
  }

  /** The turn of a request that arrives now. */
  arrive(): QueueTicket {
    return {
      order: ++this.#arrivals,
      deadlineMs: this.#options.clock.monotonicMs() + this.#options.bounds().maxWaitMs,
    };
  }

  /** A place at the first candidate that has one free, unless others wait for it already. */
  take(candidates: readonly Deployment[], request: SlotRequest): Slot | undefined {
    const [only] = candidates;
    if (candidates.length === 1 && only) {
      const gate = this.#gate(only, request);
      // Whether its engine is at rest does not matter, as there is no other.
      return gate.mayTake(request) ? gate.take(only, request) : undefined;
    }
    const othersWork = this.#anyWorks(candidates);
    for (const deployment of candidates) {
      const gate = this.#gate(deployment, request);
      if (gate.mayTake(request) && this.#isFree(gate, deployment, request, othersWork)) {
        return this.#takeSlot(gate, deployment, request);
      }
    }
    return undefined;
  }

  /**
   * Waits for a place at whichever candidate has one first. Rejects with `service_unavailable` at once when too many
   * wait or the wait would pass the deadline, then when it does pass; with the reason of `cancellation` when that comes first.
   * Resolves to undefined after `regroup`, and after `laterMs`: then it may have other candidates, and its turn is the same.
   */
  async wait(
    candidates: readonly Deployment[],
    request: SlotRequest,
    turn: QueueTicket,
    cancellation: Cancellation,
    laterMs?: number,
  ): Promise<Slot | undefined> {
    cancellation.throwIfCancelled();
    const options = new Map<Gate, Deployment>();
    for (const deployment of candidates) {
      const gate = this.#gate(deployment, request);
      if (!options.has(gate)) options.set(gate, deployment);
    }
    const gates = [...options.keys()];
    const remainingMs = turn.deadlineMs - this.#options.clock.monotonicMs();
    // The turns of those ahead, not its own: a mean says little of when the next place becomes free.
    const { ahead, turnMs } = outlook(gates, request);
    if (remainingMs <= 0 || ahead * (turnMs ?? 0) > remainingMs) throw noCapacity(request, gates);
    // The idle lane bounds itself, and takes nobody's place in the queue.
    if (!request.onWanted) {
      const { maxWaiting } = this.#options.bounds();
      for (const gate of gates) if (!makeRoom(gate, request, maxWaiting)) options.delete(gate);
    }
    if (options.size === 0) throw noCapacity(request, gates);
    return await this.#enlist(request, turn, options, { remainingMs, laterMs }, cancellation);
  }

  /**
   * Waits until a gate whose engine refused the request has room; "late" where the turn is over before. Rejects with the reason
   * of `cancellation`.
   */
  waitForRoom(gate: Gate, turn: QueueTicket, cancellation: Cancellation): Promise<RoomFound | "late"> {
    cancellation.throwIfCancelled();
    return new Promise((resolve, reject) => {
      const leave = () => {
        clearTimeout(timer);
        cancellation.off(onCancel);
        gate.leaveRoom(waiter);
      };
      const room = (found: RoomFound | "late") => {
        leave();
        resolve(found);
      };
      const waiter = { room };
      const onCancel = () => {
        leave();
        reject(cancellation.reason);
      };
      const remainingMs = turn.deadlineMs - this.#options.clock.monotonicMs();
      const timer = setTimeout(room, Math.max(0, remainingMs), "late");
      cancellation.onCancel(onCancel);
      gate.waitForRoom(waiter);
    });
  }

  /** Undefined where it does not wait: at whichever of its candidates its turn comes first. */
  standing({ waiting, sinceMs = 0 }: QueueTicket): QueuePosition | undefined {
    if (!waiting) return undefined;
    const gates = [...waiting.options.keys()];
    const { ahead, turnMs } = outlook(gates, waiting, waiting);
    const position = ahead + 1;
    const of = Math.max(position, ...gates.map(({ queue }) => queue.waiting));
    const waitedMs = Math.round(this.#options.clock.monotonicMs() - sinceMs);
    return {
      place: position,
      of,
      waitedMs,
      expectedMs: turnMs === undefined ? undefined : Math.round(position * turnMs),
    };
  }

  /**
   * How long this request would wait for a place at one of them, by how long answers took so far: milliseconds, 0 where one
   * is free; undefined where nobody knows.
   */
  expectedWaitMs(candidates: readonly Deployment[], request: SlotRequest): number | undefined {
    const gates = [...new Set(candidates.map((deployment) => this.#gate(deployment, request)))];
    if (gates.some((gate) => gate.mayTake(request))) return 0;
    const { ahead, turnMs } = outlook(gates, request);
    return turnMs === undefined ? undefined : (ahead + 1) * turnMs;
  }

  /**
   * How many requests like this one the idle lane would get places for now, at all candidates together. Where all of them are
   * at rest, one is enough to see whether that is over.
   */
  idleSlots(candidates: readonly Deployment[], request: SlotRequest): number {
    const isAtRest = !this.#anyWorks(candidates);
    const gates = new Set<Gate>();
    for (const deployment of candidates) {
      if (isAtRest || !this.#options.router.resting(deployment)) gates.add(this.#gate(deployment, request));
    }
    let slots = 0;
    for (const gate of gates) slots += gate.idleSlots;
    return isAtRest ? Math.min(1, slots) : slots;
  }

  /** One entry for each limit of this engine that was needed so far. */
  figures(engine: Engine): CapacityFigures[] {
    const gates = this.#engines.get(engine);
    if (!gates) return [];
    const figuresOf = (model: string | null, { limit, inFlight, queue }: Gate) => {
      return { model, limit, inFlight, waiting: queue.waiting };
    };
    const byModel = [...gates.generation, ...gates.embedding].map(([model, gate]) => figuresOf(model, gate));
    return gates.shared ? [figuresOf(null, gates.shared), ...byModel] : byModel;
  }

  /** For a model at this engine, or for all of its models where one limit holds for them together. */
  lines(engine: Engine, model: string): Record<Priority, QueueForecast> {
    const { shared, generation, embedding } = this.#engines.get(engine) ?? {};
    const gates = [shared, generation?.get(model), embedding?.get(model)].filter((gate) => gate !== undefined);
    const lineOf = (priority: Priority): QueueForecast => ({
      waiting: gates.reduce((sum, { queue }) => sum + queue.waitingOf(priority), 0),
      expectedMs: gates.reduce<number | null>((most, gate) => longer(most, expectedMs(gate, priority)), 0),
    });
    return { low: lineOf("low"), normal: lineOf("normal"), high: lineOf("high") };
  }

  /** Requests that wait at an engine whose limit is one for all of its models, by account. */
  waitingByAccount(engine: Engine): ReadonlyMap<string, number> {
    return this.#engines.get(engine)?.shared?.queue.waitingByAccount ?? new Map();
  }

  /** To be called when an engine that is started for requests is open: whoever waits for it gets its places. */
  opened(engine: Engine): void {
    const gates = this.#engines.get(engine);
    if (!gates) return;
    for (const gate of [gates.shared, ...gates.generation.values(), ...gates.embedding.values()]) gate?.wake();
  }

  /** Requests that wait, at whichever engines. */
  get waiting(): number {
    return [...this.#waiting].filter(({ request }) => !request.onWanted).length;
  }

  /** The same by the public id of the model that each asked for. */
  get waitingByModel(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>();
    for (const { request } of this.#waiting)
      if (!request.onWanted) counts.set(request.model, (counts.get(request.model) ?? 0) + 1);
    return counts;
  }

  /** The same by priority. */
  get waitingByPriority(): Readonly<Record<Priority, number>> {
    const counts = { low: 0, normal: 0, high: 0 };
    for (const { request, priority } of this.#waiting) if (!request.onWanted) counts[priority]++;
    return counts;
  }

  /** After a change of engines: whoever waits looks again for where it may go. */
  regroup(): void {
    // In the order in which they came: the first to look takes what is free.
    for (const waiting of [...this.#waiting].sort((a, b) => a.order - b.order)) waiting.regroup();
  }

  #enlist(
    request: SlotRequest,
    turn: QueueTicket,
    options: Map<Gate, Deployment>,
    { remainingMs, laterMs = remainingMs }: { remainingMs: number; laterMs: number | undefined },
    cancellation: Cancellation,
  ): Promise<Slot | undefined> {
    return new Promise((resolve, reject) => {
      const gates = [...options.keys()];
      const leave = () => {
        clearTimeout(timer);
        turn.waiting = undefined;
        this.#waiting.delete(waiting);
        cancellation.off(onCancel);
        for (const gate of gates) gate.delist(waiting);
      };
      const fail = (reason: () => unknown) => {
        leave();
        reject(reason());
        // Somebody narrower, or of another account, may have stood behind it.
        for (const gate of gates) gate.wake();
      };
      const waiting: Waiting = {
        setIndex: noIndex,
        priority: request.priority,
        accountId: request.accountId,
        partyId: request.partyId,
        order: turn.order,
        request,
        options,
        grant(slot) {
          leave();
          resolve(slot);
          for (const gate of gates) if (gate !== slot.gate) gate.wake();
        },
        refuse: () => fail(refusal),
        regroup() {
          leave();
          resolve(undefined);
        },
      };
      turn.waiting = waiting;
      turn.sinceMs = this.#options.clock.monotonicMs();
      this.#waiting.add(waiting);
      const refusal = () => noCapacity(request, gates);
      const onCancel = () => fail(() => cancellation.reason);
      const timer =
        laterMs < remainingMs
          ? setTimeout(() => waiting.regroup(), laterMs)
          : setTimeout(() => fail(refusal), remainingMs);
      cancellation.onCancel(onCancel);
      for (const gate of gates) gate.enlist(waiting);
      // Whoever it is that gives way, one place is enough.
      if (!request.onWanted) gates.some((gate) => gate.makeWay());
      // One may have become free in the meantime, as when an engine's rest is over.
      for (const gate of gates) gate.wake();
    });
  }

  /**
   * Gives free places to those whose turn it is, and what is left then to the idle lane. A wide request that does not fit yet
   * holds up the rest.
   */
  #serve(gate: Gate): void {
    // Whose turn it is need not be found out before a place is free: thousands may wait, and come or leave all at once.
    if (!gate.fits(1)) {
      gate.makeWay();
      return;
    }
    for (let next = gate.next(); next; next = gate.next()) {
      if (this.#granted(gate, next)) continue;
      // The place that was given for it is not enough: it is wide, or the engine takes fewer by now.
      if (!gate.fits(next.request.width)) gate.makeWay();
      return;
    }
    gate.waitForHeadroom();
    for (let next = gate.idleQueue.next(); next; next = gate.idleQueue.next()) if (!this.#granted(gate, next)) return;
  }

  #granted(gate: Gate, waiting: Waiting): boolean {
    const { options, request } = waiting;
    const deployment = options.get(gate);
    if (!deployment || !this.#isFree(gate, deployment, request, this.#anyWorks(options.values()))) return false;
    waiting.grant(this.#takeSlot(gate, deployment, request));
    return true;
  }

  #takeSlot(gate: Gate, deployment: Deployment, request: SlotRequest): Slot {
    const slot = gate.take(deployment, request);
    if (this.#options.router.claim(deployment)) slot.isTrial = true;
    return slot;
  }

  /** A deployment at rest after a failure gets nothing while others work, and one request when its rest is over. */
  #isFree(gate: Gate, deployment: Deployment, { width, onWanted }: SlotRequest, othersWork: boolean): boolean {
    if (othersWork && this.#options.router.resting(deployment)) {
      gate.wakeLater(restCheckMs);
      return false;
    }
    return onWanted ? gate.fitsIdle(width) : gate.fits(width);
  }

  #anyWorks(candidates: Iterable<Deployment>): boolean {
    for (const deployment of candidates) if (!this.#options.router.resting(deployment)) return true;
    return false;
  }

  #gate(deployment: Deployment, request: SlotRequest): Gate {
    const { engine } = deployment;
    let gates = this.#engines.get(engine);
    if (!gates) {
      gates = { shared: undefined, generation: new Map(), embedding: new Map() };
      this.#engines.set(engine, gates);
    }
    if (engine.concurrency) return this.#gateOf(deployment, request, gates);
    gates.shared ??= this.#newGate(engine, engine.onDemand, undefined);
    return gates.shared;
  }

  /** The gate of one model at an engine that says how much each of its models takes. */
  #gateOf({ engine, model }: Deployment, { operation }: SlotRequest, { embedding, generation }: EngineGates): Gate {
    const byModel = generates[operation] ? generation : embedding;
    let gate = byModel.get(model);
    if (!gate) {
      const onDemand = engine.onDemandFor?.(model, operation) ?? engine.onDemand;
      gate = this.#newGate(engine, onDemand, () => engine.concurrency?.(model, operation));
      byModel.set(model, gate);
    }
    return gate;
  }

  #newGate(
    { maxConcurrency }: Engine,
    onDemand: OnDemand | undefined,
    declared: (() => number | undefined) | undefined,
  ): Gate {
    const { clock, maxIdle } = this.#options;
    const onFree = (gate: Gate) => this.#serve(gate);
    return new Gate({ clock, declared, bound: maxConcurrency, onDemand, onFree, maxIdle });
  }
}

/** Where the queue is full, whoever has more of it than is fair gives way to those with less. */
function makeRoom(gate: Gate, sharer: Sharer, maxWaiting: number): boolean {
  const { queue, idleInFlight } = gate;
  // Whoever gets the place of a request of the idle lane does not wait for an answer to end.
  if (queue.waiting < maxWaiting + idleInFlight) return true;
  const yielding = queue.yielding(sharer);
  if (!yielding) return false;
  gate.delist(yielding);
  yielding.options.delete(gate);
  if (yielding.options.size === 0) yielding.refuse();
  return true;
}

/** How many are served before one more of this sharer, or `waiting`, and how often one is; `turnMs` undefined where unknown. */
function outlook(
  gates: readonly Gate[],
  sharer: Sharer,
  waiting?: Waiting,
): { ahead: number; turnMs: number | undefined } {
  const ahead = Math.min(...gates.map(({ queue }) => queue.ahead(sharer, waiting)));
  let turnsPerMs = 0;
  for (const gate of gates) {
    const turnMs = gate.turnMsOf(sharer.priority);
    if (turnMs === undefined) return { ahead, turnMs };
    turnsPerMs += 1 / Math.max(turnMs, 0.001);
  }
  return { ahead, turnMs: 1 / turnsPerMs };
}

/** Whole milliseconds that a request would wait that nobody else's came before; null: unknown. */
function expectedMs(gate: Gate, priority: Priority): number | null {
  if (gate.mayTake({ priority, width: 1 })) return 0;
  const { ahead, turnMs } = outlook([gate], { priority, accountId: "", partyId: "" });
  return turnMs === undefined ? null : Math.round((ahead + 1) * turnMs);
}

function longer(one: number | null, other: number | null): number | null {
  return one === null || other === null ? null : Math.max(one, other);
}

function noCapacity(request: SlotRequest, gates: readonly Gate[]): GatewayError {
  const { ahead, turnMs } = outlook(gates, request);
  const seconds = turnMs === undefined ? defaultRetrySeconds : Math.ceil(((ahead + 1) * turnMs) / 1000);
  const retryAfterSeconds = Math.min(Math.max(seconds, 1), maxRetrySeconds);
  const count = Math.max(...gates.map(({ queue }) => queue.waiting));
  const wait = count === 0 ? "" : count === 1 ? " (1 request waits)" : ` (${count} requests wait)`;
  const why = gates.some(({ isOpen }) => isOpen) ? "has no free capacity now" : "is not loaded yet";
  const message = `The model \`${request.model}\` ${why}${wait}. Retry in ${retryAfterSeconds} s.`;
  return new GatewayError("service_unavailable", message, { retryAfterSeconds, refusal: "capacity" });
}
