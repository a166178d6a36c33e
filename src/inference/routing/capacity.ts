// Assigns slots at engines to requests. If all slots are taken, requests wait in a fair queue of limited length, each
// until its deadline.

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
  /** Maximum number of waiting requests for one engine. The value 0 disables waiting. */
  maxWaiting: number;
  maxWaitMs: number;
}

export interface CapacityOptions {
  clock: Clock;
  router: Pick<Router, "resting" | "claim">;
  /** Returns the current limits, which a configuration reload may change. */
  bounds(): CapacityBounds;
  /**
   * Maximum background requests (the idle lane) at an engine whose capacity is unknown. Default: the measured capacity.
   */
  maxIdle?(): number;
}

/** The capacity and load of an engine or model, for metrics and for the status. */
export interface CapacityFigures {
  /** The id of the model at the engine. Null if one limit covers all models of the engine. */
  model: string | null;
  limit: number;
  inFlight: number;
  waiting: number;
}

/** Waiting requests of one priority, and the expected wait of a new one. */
export interface QueueForecast {
  waiting: number;
  /** Expected wait in whole milliseconds. 0 if a slot is free, null if no answer times are known yet. */
  expectedMs: number | null;
}

/** The arrival number and deadline of a request. If the request has to wait again, it keeps its ticket. */
export interface QueueTicket {
  order: number;
  /** Deadline in monotonic milliseconds. */
  deadlineMs: number;
  /** Set while the request waits. */
  waiting?: Waiting | undefined;
  sinceMs?: number;
}

/** The position of a waiting request. */
export interface QueuePosition {
  /** Position in the queue. The request at position 1 is next. */
  place: number;
  /** Number of waiting requests, including this one. */
  of: number;
  /** Whole milliseconds that the request has waited. */
  waitedMs: number;
  /** Whole milliseconds that the request is still expected to wait. Undefined if no answer times are known yet. */
  expectedMs: number | undefined;
}

interface EngineGates {
  shared: Gate | undefined;
  generation: Map<string, Gate>;
  /** Gates for embeddings. They are separate, because the built-in engine has separate slots for embeddings. */
  embedding: Map<string, Gate>;
}

const maxRetrySeconds = 60;
/** `Retry-After` in seconds if no answer times are known yet. */
const defaultRetrySeconds = 5;

/** Milliseconds between two checks whether the suspension of an engine is over, while requests wait for it. */
const restCheckMs = 250;

export class Capacity {
  readonly #options: CapacityOptions;
  readonly #engines = new WeakMap<Engine, EngineGates>();
  readonly #waiting = new IndexedSet<Waiting>();
  #arrivals = 0;

  constructor(options: CapacityOptions) {
    this.#options = options;
  }

  /** Returns the ticket of a request that arrives now. */
  arrive(): QueueTicket {
    return {
      order: ++this.#arrivals,
      deadlineMs: this.#options.clock.monotonicMs() + this.#options.bounds().maxWaitMs,
    };
  }

  /**
   * Takes a free slot at the first candidate that has one. Returns undefined if no slot is free, or if other requests
   * wait for it.
   */
  take(candidates: readonly Deployment[], request: SlotRequest): Slot | undefined {
    const [only] = candidates;
    if (candidates.length === 1 && only) {
      const gate = this.#gate(only, request);
      // A single candidate is asked even while it is suspended.
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
   * Waits for a slot at one of the candidates. Rejects with `service_unavailable` if the queue is full, if the expected
   * wait is too long, or at the deadline. Rejects with the reason of `cancellation` if that is cancelled. Resolves to
   * undefined after `regroup` and after `laterMs`. The caller can then choose other candidates with the same ticket.
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
    // The expected wait counts only the requests ahead in the queue, because a mean does not show when the next slot
    // becomes free.
    const { ahead, turnMs } = outlook(gates, request);
    if (remainingMs <= 0 || ahead * (turnMs ?? 0) > remainingMs) throw noCapacity(request, gates);
    // Background requests (the idle lane) have a limit of their own and do not count towards the queue length.
    if (!request.onWanted) {
      const { maxWaiting } = this.#options.bounds();
      for (const gate of gates) if (!makeRoom(gate, request, maxWaiting)) options.delete(gate);
    }
    if (options.size === 0) throw noCapacity(request, gates);
    return await this.#enlist(request, turn, options, { remainingMs, laterMs }, cancellation);
  }

  /**
   * Waits until the engine that refused the request has ended another answer or is idle. Resolves to "late" at the
   * deadline. Rejects if cancelled.
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

  /**
   * Returns the position at the candidate that will serve the request first. Returns undefined if the request does not
   * wait.
   */
  positionOf({ waiting, sinceMs = 0 }: QueueTicket): QueuePosition | undefined {
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
   * Returns the expected milliseconds until a candidate has a free slot. Returns 0 if a slot is free, and undefined if
   * the time is unknown.
   */
  expectedWaitMs(candidates: readonly Deployment[], request: SlotRequest): number | undefined {
    const gates = [...new Set(candidates.map((deployment) => this.#gate(deployment, request)))];
    if (gates.some((gate) => gate.mayTake(request))) return 0;
    const { ahead, turnMs } = outlook(gates, request);
    return turnMs === undefined ? undefined : (ahead + 1) * turnMs;
  }

  /**
   * Returns the number of slots at all candidates that background requests may take. If all candidates are suspended,
   * at most 1, to test them.
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

  /** Returns the figures of each limit at this engine that requests have needed so far. */
  figures(engine: Engine): CapacityFigures[] {
    const gates = this.#engines.get(engine);
    if (!gates) return [];
    const figuresOf = (model: string | null, { limit, inFlight, queue }: Gate) => {
      return { model, limit, inFlight, waiting: queue.waiting };
    };
    const byModel = [...gates.generation, ...gates.embedding].map(([model, gate]) => figuresOf(model, gate));
    return gates.shared ? [figuresOf(null, gates.shared), ...byModel] : byModel;
  }

  /**
   * Returns the queue forecasts of a model at this engine. If all models share one limit, the forecasts are for all of
   * them.
   */
  lines(engine: Engine, model: string): Record<Priority, QueueForecast> {
    const { shared, generation, embedding } = this.#engines.get(engine) ?? {};
    const gates = [shared, generation?.get(model), embedding?.get(model)].filter((gate) => gate !== undefined);
    const lineOf = (priority: Priority): QueueForecast => ({
      waiting: gates.reduce((sum, { queue }) => sum + queue.waitingOf(priority), 0),
      expectedMs: gates.reduce<number | null>((most, gate) => longer(most, expectedMs(gate, priority)), 0),
    });
    return { low: lineOf("low"), normal: lineOf("normal"), high: lineOf("high") };
  }

  /**
   * Returns the number of waiting requests for each account. Only for an engine with one limit for all of its models.
   */
  waitingByAccount(engine: Engine): ReadonlyMap<string, number> {
    return this.#engines.get(engine)?.shared?.queue.waitingByAccount ?? new Map();
  }

  /** Must be called when an on-demand engine has started, so that waiting requests get its slots. */
  opened(engine: Engine): void {
    const gates = this.#engines.get(engine);
    if (!gates) return;
    for (const gate of [gates.shared, ...gates.generation.values(), ...gates.embedding.values()]) gate?.wake();
  }

  /** Number of waiting requests at all engines. */
  get waiting(): number {
    return [...this.#waiting].filter(({ request }) => !request.onWanted).length;
  }

  /** Waiting requests by the public id of the requested model. */
  get waitingByModel(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>();
    for (const { request } of this.#waiting)
      if (!request.onWanted) counts.set(request.model, (counts.get(request.model) ?? 0) + 1);
    return counts;
  }

  /** Waiting requests by priority. */
  get waitingByPriority(): Readonly<Record<Priority, number>> {
    const counts = { low: 0, normal: 0, high: 0 };
    for (const { request, priority } of this.#waiting) if (!request.onWanted) counts[priority]++;
    return counts;
  }

  /** Makes all waiting requests choose their candidates again. Must be called after a change of engines. */
  regroup(): void {
    // The earliest request chooses first, so that it gets a free slot.
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
        // The request that leaves may have blocked a smaller one, or one of another account.
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
      // One gate is enough, because only one background request must release its slot.
      if (!request.onWanted) gates.some((gate) => gate.makeWay());
      // A slot may have become free before the request entered the queue.
      for (const gate of gates) gate.wake();
    });
  }

  /**
   * Gives free slots to waiting requests, and then to background requests. A request that needs several slots blocks
   * the requests behind it.
   */
  #serve(gate: Gate): void {
    // The next request is only determined if a slot is free, because thousands may wait.
    if (!gate.fits(1)) {
      gate.makeWay();
      return;
    }
    for (let next = gate.next(); next; next = gate.next()) {
      if (this.#granted(gate, next)) continue;
      // A request that needs several slots may need more than the slot that was just released.
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

  /**
   * Reports whether the deployment can get the request. While other candidates work, a suspended deployment gets no
   * request. After the suspension it gets a single request, as a test.
   */
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

  /** Returns the gate of one model, for an engine whose models have separate capacities. */
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

/**
 * Makes space in a full queue: a person or key with more than its fair share loses a waiting request. Returns false if
 * there is none.
 */
function makeRoom(gate: Gate, sharer: Sharer, maxWaiting: number): boolean {
  const { queue, idleInFlight } = gate;
  // A background request may end immediately, so its slot counts as queue space.
  if (queue.waiting < maxWaiting + idleInFlight) return true;
  const yielding = queue.yielding(sharer);
  if (!yielding) return false;
  gate.delist(yielding);
  yielding.options.delete(gate);
  if (yielding.options.size === 0) yielding.refuse();
  return true;
}

/**
 * Returns how many requests are served before the next request of this sharer, or before `waiting`. Also returns the
 * time per request.
 */
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

/**
 * Returns the expected wait in whole milliseconds for an account that has no other requests. Returns null if the time
 * is unknown.
 */
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
