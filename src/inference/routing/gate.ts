// Counts what is in flight at one engine, or at one model of an engine that says how much each takes.

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

/** A request as far as its place is concerned. */
export interface SlotRequest extends Sharer {
  operation: Operation;
  stream: boolean;
  /** Generations side by side. */
  width: number;
  /** The model's public id, for messages. */
  model: string;
  /**
   * Only for a request of the idle lane, which takes places that nobody else wants: called where somebody else wants the one
   * that it has, which it is to give back at once.
   */
  readonly onWanted?: (() => void) | undefined;
}

/** A request that waits, perhaps at several gates. */
export interface Waiting extends Waiter, IndexedItem {
  readonly request: SlotRequest;
  readonly options: Map<Gate, Deployment>;
  grant(slot: Slot): void;
  /** All of its gates gave its place in the queue to others. */
  refuse(): void;
  /** The engines changed. */
  regroup(): void;
}

/** An answer of the engine ended, or the engine has nothing more to do and answered nobody. */
export type RoomFound = "answered" | "idle";

/** A request that the engine refused for want of room. */
export interface RoomWaiter {
  /** Called once. */
  room(found: RoomFound): void;
}

export interface GateOptions {
  clock: Clock;
  /** What the engine says it takes, asked each time; undefined: measured. */
  declared: (() => number | undefined) | undefined;
  /** The operator's bound where it is measured. */
  bound: number | undefined;
  /** Told of what is in flight and waits, where the engine's server is started for that. */
  onDemand: OnDemand | undefined;
  /** Called when a place may be free while requests wait. */
  onFree(gate: Gate): void;
  /** Most requests of the idle lane where nobody says how many the engine takes; asked each time. Left out: as many as are measured. */
  maxIdle?: (() => number) | undefined;
}

/** A place that is held much longer than others counts as so many of them at most: what a priority owes is paid within sight. */
const maxTurns = 8;

/** How soon it is noticed that fewer places are held ready, while requests wait for that. */
const headroomCheckMs = 1_000;

/** Weight of the last time in the mean of how long places are held. */
const holdWeight = 1 / 16;

/**
 * How long the idle lane takes nothing once it was asked for a place: where live requests come and go, it would begin again and
 * again what it has to give up.
 */
const calmMs = 250;

/** Index of whole answers of an operation; that of streamed ones is the next. */
const kindIndex = Object.fromEntries(operations.map((name, index) => [name, 2 * index])) as Readonly<
  Record<Operation, number>
>;

export class Gate {
  readonly queue = new FairQueue<Waiting>();
  /** Those of the idle lane, which have their turn when nobody else waits. */
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
  /** Places of the idle lane that were not asked for yet, oldest first. */
  readonly #idle: Slot[] = [];
  /** Places that the idle lane has, and those of them that it was asked for. */
  #idleInFlight = 0;
  #askedFor = 0;
  /** Monotonic milliseconds until which the idle lane takes nothing. */
  #calmUntilMs = 0;
  readonly #maxIdle: () => number;
  #holdMs: number | undefined;
  readonly #refused = new Set<RoomWaiter>();
  #patience: ReturnType<typeof setTimeout> | undefined;
  #later: ReturnType<typeof setTimeout> | undefined;
  /** When that is, in monotonic milliseconds. */
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

  /** Requests of the idle lane that have places. */
  get idleInFlight(): number {
    return this.#idleInFlight;
  }

  /** Mean time between two places that become free for this priority while all are taken; undefined before the first answer. */
  turnMsOf(priority: Priority): number | undefined {
    if (this.#holdMs === undefined) return undefined;
    return this.#holdMs / Math.max(1, this.limit - (priority === "high" ? 0 : this.#heldReady));
  }

  /** False where a server has to be started first. */
  get isOpen(): boolean {
    return this.#onDemand?.open !== false;
  }

  fits(width: number): boolean {
    return this.isOpen && this.#inFlight + this.#weightOf(width) <= this.limit;
  }

  /** Whether a request may have a place at once: it is free, and nobody waits whose turn it would be. */
  mayTake({ priority, width, onWanted }: Pick<SlotRequest, "priority" | "width" | "onWanted">): boolean {
    if (onWanted) return this.fitsIdle(width);
    if (!this.fits(width) || this.#isHeldBack(priority, width)) return false;
    return this.queue.waiting === 0 || (priority === "high" && this.next() === undefined);
  }

  /** Whether a request of the idle lane may have a place. */
  fitsIdle(width: number): boolean {
    if (this.queue.waiting > 0 || this.#isCalm || this.#idleInFlight >= this.#maxIdle()) return false;
    return this.fits(width) && !this.#isHeldBack("low", width);
  }

  /** The one that waits whose turn it is; undefined as well where the places that are free are held ready for others. */
  next(): Waiting | undefined {
    return this.queue.next(this.#heldReady === 0 ? undefined : this.#isWaitingHeldBack);
  }

  /** Places that are free, and that lower priorities may not take. */
  get #heldReady(): number {
    return Math.max(0, this.#headroom.placesOf(this.limit) - this.queue.inFlightOf("high"));
  }

  /**
   * Whether a place would be one that is held ready for a higher priority. What all others hold is within what that leaves; but
   * a wide request may have more, where it is the only one.
   */
  #isHeldBack(priority: Priority, width: number): boolean {
    if (priority === "high") return false;
    const ready = this.#headroom.placesOf(this.limit);
    if (ready === 0) return false;
    const others = this.#inFlight - this.queue.inFlightOf("high");
    return others > 0 && others + this.#weightOf(width) > this.limit - ready;
  }

  readonly #isWaitingHeldBack = ({ priority, request }: Waiting): boolean => this.#isHeldBack(priority, request.width);

  get #isCalm(): boolean {
    return this.#calmUntilMs > 0 && this.nowMs() < this.#calmUntilMs;
  }

  /**
   * How many requests of the idle lane would get a place now. Where a server has to be started first, one may wait for it, as
   * long as nobody else does.
   */
  get idleSlots(): number {
    if (this.queue.waiting > 0 || this.#isCalm) return 0;
    if (!this.isOpen) return this.#inFlight + this.idleQueue.waiting === 0 ? 1 : 0;
    const free = Math.min(this.limit - this.#inFlight - this.#heldReady, this.#maxIdle() - this.#idleInFlight);
    return Math.max(0, Math.floor(free) - this.idleQueue.waiting);
  }

  /** Asks the idle lane for a place for each request that waits, where it has so many. Whether it was asked for one. */
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

  /** The request waits until there is room for it, as the engine refused it for want of that; see `RoomWaiter`. */
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

  /** Takes places, whether they are free or not. */
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

  /** `heldMs`: how long, where an answer came. */
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
    // What is held ready is as good as taken: else nothing would be learned of a server while it is.
    if (this.#declared?.() === undefined) this.#measured.answered(answer, !this.fits(1) || this.#isHeldBack("low", 1));
    this.wake();
  }

  /** After its places were given back. */
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

  /** Lets those go on who wait for what became free. */
  wake(): void {
    if (this.queue.waiting + this.idleQueue.waiting > 0) this.#onFree(this);
  }

  /** Those that wait are held back: the idle lane makes way for them, and fewer places may be held ready soon. */
  waitForHeadroom(): void {
    if (this.queue.waiting === 0) return;
    this.makeWay();
    this.wakeLater(headroomCheckMs);
  }

  /** For what frees a place without anybody telling. */
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

  /** How much longer it was held than usual, in turns. */
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
      // Nothing is learned of a server that is not there yet.
      if (this.isOpen && !this.#measured.waitedASecond()) return;
      this.wake();
      if (this.queue.waiting > 0) this.#beImpatient();
    }, 1_000);
    timer.unref();
    this.#patience = timer;
  }

  /** Engines that do not say what they take count requests, whatever is in them. */
  #weightOf(width: number): number {
    return this.#declared?.() === undefined ? 1 : Math.min(width, this.limit);
  }
}

/** A request's part in an engine's capacity, from before it is sent until its answer ended. */
export class Slot implements Answer, Sharer {
  readonly gate: Gate;
  /** The candidate that it is at. */
  readonly deployment: Deployment;
  /** Whether its request is the one that tries the deployment after a rest; a verdict is owed then. */
  isTrial = false;
  /** The round of the queue in which it counts among the turns of its priority; 0: it counts in none. */
  round = 0;
  readonly priority: Priority;
  readonly accountId: string;
  readonly partyId: string;
  /** The same as its request has. */
  onWanted: SlotRequest["onWanted"];
  readonly kind: AnswerKind;
  readonly sent: number;
  readonly inFlight: number;
  /** Monotonic milliseconds. */
  readonly sinceMs: number;
  /** Until the answer began; 0 before. */
  durationMs = 0;
  readonly #weight: number;
  #answered = false;
  #held = true;

  /** `sent`: its number among the gate's requests; `inFlight`: with the engine now, itself included. */
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

  /** Somebody else wants it. */
  wanted(): void {
    this.onWanted?.();
  }

  /** The first byte of the answer is here. Only the first call counts, and returns true. */
  answered(): boolean {
    if (this.#answered || !this.#held) return false;
    this.#answered = true;
    this.durationMs = this.gate.nowMs() - this.sinceMs;
    this.gate.answered(this);
    return true;
  }

  /** Gives the place back: the engine had no capacity for the request after all. */
  refused(): void {
    if (!this.#held) return;
    this.#giveBack(undefined);
    this.gate.refused(this.sent);
  }

  /** Gives the place back. Only the first call counts, so it is safe after `refused`. */
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
