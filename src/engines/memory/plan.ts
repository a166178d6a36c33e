// Decides which models get memory now, which must leave and which wait. A pure function without side effects.
import { type Amounts, amountOf, difference, isGpu, poolsOf, sum } from "./amounts.ts";

/** Memory that is reserved for one model, until its process has ended. */
export interface MemoryHolding {
  readonly amounts: Amounts;
  /** The memory that the model would use while asleep. Undefined if it cannot sleep or already sleeps. */
  readonly asleep: Amounts | undefined;
  readonly state: "loading" | "loaded" | "leaving";
  /** For a model that falls asleep: the memory that it will still use. */
  readonly leavesBehind: Amounts;
  readonly pinned: boolean;
  /** The monotonic milliseconds since which no request is running. Undefined while the model works. */
  readonly idleSinceMs: number | undefined;
  /**
   * The monotonic milliseconds since which the model accepts requests. Starts again after each time that it had
   * to yield.
   */
  readonly servesSinceMs: number;
  /** The milliseconds that it took to load the model. */
  readonly loadMs: number;
}

export interface Wanted<H extends MemoryHolding> {
  /** The memory that is needed in addition to the memory of `holder`. */
  readonly need: Amounts;
  /** The sleeping model to wake. Undefined for a model that must be started. */
  readonly holder: H | undefined;
}

export interface Plan<H extends MemoryHolding, W extends Wanted<H>> {
  grants: W[];
  /** Claims that can never be granted, with the pool that is too small. */
  refusals: { wanted: W; pool: string }[];
  /** Idle models that must leave now, to free memory. */
  leaves: { holding: H; to: Leaving }[];
  /** Working models that must stop accepting requests, so that they can leave for another model. */
  yields: Set<H>;
  /** For each waiting claim, the models that must free memory first. */
  waits: Map<W, H[]>;
  /** The monotonic milliseconds at which to plan again. Undefined if nothing changes without an event. */
  nextPlanMs: number | undefined;
}

/** Describes how a model frees memory: `asleep` keeps its process with less memory, `gone` ends the process. */
export type Leaving = "asleep" | "gone";

interface Step<H> {
  holding: H;
  to: Leaving;
  frees: Amounts;
}

/**
 * Decides about the claims in order of arrival; a later claim cannot take memory that an earlier one needs. Idle models
 * leave first, beginning with the model that has been idle longest. If that frees too little, working models yield, if
 * they have served at least as long as they took to load. No model leaves for a claim that could not be granted even
 * then.
 */
export function makePlan<H extends MemoryHolding, W extends Wanted<H>>(
  totals: Amounts,
  helds: readonly H[],
  wants: readonly W[],
  nowMs: number,
): Plan<H, W> {
  const planning = new Planning<H, W>(totals, helds, nowMs);
  planning.shrink();
  for (const wanted of wants) planning.decide(wanted);
  return planning.plan;
}

class Planning<H extends MemoryHolding, W extends Wanted<H>> {
  readonly plan: Plan<H, W> = {
    ...{ grants: [], refusals: [], leaves: [], yields: new Set(), waits: new Map(), nextPlanMs: undefined },
  };
  readonly #totals: Amounts;
  readonly #helds: readonly H[];
  readonly #nowMs: number;
  readonly #loadingOn: Set<string>;
  /** Pools that an earlier claim waits for. */
  readonly #sought = new Set<string>();
  #free: Amounts;
  /** The memory that leaving models will free. */
  #coming: Amounts = {};

  constructor(totals: Amounts, helds: readonly H[], nowMs: number) {
    this.#totals = totals;
    this.#helds = helds;
    this.#nowMs = nowMs;
    this.#free = helds.reduce((remaining, { amounts }) => difference(remaining, amounts), totals);
    for (const { state, amounts, leavesBehind } of helds) {
      if (state === "leaving") this.#coming = sum(this.#coming, difference(amounts, leavesBehind));
    }
    const loading = helds.filter(({ state }) => state === "loading");
    this.#loadingOn = new Set(loading.flatMap(({ amounts }) => poolsOf(amounts).filter(isGpu)));
  }

  /** Makes idle models leave if more memory is used than exists, for example because a process grew. */
  shrink(): void {
    const over = Object.keys(this.#free).filter((pool) => amountOf(this.#free, pool) < 0);
    if (over.length === 0) return;
    const steps = this.#enough({}, over, this.#idleSteps(over, undefined));
    if (steps) this.#take(steps);
  }

  decide(wanted: W): void {
    const impossible = this.#impossible(wanted);
    if (impossible !== undefined) {
      this.plan.refusals.push({ wanted, pool: impossible });
      return;
    }
    const { need } = wanted;
    const pools = poolsOf(need);
    const behind = pools.some((pool) => this.#sought.has(pool));
    const short = shortOf(need, this.#free);
    const beside = pools.filter((pool) => this.#loadingOn.has(pool));
    if (!behind && short.length === 0 && beside.length === 0) {
      this.plan.grants.push(wanted);
      this.#free = difference(this.#free, need);
      for (const pool of pools) if (isGpu(pool)) this.#loadingOn.add(pool);
      return;
    }
    this.plan.waits.set(wanted, this.#inTheWay([...short, ...beside], wanted.holder));
    if (!behind && beside.length === 0) this.#makeRoom(wanted, short);
    // The free memory that this claim needs is set aside for it.
    for (const pool of short) this.#sought.add(pool);
    this.#free = difference(this.#free, Object.fromEntries(pools.map((pool) => [pool, kept(pool, need, short)])));
  }

  #impossible({ need, holder }: W): string | undefined {
    const pinned = this.#helds.filter((holding) => holding === holder || holding.pinned);
    const remaining = pinned.reduce((rest, { amounts }) => difference(rest, amounts), this.#totals);
    return shortOf(need, remaining)[0];
  }

  #makeRoom({ need, holder }: W, short: readonly string[]): void {
    const idle = this.#idleSteps(short, holder);
    const working = this.#workingSteps(short, holder);
    const willing = working.filter(({ holding }) => this.#yieldsFromMs(holding) <= this.#nowMs);
    const steps = this.#enough(need, short, [...idle, ...willing]);
    if (steps) {
      this.#take(steps);
      return;
    }
    if (!this.#enough(need, short, [...idle, ...working])) return;
    const times = working.map(({ holding }) => this.#yieldsFromMs(holding)).filter((ms) => ms > this.#nowMs);
    this.plan.nextPlanMs = Math.min(this.plan.nextPlanMs ?? Number.POSITIVE_INFINITY, ...times);
  }

  /**
   * Returns the time from which a model may be told to yield. The model has then served as long as it took to load, so
   * that models spend at most half of the time on loading.
   */
  #yieldsFromMs({ servesSinceMs, loadMs }: H): number {
    return servesSinceMs + loadMs;
  }

  /** Returns the ways in which idle models can free memory. Sleeping comes before ending, because it is faster. */
  #idleSteps(short: readonly string[], except: H | undefined): Step<H>[] {
    const idle = this.#candidates(short, except)
      .filter(({ idleSinceMs }) => idleSinceMs !== undefined)
      .sort((a, b) => (a.idleSinceMs ?? 0) - (b.idleSinceMs ?? 0));
    const first: Step<H>[] = [];
    const last: Step<H>[] = [];
    for (const holding of idle) {
      const { asleep, amounts } = holding;
      const slept = asleep && difference(amounts, asleep);
      if (asleep && slept && short.some((pool) => amountOf(slept, pool) > 0)) {
        first.push({ holding, to: "asleep", frees: slept });
        last.push({ holding, to: "gone", frees: asleep });
      } else first.push({ holding, to: "gone", frees: amounts });
    }
    return [...first, ...last];
  }

  /** Returns the ways in which working models can free memory, the longest-serving model first. */
  #workingSteps(short: readonly string[], except: H | undefined): Step<H>[] {
    return this.#candidates(short, except)
      .filter(({ idleSinceMs }) => idleSinceMs === undefined)
      .sort((a, b) => a.servesSinceMs - b.servesSinceMs)
      .map((holding) => ({ holding, to: "gone", frees: holding.amounts }));
  }

  /**
   * Returns the models that may leave. None leaves a GPU on which another model is loading, because model
   * servers measure the free memory while they load.
   */
  #candidates(short: readonly string[], except: H | undefined): H[] {
    return this.#helds.filter(
      (holding) =>
        holding !== except &&
        holding.state === "loaded" &&
        !holding.pinned &&
        short.some((pool) => amountOf(holding.amounts, pool) > 0) &&
        !poolsOf(holding.amounts).some((pool) => this.#loadingOn.has(pool)) &&
        !this.plan.yields.has(holding) &&
        !this.plan.grants.some(({ holder }) => holder === holding) &&
        !this.plan.leaves.some((leave) => leave.holding === holding),
    );
  }

  /** Returns steps that free enough memory, none needlessly. Undefined if all steps together are not enough. */
  #enough(need: Amounts, short: readonly string[], steps: readonly Step<H>[]): Step<H>[] | undefined {
    const room = (taken: readonly Step<H>[]) => {
      const free = taken.reduce((remaining, { frees }) => sum(remaining, frees), sum(this.#free, this.#coming));
      return short.every((pool) => amountOf(free, pool) >= amountOf(need, pool));
    };
    if (!room(steps)) return undefined;
    let taken = [...steps];
    // Unneeded steps are dropped, beginning with the last.
    for (const step of steps.toReversed()) {
      const others = taken.filter((one) => one !== step);
      if (room(others)) taken = others;
    }
    return taken;
  }

  #take(steps: readonly Step<H>[]): void {
    for (const { holding, to, frees } of steps) {
      this.#coming = sum(this.#coming, frees);
      if (holding.idleSinceMs === undefined) this.plan.yields.add(holding);
      else {
        const slept = this.plan.leaves.findIndex((leave) => leave.holding === holding);
        if (slept >= 0) this.plan.leaves.splice(slept, 1);
        this.plan.leaves.push({ holding, to });
      }
    }
  }

  #inTheWay(pools: readonly string[], except: H | undefined): H[] {
    return this.#helds.filter(
      (holding) => holding !== except && pools.some((pool) => amountOf(holding.amounts, pool) > 0),
    );
  }
}

function shortOf(need: Amounts, free: Amounts): string[] {
  return poolsOf(need).filter((pool) => amountOf(need, pool) > amountOf(free, pool));
}

/**
 * Returns the memory of a pool to set aside for a claim. If the pool is too small for the claim now, returns 0, because
 * later claims are kept out of that pool anyway.
 */
function kept(pool: string, need: Amounts, short: readonly string[]): number {
  return short.includes(pool) ? 0 : amountOf(need, pool);
}
