// Counts requests in flight at one engine, or at one model of an engine that states the capacity of each.

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

/** The facts of a request that its slot depends on. */
export interface SlotRequest extends Sharer {
  operation: Operation;
  stream: boolean;
  /** Number of parallel generations. */
  width: number;
  /** The model's public id, for messages. */
  model: string;
  /**
   * For requests of the idle lane, which use slots that nobody else wants: called when another request wants the
   * slot, which must be released immediately.
   */
  readonly onWanted?: (() => void) | undefined;
}

/** A waiting request, perhaps at several gates. */
export interface Waiting extends Waiter, IndexedItem {
  readonly request: SlotRequest;
  readonly options: Map<Gate, Deployment>;
  grant(slot: Slot): void;
  /** Called when all of its gates gave its place in the queue to others. */
  refuse(): void;
  /** Called when the engines changed. */
  regroup(): void;
}

/** An answer of the engine ended, or the engine is idle and answered nobody. */
export type RoomFound = "answered" | "idle";

/** A request that the engine refused for lack of capacity. */
export interface RoomWaiter {
  /** Called once. */
  room(found: RoomFound): void;
}

export interface GateOptions {
  clock: Clock;
  /** Returns the capacity that the engine states, each time; undefined if it is measured. */
  declared: (() => number | undefined) | undefined;
  /** The operator's limit for a measured capacity. */
  bound: number | undefined;
  /** Notified of running and waiting requests, if the engine's server is started on demand. */
  onDemand: OnDemand | undefined;
  /** Called when a slot may be free while requests wait. */
  onFree(gate: Gate): void;
  /**
   * Returns the maximum requests of the idle lane if neither the engine nor the operator states a capacity. Default: as
   * many as are measured.
   */
  maxIdle?: (() => number) | undefined;
}

/** Maximum turns that one held slot counts as, so that the debt of a priority is repaid soon. */
const maxTurns = 8;

/** Milliseconds between checks whether fewer slots are reserved, while requests wait for that. */
const headroomCheckMs = 1_000;

/** Weight of the newest value in the mean holding time. */
const holdWeight = 1 / 16;

/**
 * Milliseconds without new requests of the idle lane after it was asked to release a slot: otherwise it would start
 * work repeatedly that it has to abandon.
 */
const calmMs = 250;

/** Index of the whole answers of an operation; streamed answers have the next index. */
const kindIndex = Object.fromEntries(operations.map((name, index) => [name, 2 * index])) as Readonly<
  Record<Operation, number>
>;

export class Gate {
  readonly queue = new FairQueue<Waiting>();
  /** Queue of the idle lane, which is served when nobody else waits. */
  readonly idleQueue = new FairQueue<Waiting>();
  readonly #headroom: Headroom;
  readonly #measured: ConcurrencyLimit;
  readonly #clock: Clock;
  readonly #declared: GateOptions["declared"];
  readonly #onDemand: OnDemand | undefined;
  readonly #onFree: GateOptions["onFree"];
  /** Kinds of answers by the engine's own id of the model, in the order of `kindIndex`. */
  readonly #kinds = new Map<string, readonly AnswerKind[]>();
  #inFlight = 0;
  /** Slots of the idle lane that were not asked for yet, oldest first. */
  readonly #idle: Slot[] = [];
  /** Number of slots of the idle lane, and of those that it was asked to release. */
  #idleInFlight = 0;
  #askedFor = 0;
  /** Monotonic time until which the idle lane takes no slot. */
  #calmUntilMs = 0;
  readonly #maxIdle: () => number;
  #holdMs: number | undefined;
  readonly #refused = new Set<RoomWaiter>();
  #patience: ReturnType<typeof setTimeout> | undefined;
  #later: ReturnType<typeof setTimeout> | undefined;
  /** The monotonic time of the timer. */
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

  /** Requests of the idle lane that hold slots. */
  get idleInFlight(): number {
    return this.#idleInFlight;
  }

  /**
   * Returns the mean time between two slots that become free for this priority while all are taken; undefined before
   * the first answer.
   */
  turnMsOf(priority: Priority): number | undefined {
    if (this.#holdMs === undefined) return undefined;
    return this.#holdMs / Math.max(1, this.limit - (priority === "high" ? 0 : this.#reservedSlots));
  }

  /** False if a server has to be started first. */
  get isOpen(): boolean {
    return this.#onDemand?.open !== false;
  }

  fits(width: number): boolean {
    return this.isOpen && this.#inFlight + this.#weightOf(width) <= this.limit;
  }

  /** Reports whether a request may have a slot immediately: one is free, and no waiting request comes first. */
  mayTake({ priority, width, onWanted }: Pick<SlotRequest, "priority" | "width" | "onWanted">): boolean {
    if (onWanted) return this.fitsIdle(width);
    if (!this.fits(width) || this.#isReserved(priority, width)) return false;
    return this.queue.waiting === 0 || (priority === "high" && this.next() === undefined);
  }

  /** Reports whether a request of the idle lane may have a slot. */
  fitsIdle(width: number): boolean {
    if (this.queue.waiting > 0 || this.#isCalm || this.#idleInFlight >= this.#maxIdle()) return false;
    return this.fits(width) && !this.#isReserved("low", width);
  }

  /** Returns the next waiting request; undefined also if the free slots are reserved for other priorities. */
  next(): Waiting | undefined {
    return this.queue.next(this.#reservedSlots === 0 ? undefined : this.#isReservedFor);
  }

  /** Number of free slots that lower priorities may not take. */
  get #reservedSlots(): number {
    return Math.max(0, this.#headroom.slotsOf(this.limit) - this.queue.inFlightOf("high"));
  }

  /**
   * Reports whether a slot would be one reserved for a higher priority. Lower priorities together stay within the
   * rest; a wide request may exceed it if it is the only one.
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
   * Returns how many requests of the idle lane would get a slot now. If a server has to be started first, one may
   * wait for it as long as nobody else does.
   */
  get idleSlots(): number {
    if (this.queue.waiting > 0 || this.#isCalm) return 0;
    if (!this.isOpen) return this.#inFlight + this.idleQueue.waiting === 0 ? 1 : 0;
    const free = Math.min(this.limit - this.#inFlight - this.#reservedSlots, this.#maxIdle() - this.#idleInFlight);
    return Math.max(0, Math.floor(free) - this.idleQueue.waiting);
  }

  /**
   * Asks the idle lane to release a slot for each waiting request, or all of its slots if it holds fewer. Returns
   * whether it was asked now.
   */
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

  /** Waits after the engine refused the request for lack of capacity; see `RoomWaiter`. */
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

  /** Takes slots, whether they are free or not. */
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

  /** Releases a slot. `heldMs` is the holding time if an answer came. */
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
    // Reserved slots count as taken: otherwise nothing would be learned about the server meanwhile.
    if (this.#declared?.() === undefined) this.#measured.answered(answer, !this.fits(1) || this.#isReserved("low", 1));
    this.wake();
  }

  /** Called after the slots were released. */
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

  /** Lets waiting requests use slots that became free. */
  wake(): void {
    if (this.queue.waiting + this.idleQueue.waiting > 0) this.#onFree(this);
  }

  /** Waiting requests are held back: the idle lane releases slots for them, and fewer slots may be reserved soon. */
  waitForHeadroom(): void {
    if (this.queue.waiting === 0) return;
    this.makeWay();
    this.wakeLater(headroomCheckMs);
  }

  /** Checks again later, for slots that become free without a notification. */
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

  /** Returns how much longer than usual the slot was held, in turns. */
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
      // Nothing is learned about a server that is not open yet.
      if (this.isOpen && !this.#measured.waitedASecond()) return;
      this.wake();
      if (this.queue.waiting > 0) this.#beImpatient();
    }, 1_000);
    timer.unref();
    this.#patience = timer;
  }

  /** Engines without a stated capacity count requests, whatever their width. */
  #weightOf(width: number): number {
    return this.#declared?.() === undefined ? 1 : Math.min(width, this.limit);
  }
}

/** A request's part in an engine's capacity, from before it is sent until its answer ended. */
export class Slot implements Answer, Sharer {
  readonly gate: Gate;
  /** The deployment that the slot belongs to. */
  readonly deployment: Deployment;
  /** True if the request tests the deployment after a suspension; it then owes a verdict. */
  isTrial = false;
  /** The round of the queue in which the slot counts as a turn of its priority; 0 if it does not count. */
  round = 0;
  readonly priority: Priority;
  readonly accountId: string;
  readonly partyId: string;
  /** The callback of its request. */
  onWanted: SlotRequest["onWanted"];
  readonly kind: AnswerKind;
  readonly sent: number;
  readonly inFlight: number;
  /** Monotonic milliseconds. */
  readonly sinceMs: number;
  /** Milliseconds until the answer began; 0 before. */
  durationMs = 0;
  readonly #weight: number;
  #answered = false;
  #held = true;

  /** `sent` is its number among the gate's requests. `inFlight` is the number now at the engine, including this one. */
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

  /** Called when the first byte of the answer arrived. Returns true for the first call; others do nothing. */
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

  /** Releases the slot. Only the first call counts, so it is safe after `refused`. */
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
