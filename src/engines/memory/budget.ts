// The one budget of this machine's RAM and of each GPU's memory: reserved before a model starts, returned once it is
// gone.
import type { Clock } from "../../base/clock.ts";
import { type Amounts, amountOf, difference, isGpu, isMemory, poolsOf, sum } from "./amounts.ts";
import { type Leaving, type MemoryHolding, makePlan, type Wanted } from "./plan.ts";

/** A model as the budget knows it, whatever runs it. Each has one lease at most. */
export interface Tenant {
  /** The name by which operators know the model. */
  readonly name: string;
  /** A pinned model is never unloaded for other models. */
  readonly pinned: boolean;
  /** The monotonic time since which no request is running, in milliseconds. Undefined while the model works. */
  readonly idleSinceMs: number | undefined;
  /** The memory that the model would hold asleep. Undefined if it cannot sleep. */
  readonly asleep: Amounts | undefined;
  /**
   * Tells the model to make room, or to stop doing so. If true, another model waits for its memory: it accepts no new
   * requests, finishes the running ones and then calls `changed`. If false, it accepts requests again.
   */
  yields(on: boolean): void;
  /**
   * Makes the model leave. Called only while it is idle: from now on it accepts no requests. `gone` ends in `release`;
   * `asleep` ends in `slept`, or in `release` if the model could not sleep.
   */
  leave(to: Leaving): void;
}

/**
 * Memory reserved for a tenant, which counts as loading until `loaded` is called. On a GPU only one tenant loads at a
 * time.
 */
export interface Lease {
  readonly amounts: Amounts;
  /** Call this once the tenant is ready or awake. From then on it may be asked to leave. */
  loaded(): void;
  /** Sets the memory that the tenant really holds, once known. */
  resize(amounts: Amounts): void;
  /**
   * Call this when the tenant leaves by itself: its memory will be returned soon, or a part of it if the tenant falls
   * asleep.
   */
  leaves(to: Leaving): void;
  /**
   * True if the tenant may leave. False while another model is loading on one of its GPUs, because freed memory would
   * distort what that model measures.
   */
  readonly mayLeave: boolean;
  /** Call this once the tenant sleeps and holds this much. */
  slept(amounts: Amounts): void;
  /**
   * Claims what the tenant needs to be awake, like `claim`. The tenant counts as loading from then on. Also rejects if
   * the tenant must leave before that.
   */
  grow(amounts: Amounts, signal: AbortSignal): Promise<void>;
  /** Ends the lease, once the tenant's process is gone. */
  release(): void;
}

/** The error for a claim of more memory than the budget can ever give. */
export class NeverFits extends Error {
  readonly pool: string;
  readonly needed: number;
  readonly total: number;
  /** The part of the total that pinned models hold. */
  readonly pinned: number;

  constructor(pool: string, needed: number, total: number, pinned: number) {
    super(`${needed} bytes of ${pool} are needed, of ${total} with ${pinned} pinned.`);
    this.pool = pool;
    this.needed = needed;
    this.total = total;
    this.pinned = pinned;
  }
}

export interface PoolView {
  pool: string;
  total: number;
  /** The memory that is reserved, including that of models that load or leave. */
  used: number;
}

export interface BudgetView {
  pools: PoolView[];
  held: { name: string; amounts: Amounts; state: MemoryHolding["state"]; pinned: boolean; idle: boolean }[];
  /**
   * The waiting models in the order in which they get memory. `behind` lists the models that must end, leave or yield
   * first.
   */
  waiting: { name: string; amounts: Amounts; behind: string[] }[];
  /** The model that would leave first. */
  next: string | undefined;
}

export class MemoryBudget {
  readonly #totals: Amounts;
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #leases = new Set<Holding>();
  readonly #claims: Claim[] = [];
  #behind = new Map<Claim, Holding[]>();
  #isPlanning = false;
  #planAgain = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** `totals` are the totals of each pool. A missing pool has nothing. */
  constructor(totals: Amounts, clock: Pick<Clock, "monotonicMs">) {
    this.#totals = totals;
    this.#clock = clock;
  }

  /**
   * Waits for memory in order of arrival, and makes idle tenants leave for it. Rejects with `NeverFits` immediately, or
   * later if it can no longer fit, or with the reason of `signal`.
   */
  claim(tenant: Tenant, amounts: Amounts, signal: AbortSignal): Promise<Lease> {
    return this.#want(tenant, amounts, undefined, signal);
  }

  /** Call this when a tenant became idle, was pinned or unpinned, because waiting tenants may get memory now. */
  changed(): void {
    if (this.#claims.length > 0) this.#plan();
  }

  #plan(): void {
    if (this.#isPlanning) {
      this.#planAgain = true;
      return;
    }
    this.#isPlanning = true;
    try {
      do {
        this.#planAgain = false;
        this.#carryOut();
      } while (this.#planAgain);
    } finally {
      this.#isPlanning = false;
    }
  }

  view(): BudgetView {
    const used = this.#used();
    const idle = [...this.#leases].filter((holding) => holding.state === "loaded" && !holding.pinned);
    const next = idle
      .filter(({ idleSinceMs }) => idleSinceMs !== undefined)
      .sort((a, b) => (a.idleSinceMs ?? 0) - (b.idleSinceMs ?? 0))[0];
    return {
      pools: Object.keys(this.#totals)
        .filter(isMemory)
        .map((pool) => ({ pool, total: amountOf(this.#totals, pool), used: amountOf(used, pool) })),
      held: [...this.#leases].map(({ tenant, amounts, state, pinned }) => ({
        ...{ name: tenant.name, amounts, state, pinned, idle: tenant.idleSinceMs !== undefined },
      })),
      waiting: this.#claims.map((claim) => ({
        ...{ name: claim.tenant.name, amounts: claim.need },
        behind: (this.#behind.get(claim) ?? []).map(({ tenant }) => tenant.name),
      })),
      next: next?.tenant.name,
    };
  }

  #used(): Amounts {
    return [...this.#leases].reduce<Amounts>((total, { amounts }) => sum(total, amounts), {});
  }

  #want(tenant: Tenant, need: Amounts, holder: Holding | undefined, signal: AbortSignal): Promise<Holding> {
    signal.throwIfAborted();
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        this.#drop(claim);
        reject(signal.reason);
        this.#plan();
      };
      const claim: Claim = {
        ...{ tenant, need, holder },
        grant: (holding) => {
          signal.removeEventListener("abort", onAbort);
          resolve(holding);
        },
        refuse: (error) => {
          signal.removeEventListener("abort", onAbort);
          reject(error);
        },
      };
      signal.addEventListener("abort", onAbort, { once: true });
      this.#claims.push(claim);
      this.#plan();
    });
  }

  #drop(claim: Claim): void {
    const index = this.#claims.indexOf(claim);
    if (index >= 0) this.#claims.splice(index, 1);
  }

  #carryOut(): void {
    const nowMs = this.#clock.monotonicMs();
    const plan = makePlan<Holding, Claim>(this.#totals, [...this.#leases], this.#claims, nowMs);
    this.#behind = plan.waits;
    for (const { wanted, pool } of plan.refusals) {
      this.#drop(wanted);
      wanted.refuse(this.#neverFits(wanted, pool));
    }
    for (const claim of plan.grants) {
      this.#drop(claim);
      claim.grant(this.#grant(claim));
    }
    for (const { holding, to } of plan.leaves) holding.leave(to);
    // The tenants that reopen come last, because a waiting request may take a slot there at once.
    for (const holding of plan.yields) holding.yieldNow(true, nowMs);
    for (const holding of this.#leases) if (!plan.yields.has(holding)) holding.yieldNow(false, nowMs);
    clearTimeout(this.#timer);
    if (plan.nextPlanMs === undefined) return;
    // The wait is at least a millisecond, because timers may be early by a fraction of one.
    this.#timer = setTimeout(() => this.#plan(), Math.max(1, plan.nextPlanMs - nowMs));
    this.#timer.unref();
  }

  #grant({ tenant, need, holder }: Claim): Holding {
    const holding = holder ?? new Holding(tenant, {}, this.#ports);
    holding.begin(need, this.#clock.monotonicMs());
    this.#leases.add(holding);
    return holding;
  }

  #neverFits({ tenant, need }: Claim, pool: string): NeverFits {
    const others = [...this.#leases].filter((holding) => holding.pinned && holding.tenant !== tenant);
    const pinned = others.reduce((total, { amounts }) => total + amountOf(amounts, pool), 0);
    return new NeverFits(pool, amountOf(need, pool), amountOf(this.#totals, pool), pinned);
  }

  readonly #ports: HoldingPorts = {
    nowMs: () => this.#clock.monotonicMs(),
    changed: () => this.#plan(),
    want: (holding, need, signal) => this.#want(holding.tenant, need, holding, signal),
    isLoadingBeside: (holding) =>
      [...this.#leases].some(
        (other) =>
          other !== holding &&
          other.state === "loading" &&
          poolsOf(other.amounts).some((pool) => isGpu(pool) && amountOf(holding.amounts, pool) > 0),
      ),
    goes: (holding) => {
      for (const claim of this.#claims.filter(({ holder }) => holder === holding)) {
        this.#drop(claim);
        claim.refuse(new Error("It has to leave, and wakes no more."));
      }
    },
    ended: (holding) => {
      this.#ports.goes(holding);
      this.#leases.delete(holding);
      this.#plan();
    },
  };
}

interface Claim extends Wanted<Holding> {
  readonly tenant: Tenant;
  grant(holding: Holding): void;
  refuse(error: Error): void;
}

interface HoldingPorts {
  nowMs(): number;
  changed(): void;
  want(holding: Holding, need: Amounts, signal: AbortSignal): Promise<Holding>;
  isLoadingBeside(holding: Holding): boolean;
  /** Called when the model leaves: its request for the memory to be awake ends. */
  goes(holding: Holding): void;
  ended(holding: Holding): void;
}

class Holding implements MemoryHolding, Lease {
  readonly tenant: Tenant;
  state: MemoryHolding["state"] = "loading";
  amounts: Amounts;
  leavesBehind: Amounts = {};
  servesSinceMs = 0;
  loadMs = 0;
  readonly #ports: HoldingPorts;
  #beganMs = 0;
  #yields = false;
  #sleeps = false;

  constructor(tenant: Tenant, amounts: Amounts, ports: HoldingPorts) {
    this.tenant = tenant;
    this.amounts = amounts;
    this.#ports = ports;
  }

  get pinned(): boolean {
    return this.tenant.pinned;
  }

  get idleSinceMs(): number | undefined {
    return this.tenant.idleSinceMs;
  }

  get asleep(): Amounts | undefined {
    return this.#sleeps ? undefined : this.tenant.asleep;
  }

  get mayLeave(): boolean {
    return !this.#ports.isLoadingBeside(this);
  }

  begin(need: Amounts, nowMs: number): void {
    this.state = "loading";
    this.amounts = sum(this.amounts, need);
    this.#beganMs = nowMs;
    this.#sleeps = false;
  }

  loaded(): void {
    this.state = "loaded";
    this.servesSinceMs = this.#ports.nowMs();
    this.loadMs = this.servesSinceMs - this.#beganMs;
    this.#ports.changed();
  }

  resize(amounts: Amounts): void {
    this.amounts = amounts;
    this.#ports.changed();
  }

  leaves(to: Leaving): void {
    this.#goes(to);
    this.#ports.changed();
  }

  slept(amounts: Amounts): void {
    this.#sleeps = true;
    this.state = "loaded";
    this.resize(amounts);
  }

  async grow(amounts: Amounts, signal: AbortSignal): Promise<void> {
    const more = difference(amounts, this.amounts);
    await this.#ports.want(this, Object.fromEntries(Object.entries(more).filter(([, some]) => some > 0)), signal);
  }

  release(): void {
    this.#ports.ended(this);
  }

  yieldNow(on: boolean, nowMs: number): void {
    if (on === this.#yields || this.state !== "loaded") return;
    this.#yields = on;
    if (!on) this.servesSinceMs = nowMs;
    this.tenant.yields(on);
  }

  leave(to: Leaving): void {
    this.#goes(to);
    this.tenant.leave(to);
  }

  #goes(to: Leaving): void {
    this.#yields = false;
    this.state = "leaving";
    this.leavesBehind = to === "asleep" ? (this.asleep ?? {}) : {};
    if (to === "gone") this.#ports.goes(this);
  }
}
