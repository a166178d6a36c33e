// The memory budget of this machine's RAM and GPUs. A model's memory is reserved before it starts, and released
// once it has ended.
import type { Clock } from "../../base/clock.ts";
import { type Amounts, amountOf, difference, isGpu, isMemory, poolsOf, sum } from "./amounts.ts";
import { type Leaving, type MemoryHolding, makePlan, type Wanted } from "./plan.ts";

/** A model process or command that uses memory of the budget. It has one lease at most. */
export interface Tenant {
  /** The name of the model, for operators. */
  readonly name: string;
  /** True if the model is never unloaded to free memory for other models. */
  readonly pinned: boolean;
  /** The monotonic time since which no request is running, in milliseconds. Undefined while the model works. */
  readonly idleSinceMs: number | undefined;
  /** The memory that the model would use while asleep. Undefined if it cannot sleep. */
  readonly asleep: Amounts | undefined;
  /**
   * If `on`, another model waits for this model's memory: stop accepting requests, finish the running ones, then
   * call `changed`. If not `on`, accept requests again.
   */
  yields(on: boolean): void;
  /**
   * Tells the idle model to stop or to sleep. The model accepts no requests from now on. It then calls
   * `release`, or `slept` if it fell asleep.
   */
  leave(to: Leaving): void;
}

/** Memory that is reserved for a model. The model counts as loading until `loaded` is called. */
export interface Lease {
  readonly amounts: Amounts;
  /** Call this once the model is loaded or awake. From then on, the budget may call the model's `leave`. */
  loaded(): void;
  /** Sets the memory that the model really uses, once it is known. */
  resize(amounts: Amounts): void;
  /**
   * Call this when the model stops or falls asleep on its own initiative, so that the budget expects its memory
   * back.
   */
  leaves(to: Leaving): void;
  /**
   * True if the model may stop now. False while another model loads on the same GPU, because freed memory would distort
   * the memory measurement of the loading model.
   */
  readonly mayLeave: boolean;
  /** Call this once the model sleeps. `amounts` is the memory that it still uses. */
  slept(amounts: Amounts): void;
  /**
   * Reserves the memory to wake a sleeping model, and waits and rejects like `claim`. The model then counts as loading
   * again. Also rejects if the model must free its memory first.
   */
  grow(amounts: Amounts, signal: AbortSignal): Promise<void>;
  /** Ends the lease. Call this once the model's process has ended. */
  release(): void;
}

/** The error for a model that needs more memory than the budget can ever free. */
export class NeverFits extends Error {
  readonly pool: string;
  readonly needed: number;
  readonly total: number;
  /** The part of `total` that pinned models use. */
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
  /** The reserved memory, including that of models that are loading or leaving. */
  used: number;
}

export interface BudgetView {
  pools: PoolView[];
  held: { name: string; amounts: Amounts; state: MemoryHolding["state"]; pinned: boolean; idle: boolean }[];
  /** The models that wait for memory, in order. `behind` lists the models that must free memory first. */
  waiting: { name: string; amounts: Amounts; behind: string[] }[];
  /** The name of the model that would be unloaded next. */
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

  /** `totals` is the size of each pool. A missing pool counts as zero. */
  constructor(totals: Amounts, clock: Pick<Clock, "monotonicMs">) {
    this.#totals = totals;
    this.#clock = clock;
  }

  /**
   * Reserves memory, waiting in order of arrival. Idle models are unloaded for it. Rejects with a NeverFits if
   * it can never fit, or with the reason of `signal`.
   */
  claim(tenant: Tenant, amounts: Amounts, signal: AbortSignal): Promise<Lease> {
    return this.#want(tenant, amounts, undefined, signal);
  }

  /** Call this when a model became idle, was pinned or was unpinned, because waiting models may get memory now. */
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
    // Models that accept requests again are notified last, because a waiting request may start there immediately.
    for (const holding of plan.yields) holding.yieldNow(true, nowMs);
    for (const holding of this.#leases) if (!plan.yields.has(holding)) holding.yieldNow(false, nowMs);
    clearTimeout(this.#timer);
    if (plan.nextPlanMs === undefined) return;
    // Waits at least a millisecond, because a timer may fire a fraction of a millisecond early.
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
  /** Called when the model must leave. If the model waits for memory to wake up, its claim is rejected. */
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
