// Counts the requests in flight at one engine. If the engine declares a capacity for each model, each model has its own
// gate.

import type { Clock } from "../../base/clock.ts";
import type { IndexedItem } from "../../base/indexed-set.ts";
import type { OnDemand } from "../../domain/models/engine.ts";
import type { Deployment } from "../../domain/models/model.ts";
import type { Operation } from "../../domain/models/operation.ts";
import type { Priority } from "../../domain/models/policies/priority.ts";
import { operations } from "../../requests/dialects/dialects.ts";
import type { Answer, AnswerKind } from "./answer-times.ts";
import { ConcurrencyLimit } from "./concurrency-limit.ts";
import { FairQueue, type Sharer, type Waiter } from "./fair-queue.ts";
import { Headroom } from "./headroom.ts";

/** The parts of a request that decide about its slot. */
export interface SlotRequest extends Sharer {
  operation: Operation;
  stream: boolean;
  /** Number of parallel generations. */
  width: number;
  /** The model's public id, for error messages. */
  model: string;
  /**
   * Set for background requests (the idle lane): called if another request needs the slot, which must then be released
   * immediately.
   */
  readonly onWanted?: (() => void) | undefined;
}

/** A waiting request. It may wait at the gates of several engines. */
export interface Waiting extends Waiter, IndexedItem {
  readonly request: SlotRequest;
  readonly options: Map<Gate, Deployment>;
  grant(slot: Slot): void;
  /** Called when the request was removed from the queues of all its gates. */
  refuse(): void;
  /** Called when engines have changed, so that the request looks for new gates. */
  regroup(): void;
}

/** The reason why a refused request may try again: the engine ended an answer, or it is idle. */
export type RoomFound = "answered" | "idle";

/** A request that the engine refused for lack of capacity. */
export interface RoomWaiter {
  /** Called once. */
  room(found: RoomFound): void;
}

export interface GateOptions {
  clock: Clock;
  /** Returns the capacity that the engine currently declares; undefined if it must be measured. */
  declared: (() => number | undefined) | undefined;
  /** The operator's upper limit for a measured capacity. */
  bound: number | undefined;
  /** Notified of running and waiting requests, if the server is started on demand. */
  onDemand: OnDemand | undefined;
  /** Called when a slot may be free while requests wait. */
  onFree(gate: Gate): void;
  /** Returns the maximum background requests at an engine of unknown capacity. Default: the measured capacity. */
  maxIdle?: (() => number) | undefined;
}

/** Maximum slots that one long-held slot counts as, so that a priority's debt is repaid soon. */
const maxTurns = 8;

/** Milliseconds after which waiting requests check again whether fewer slots are reserved. */
const headroomCheckMs = 1_000;

/** Weight of the newest value in the mean time for which slots are held. */
const holdWeight = 1 / 16;

/**
 * Milliseconds without new background requests after one had to release its slot. Otherwise work would be started and
 * abandoned again and again.
 */
const calmMs = 250;

/** Index of the answer kind of each operation; its streams have the next index. */
const kindIndex = Object.fromEntries(operations.map((name, index) => [name, 2 * index])) as Readonly<
  Record<Operation, number>
>;

export class Gate {
  readonly queue = new FairQueue<Waiting>();
  /** The queue of background requests, served only when no other request waits. */
  readonly idleQueue = new FairQueue<Waiting>();
  readonly #headroom: Headroom;
  readonly #measured: ConcurrencyLimit;
  readonly #clock: Clock;
  readonly #declared: GateOptions["declared"];
  readonly #onDemand: OnDemand | undefined;
  readonly #onFree: GateOptions["onFree"];
  /** Answer kinds by model id at the engine, in the order of `kindIndex`. */
  readonly #kinds = new Map<string, readonly AnswerKind[]>();
  #inFlight = 0;
  /** Slots of background requests that were not asked to end, oldest first. */
  readonly #idle: Slot[] = [];
  /** Number of slots of background requests, and of those that were asked to end. */
  #idleInFlight = 0;
  #askedFor = 0;
  /** Monotonic time until which no background request gets a slot. */
  #calmUntilMs = 0;
  readonly #maxIdle: () => number;
  #holdMs: number | undefined;
  readonly #refused = new Set<RoomWaiter>();
  #patience: ReturnType<typeof setTimeout> | undefined;
  #later: ReturnType<typeof setTimeout> | undefined;
  /** The monotonic time at which the timer fires. */
  #laterAtMs = 0;

  constructor({ clock, declared, bound, onDemand, onFree, maxIdle }: GateOptions) {
    this.#clock = clock;
    this.#headroom = new Headroom(clock);
    this.#declared = declared;
    this.#onDemand = onDemand;
    this.#onFree = onFree;
    this.#measured = new ConcurrencyLimit(bound);
    const isKnown = () => bound !== undefined || declared?.() !== undefined;
    this.#maxIdle = () => (isKnown() ? Number.POSITIVE_INFINITY : (maxIdle?.() ?? Number.POSITIVE_INFINITY));
  }

  get limit(): number {
    return this.#declared?.() ?? this.#measured.value;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  /** Number of background requests that hold slots. */
  get idleInFlight(): number {
    return this.#idleInFlight;
  }

  /**
   * Returns the mean milliseconds until the next slot for this priority becomes free, if all are taken; undefined
   * before the first answer.
   */
  turnMsOf(priority: Priority): number | undefined {
    if (this.#holdMs === undefined) return undefined;
    return this.#holdMs / Math.max(1, this.limit - (priority === "high" ? 0 : this.#reservedSlots));
  }

  /** False if the server must be started first. */
  get isOpen(): boolean {
    return this.#onDemand?.open !== false;
  }

  fits(width: number): boolean {
    return this.isOpen && this.#inFlight + this.#weightOf(width) <= this.limit;
  }

  /** Reports whether a request may have a slot now: one is free, and no waiting request goes first. */
  mayTake({ priority, width, onWanted }: Pick<SlotRequest, "priority" | "width" | "onWanted">): boolean {
    if (onWanted) return this.fitsIdle(width);
    if (!this.fits(width) || this.#isReserved(priority, width)) return false;
    return this.queue.waiting === 0 || (priority === "high" && this.next() === undefined);
  }

  /** Reports whether a background request may have a slot now. */
  fitsIdle(width: number): boolean {
    if (this.queue.waiting > 0 || this.#isCalm || this.#idleInFlight >= this.#maxIdle()) return false;
    return this.fits(width) && !this.#isReserved("low", width);
  }

  /** Returns the next waiting request; undefined if there is none or the free slots are reserved for high priority. */
  next(): Waiting | undefined {
    return this.queue.next(this.#reservedSlots === 0 ? undefined : this.#isReservedFor);
  }

  /** Number of free slots that are reserved for high priority. */
  get #reservedSlots(): number {
    return Math.max(0, this.#headroom.slotsOf(this.limit) - this.queue.inFlightOf("high"));
  }

  /**
   * Reports whether only reserved slots are left for this request. All lower priorities together must leave the
   * reserved slots free; a single request for several slots may exceed that.
   */
  #isReserved(priority: Priority, width: number): boolean {
    if (priority === "high") return false;
    const ready = this.#headroom.slotsOf(this.limit);
    if (ready === 0) return false;
    const others = this.#inFlight - this.queue.inFlightOf("high");
    return others > 0 && others + this.#weightOf(width) > this.limit - ready;
  }

  readonly #isReservedFor = ({ priority, request }: Waiting): boolean => this.#isReserved(priority, request.width);

  get #isCalm(): boolean {
    return this.#calmUntilMs > 0 && this.nowMs() < this.#calmUntilMs;
  }

  /**
   * Returns how many more background requests would get a slot now. If the server must be started first, one may wait
   * for it while nothing else does.
   */
  get idleSlots(): number {
    if (this.queue.waiting > 0 || this.#isCalm) return 0;
    if (!this.isOpen) return this.#inFlight + this.idleQueue.waiting === 0 ? 1 : 0;
    const free = Math.min(this.limit - this.#inFlight - this.#reservedSlots, this.#maxIdle() - this.#idleInFlight);
    return Math.max(0, Math.floor(free) - this.idleQueue.waiting);
  }

  /** Asks background requests to end, one for each waiting request. Returns whether any was asked. */
  makeWay(): boolean {
    let asked = false;
    while (this.#askedFor < this.queue.waiting) {
      const slot = this.#idle.pop();
      if (!slot) break;
      this.#askedFor++;
      asked = true;
      slot.wanted();
    }
    if (asked) {
      this.#calmUntilMs = this.nowMs() + calmMs;
      this.wakeLater(calmMs);
    }
    return asked;
  }

  /** Waits after the engine refused the request for lack of capacity. */
  waitForRoom(waiter: RoomWaiter): void {
    if (this.#inFlight === 0) waiter.room("idle");
    else this.#refused.add(waiter);
  }

  leaveRoom(waiter: RoomWaiter): void {
    this.#refused.delete(waiter);
  }

  #reportRoom(hasAnswered: boolean): void {
    const isIdle = this.#inFlight === 0;
    if (!hasAnswered && !isIdle) return;
    for (const waiter of [...this.#refused]) {
      this.#refused.delete(waiter);
      waiter.room(hasAnswered ? "answered" : "idle");
      if (!isIdle) return;
    }
  }

  /** Takes a slot for the request, even if none is free. */
  take(deployment: Deployment, request: SlotRequest): Slot {
    const { operation, stream, onWanted } = request;
    const weight = this.#weightOf(request.width);
    this.#inFlight += weight;
    const round = (onWanted ? this.idleQueue : this.queue).took(request, weight);
    if (request.priority === "high" && !onWanted) this.#headroom.wanted(this.#wantedByHigh);
    this.#reportDemand();
    const kinds = this.#kinds.get(deployment.model) ?? this.#kindsOf(deployment.model);
    const kind = kinds[kindIndex[operation] + (stream ? 1 : 0)] as AnswerKind;
    const slot = new Slot(this, deployment, request, weight, kind, this.#measured.sent(), this.#inFlight);
    slot.round = round;
    if (!onWanted) return slot;
    slot.onWanted = onWanted;
    this.#idle.push(slot);
    this.#idleInFlight++;
    return slot;
  }

  /** Releases a slot. `heldMs` is the time for which it was held, if an answer came. */
  giveBack(slot: Slot, weight: number, heldMs: number | undefined): void {
    this.#inFlight -= weight;
    if (slot.onWanted) this.#idleGaveBack(slot, weight);
    else if (slot.round === 0) this.queue.gaveBack(slot, weight);
    else this.queue.gaveBack(slot, weight, slot.round, this.#moreTurns(slot, weight));
    if (this.#refused.size > 0) this.#reportRoom(heldMs !== undefined);
    if (heldMs !== undefined) this.#holdMs = (this.#holdMs ?? heldMs) * (1 - holdWeight) + heldMs * holdWeight;
    this.#reportDemand();
  }

  answered(answer: Answer): void {
    // Reserved slots count as taken; otherwise the measured limit could not grow while slots are reserved.
    if (this.#declared?.() === undefined) this.#measured.answered(answer, !this.fits(1) || this.#isReserved("low", 1));
    this.wake();
  }

  /** Called when the engine refused request `sent`, after its slot was released. */
  refused(sent: number): void {
    this.#measured.refused(sent, this.#inFlight);
    this.wake();
  }

  nowMs(): number {
    return this.#clock.monotonicMs();
  }

  enlist(waiting: Waiting): void {
    const isIdle = waiting.request.onWanted !== undefined;
    (isIdle ? this.idleQueue : this.queue).add(waiting);
    if (this.#declared === undefined && !isIdle) this.#beImpatient();
    if (waiting.priority === "high" && !isIdle) this.#headroom.wanted(this.#wantedByHigh);
    this.#reportDemand();
  }

  delist(waiting: Waiting): void {
    (waiting.request.onWanted ? this.idleQueue : this.queue).remove(waiting);
    this.#reportDemand();
  }

  /** Lets waiting requests take free slots. */
  wake(): void {
    if (this.queue.waiting + this.idleQueue.waiting > 0) this.#onFree(this);
  }

  /**
   * Called when waiting requests get no slot. Background requests must end, and the reservation is checked again later.
   */
  waitForHeadroom(): void {
    if (this.queue.waiting === 0) return;
    this.makeWay();
    this.wakeLater(headroomCheckMs);
  }

  /** Checks again after `ms`, for slots that become free without a notification. */
  wakeLater(ms: number): void {
    const atMs = this.nowMs() + ms;
    if (this.#later !== undefined) {
      if (this.#laterAtMs <= atMs) return;
      clearTimeout(this.#later);
    }
    this.#laterAtMs = atMs;
    this.#later = setTimeout(() => {
      this.#later = undefined;
      this.wake();
    }, ms);
    this.#later.unref();
  }

  #reportDemand(): void {
    this.#onDemand?.demand(this.#inFlight, this.queue.waiting + this.idleQueue.waiting);
  }

  get #wantedByHigh(): number {
    return this.queue.inFlightOf("high") + this.queue.waitingOf("high");
  }

  /** Returns by how many times the usual holding time the slot was held longer (negative if shorter). */
  #moreTurns({ sinceMs }: Slot, weight: number): number {
    if (!this.#holdMs) return 0;
    return weight * (Math.min((this.nowMs() - sinceMs) / this.#holdMs, maxTurns) - 1);
  }

  #idleGaveBack(slot: Slot, weight: number): void {
    const at = this.#idle.indexOf(slot);
    if (at >= 0) this.#idle.splice(at, 1);
    else this.#askedFor--;
    this.#idleInFlight--;
    this.idleQueue.gaveBack(slot, weight);
  }

  #kindsOf(model: string): readonly AnswerKind[] {
    const kinds = Array.from({ length: 2 * Object.keys(kindIndex).length }, () => this.#measured.newKind());
    this.#kinds.set(model, kinds);
    return kinds;
  }

  #beImpatient(): void {
    if (this.#patience !== undefined) return;
    const timer = setTimeout(() => {
      this.#patience = undefined;
      if (this.queue.waiting === 0) return;
      // A server that is still starting shows nothing about its capacity.
      if (this.isOpen && !this.#measured.waitedASecond()) return;
      this.wake();
      if (this.queue.waiting > 0) this.#beImpatient();
    }, 1_000);
    timer.unref();
    this.#patience = timer;
  }

  /** Returns the capacity that a request takes. Without a declared capacity, each request counts as 1. */
  #weightOf(width: number): number {
    return this.#declared?.() === undefined ? 1 : Math.min(width, this.limit);
  }
}

/** A request's share of the engine's capacity, from before it is sent until its answer has ended. */
export class Slot implements Answer, Sharer {
  readonly gate: Gate;
  /** The deployment that the slot belongs to. */
  readonly deployment: Deployment;
  /** True if the request tests a deployment after its suspension. The router must learn the result. */
  isTrial = false;
  /** The round of the queue that the slot counts in; 0 if it counts in none. */
  round = 0;
  readonly priority: Priority;
  readonly accountId: string;
  readonly partyId: string;
  /** The callback of a background request whose slot is needed. */
  onWanted: SlotRequest["onWanted"];
  readonly kind: AnswerKind;
  readonly sent: number;
  readonly inFlight: number;
  /** Monotonic milliseconds when the slot was taken. */
  readonly sinceMs: number;
  /** Milliseconds until the answer began; 0 before that. */
  durationMs = 0;
  readonly #weight: number;
  #answered = false;
  #held = true;

  /** `sent` is the request's number at this gate. `inFlight` includes this request. */
  constructor(
    gate: Gate,
    deployment: Deployment,
    { priority, accountId, partyId }: Sharer,
    weight: number,
    kind: AnswerKind,
    sent: number,
    inFlight: number,
  ) {
    this.gate = gate;
    this.deployment = deployment;
    this.kind = kind;
    this.sent = sent;
    this.inFlight = inFlight;
    this.sinceMs = gate.nowMs();
    this.priority = priority;
    this.accountId = accountId;
    this.partyId = partyId;
    this.#weight = weight;
  }

  /** Called when another request wants the slot. */
  wanted(): void {
    this.onWanted?.();
  }

  /** Called when the first byte of the answer has arrived. Returns true for the first call; later calls do nothing. */
  answered(): boolean {
    if (this.#answered || !this.#held) return false;
    this.#answered = true;
    this.durationMs = this.gate.nowMs() - this.sinceMs;
    this.gate.answered(this);
    return true;
  }

  /** Releases the slot because the engine had no capacity for the request. */
  refused(): void {
    if (!this.#held) return;
    this.#giveBack(undefined);
    this.gate.refused(this.sent);
  }

  /** Releases the slot. Does nothing if it was already released. */
  release(): void {
    if (!this.#held) return;
    this.#giveBack(this.#answered ? this.gate.nowMs() - this.sinceMs : undefined);
    this.gate.wake();
  }

  #giveBack(heldMs: number | undefined): void {
    this.#held = false;
    this.gate.giveBack(this, this.#weight, heldMs);
  }
}
