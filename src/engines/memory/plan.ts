// Decides which models get memory now, which must leave for that and which wait: a pure function of what is held and
// wanted.
import { type Amounts, amountOf, difference, isGpu, poolsOf, sum } from "./amounts.ts";

/** Memory reserved for one model, from before its process starts until the process is gone. */
export interface MemoryHolding {
  readonly amounts: Amounts;
  /** The memory that the model would still hold asleep. Undefined if it cannot sleep, or already does. */
  readonly asleep: Amounts | undefined;
  readonly state: "loading" | "loaded" | "leaving";
  /** The memory that a leaving model still holds once it sleeps. */
  readonly leavesBehind: Amounts;
  readonly pinned: boolean;
  /** The monotonic time since which no request is running, in milliseconds. Undefined while the model works. */
  readonly idleSinceMs: number | undefined;
  /** The monotonic time since which the model accepts requests without having been asked to yield, in milliseconds. */
  readonly servesSinceMs: number;
  /** The time that the loading of the model took. */
  readonly loadMs: number;
}

export interface Wanted<H extends MemoryHolding> {
  /** The memory that is needed in addition to what `holder` holds. */
  readonly need: Amounts;
  /** The model to wake. Undefined if it is to be started. */
  readonly holder: H | undefined;
}

export interface Plan<H extends MemoryHolding, W extends Wanted<H>> {
  grants: W[];
  /** Requests that can never be granted, with the pool that is too small. */
  refusals: { wanted: W; pool: string }[];
  /** Idle models that must leave now. */
  leaves: { holding: H; to: Leaving }[];
  /** The working models that accept no new requests until another model has had its turn. */
  yields: Set<H>;
  /** The models that must end or yield first, for each waiting request. */
  waits: Map<W, H[]>;
  /**
   * The monotonic time at which to plan again if no event comes earlier. Undefined if only an event changes anything.
   */
  nextPlanMs: number | undefined;
}

/** The state of a model that has left: `asleep` keeps its process with less memory, `gone` ends it. */
export type Leaving = "asleep" | "gone";

interface Step<H> {
  holding: H;
  to: Leaving;
  frees: Amounts;
}

/**
 * Decides in order of arrival: each waiting request keeps its share of free memory, and later ones do not get what it
 * lacks. Idle models leave for it, longest idle first. If that is not enough, working models yield that have served for
 * as long as they took to load. No model leaves if that would not make enough room.
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
  /** Pools that a waiting request lacks. */
  readonly #sought = new Set<string>();
  #free: Amounts;
  /** The memory that leaving models will return. */
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

  /** If more is held than there is, for example because a process was larger than expected, idle models leave. */
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
    // The request's share of free memory is kept for it.
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
   * Returns when a model may be asked to yield: it has then served for as long as it took to load. So at most half of
   * the time is spent on loading, however many models need the same memory.
   */
  #yieldsFromMs({ servesSinceMs, loadMs }: H): number {
    return servesSinceMs + loadMs;
  }

  /** Returns the steps that idle models can take. Sleep comes first if it helps, because it takes less time. */
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

  /** Returns the steps that working models can take, beginning with the model that has served longest. */
  #workingSteps(short: readonly string[], except: H | undefined): Step<H>[] {
    return this.#candidates(short, except)
      .filter(({ idleSinceMs }) => idleSinceMs === undefined)
      .sort((a, b) => a.servesSinceMs - b.servesSinceMs)
      .map((holding) => ({ holding, to: "gone", frees: holding.amounts }));
  }

  /**
   * Returns the models that may leave. While a model is loading on a GPU, no memory is freed there, because servers
   * measure free memory while they start.
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

  /** Returns the steps that make enough room, without needless ones. Undefined if all of them are not enough. */
  #enough(need: Amounts, short: readonly string[], steps: readonly Step<H>[]): Step<H>[] | undefined {
    const room = (taken: readonly Step<H>[]) => {
      const free = taken.reduce((remaining, { frees }) => sum(remaining, frees), sum(this.#free, this.#coming));
      return short.every((pool) => amountOf(free, pool) >= amountOf(need, pool));
    };
    if (!room(steps)) return undefined;
    let taken = [...steps];
    // The steps that come last are dropped first.
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
 * Returns the memory of a pool to keep for a request. Nothing is kept of a pool that is short, because only one request
 * seeks it.
 */
function kept(pool: string, need: Amounts, short: readonly string[]): number {
  return short.includes(pool) ? 0 : amountOf(need, pool);
}
