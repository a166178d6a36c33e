// Counts the requests in flight at one engine, and limits them. If the engine declares a capacity for each model, each
// model has a gate of its own.

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

/** The facts about a request that decide when it gets a slot. */
export interface SlotRequest extends Sharer {
  operation: Operation;
  stream: boolean;
  /** Number of parallel generations. */
  width: number;
  /** Public id of the model, for error messages. */
  model: string;
  /**
   * Set for background requests (the idle lane). Called if another request needs the slot, which must then be released
   * immediately.
   */
  readonly onWanted?: (() => void) | undefined;
}

/** A waiting request. It may wait at the gates of several engines. */
export interface Waiting extends Waiter, IndexedItem {
  readonly request: SlotRequest;
  readonly options: Map<Gate, Deployment>;
  grant(slot: Slot): void;
  /** Called when the request has been removed from the queues of all its gates. The request is then refused. */
  refuse(): void;
  /** Called when engines have changed. The request then chooses its gates again. */
  regroup(): void;
}

/** The reason why a refused request may try again: the engine has ended another answer, or it is idle. */
export type RoomFound = "answered" | "idle";

/** A request that the engine refused for lack of capacity. */
export interface RoomWaiter {
  /** Called once, when the request may try again. */
  room(found: RoomFound): void;
}

export interface GateOptions {
  clock: Clock;
  /** Returns the capacity that the engine declares now. Undefined if the capacity must be measured. */
  declared: (() => number | undefined) | undefined;
  /** The operator's maximum for a capacity that is measured. */
  bound: number | undefined;
  /** Notified of the number of running and waiting requests. Set if the server is started on demand. */
  onDemand: OnDemand | undefined;
  /** Called when requests wait and a slot may be free. */
  onFree(gate: Gate): void;
  /** Returns the maximum background requests at an engine whose capacity is unknown. Default: the measured capacity. */
  maxIdle?: (() => number) | undefined;
}

/**
 * Maximum number of slots that a single slot counts as, if it is held for long. So the debt of a priority is soon
 * repaid.
 */
const maxTurns = 8;

/** Milliseconds until waiting requests check again whether fewer slots are reserved. */
const headroomCheckMs = 1_000;

/** Weight of the newest value in the mean of the times for which slots are held. */
const holdWeight = 1 / 16;

/**
 * Milliseconds for which no background request begins after one had to release its slot. Otherwise work would be begun
 * and abandoned again and again.
 */
const calmMs = 250;

/** Index in `#kinds` for whole answers of each operation. The next index is for its streams. */
const kindIndex = Object.fromEntries(operations.map((name, index) => [name, 2 * index])) as Readonly<
  Record<Operation, number>
>;

export class Gate {
  readonly queue = new FairQueue<Waiting>();
  /** The queue of background requests. It is served only if no other request waits. */
  readonly idleQueue = new FairQueue<Waiting>();
  readonly #headroom: Headroom;
  readonly #measured: ConcurrencyLimit;
  readonly #clock: Clock;
  readonly #declared: GateOptions["declared"];
  readonly #onDemand: OnDemand | undefined;
  readonly #onFree: GateOptions["onFree"];
  /** Kinds of answers by the model's id at the engine. The index in each list is that of `kindIndex`. */
  readonly #kinds = new Map<string, readonly AnswerKind[]>();
  #inFlight = 0;
  /** Slots of background requests that were not yet asked to release them, the oldest first. */
  readonly #idle: Slot[] = [];
  /** Number of slots that background requests hold. `#askedFor` counts those that were asked for. */
  #idleInFlight = 0;
  #askedFor = 0;
  /** Time in monotonic milliseconds until which no background request gets a slot. */
  #calmUntilMs = 0;
  readonly #maxIdle: () => number;
  #holdMs: number | undefined;
  readonly #refused = new Set<RoomWaiter>();
  #patience: ReturnType<typeof setTimeout> | undefined;
  #later: ReturnType<typeof setTimeout> | undefined;
  /** Time in monotonic milliseconds at which the timer `#later` fires. */
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
   * Returns the mean milliseconds until the next slot for this priority becomes free if all slots are taken. Returns
   * undefined before the first answer.
   */
  turnMsOf(priority: Priority): number | undefined {
    if (this.#holdMs === undefined) return undefined;
    return this.#holdMs / Math.max(1, this.limit - (priority === "high" ? 0 : this.#reservedSlots));
  }

  /** False if the server must be started before it can serve requests. */
  get isOpen(): boolean {
    return this.#onDemand?.open !== false;
  }

  fits(width: number): boolean {
    return this.isOpen && this.#inFlight + this.#weightOf(width) <= this.limit;
  }

  /** Reports whether a request may take a slot now, because a slot is free and no waiting request comes first. */
  mayTake({ priority, width, onWanted }: Pick<SlotRequest, "priority" | "width" | "onWanted">): boolean {
    if (onWanted) return this.fitsIdle(width);
    if (!this.fits(width) || this.#isReserved(priority, width)) return false;
    return this.queue.waiting === 0 || (priority === "high" && this.next() === undefined);
  }

  /** Reports whether a background request may take a slot now. */
  fitsIdle(width: number): boolean {
    if (this.queue.waiting > 0 || this.#isCalm || this.#idleInFlight >= this.#maxIdle()) return false;
    return this.fits(width) && !this.#isReserved("low", width);
  }

  /**
   * Returns the next waiting request. Returns undefined if there is none, or if the free slots are reserved for high
   * priority.
   */
  next(): Waiting | undefined {
    return this.queue.next(this.#reservedSlots === 0 ? undefined : this.#isReservedFor);
  }

  /** Number of slots that must stay free for requests of high priority. */
  get #reservedSlots(): number {
    return Math.max(0, this.#headroom.slotsOf(this.limit) - this.queue.inFlightOf("high"));
  }

  /**
   * Reports whether only reserved slots are left for this request. All lower priorities together must leave the
   * reserved slots free. A single request for several slots may use some of them.
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
   * Returns how many more background requests would get a slot now. If the server must be started first, a single one
   * may wait for it, provided that no other request waits.
   */
  get idleSlots(): number {
    if (this.queue.waiting > 0 || this.#isCalm) return 0;
    if (!this.isOpen) return this.#inFlight + this.idleQueue.waiting === 0 ? 1 : 0;
    const free = Math.min(this.limit - this.#inFlight - this.#reservedSlots, this.#maxIdle() - this.#idleInFlight);
    return Math.max(0, Math.floor(free) - this.idleQueue.waiting);
  }

  /** Asks background requests to release their slots, one for each waiting request. Returns true if any was asked. */
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

  /** Adds a request that the engine refused for lack of capacity. It is notified when it may try again. */
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

  /** Assigns a slot to the request, even if none is free. */
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

  /** Releases a slot. `heldMs` is the time for which the slot was held, or undefined if no answer came. */
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
    // Reserved slots count as taken here. Otherwise the measured limit could not grow while slots are reserved.
    if (this.#declared?.() === undefined) this.#measured.answered(answer, !this.fits(1) || this.#isReserved("low", 1));
    this.wake();
  }

  /** Called when the engine refused the request with the number `sent`, after its slot was released. */
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

  /** Lets waiting requests take the slots that are free. */
  wake(): void {
    if (this.queue.waiting + this.idleQueue.waiting > 0) this.#onFree(this);
  }

  /**
   * Called if waiting requests get no slot. Asks background requests to end, and checks the reservation again later.
   */
  waitForHeadroom(): void {
    if (this.queue.waiting === 0) return;
    this.makeWay();
    this.wakeLater(headroomCheckMs);
  }

  /** Calls `wake` after `ms`, because some slots become free without a notification. */
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

  /**
   * Returns how much longer than usual the slot was held, as a multiple of the usual time. Negative if it was held for
   * less time.
   */
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
      // While a server is still starting, waiting requests say nothing about its capacity.
      if (this.isOpen && !this.#measured.waitedASecond()) return;
      this.wake();
      if (this.queue.waiting > 0) this.#beImpatient();
    }, 1_000);
    timer.unref();
    this.#patience = timer;
  }

  /** Returns the capacity that a request takes. If no capacity is declared, each request counts as 1. */
  #weightOf(width: number): number {
    return this.#declared?.() === undefined ? 1 : Math.min(width, this.limit);
  }
}

/** The slot of one request at an engine, held from before the request is sent until its answer has ended. */
export class Slot implements Answer, Sharer {
  readonly gate: Gate;
  /** The deployment that the slot belongs to. */
  readonly deployment: Deployment;
  /** True if the request tests a deployment after a suspension. The router must then be told the result. */
  isTrial = false;
  /** The round of the queue in which the slot counts. 0 if it counts in none. */
  round = 0;
  readonly priority: Priority;
  readonly accountId: string;
  readonly partyId: string;
  /** The callback of a background request, called if another request needs the slot. */
  onWanted: SlotRequest["onWanted"];
  readonly kind: AnswerKind;
  readonly sent: number;
  readonly inFlight: number;
  /** Time in monotonic milliseconds at which the slot was taken. */
  readonly sinceMs: number;
  /** Milliseconds until the answer began. 0 before that. */
  durationMs = 0;
  readonly #weight: number;
  #answered = false;
  #held = true;

  /** `sent` is the number of the request at this gate. `inFlight` counts the requests in flight, including this one. */
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

  /** Called if another request needs the slot. */
  wanted(): void {
    this.onWanted?.();
  }

  /** Called when the first byte of the answer has arrived. Returns true for the first call. Later calls do nothing. */
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
