import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type Amounts, amountOf, isGpu, poolsOf, sum } from "./amounts.ts";
import { type Lease, MemoryBudget, NeverFits, type Tenant } from "./budget.ts";
import type { Leaving } from "./plan.ts";

/** A model that obeys the budget immediately, unless a test delays it. */
class Model implements Tenant {
  pinned = false;
  idleSinceMs: number | undefined = 0;
  asleep: Amounts | undefined;
  lease: Lease | undefined;
  error: unknown;
  yielding = false;
  left: Leaving[] = [];
  wasWorkingWhenLeft = false;
  readonly abort = new AbortController();

  readonly name: string;
  readonly amounts: Amounts;

  constructor(name: string, amounts: Amounts) {
    this.name = name;
    this.amounts = amounts;
  }

  yields(on: boolean): void {
    this.yielding = on;
  }

  leave(to: Leaving): void {
    this.wasWorkingWhenLeft ||= this.idleSinceMs === undefined;
    this.left.push(to);
  }

  /** Ends the lease of a model, as when its process is gone. */
  gone(): void {
    const { lease } = this;
    this.lease = undefined;
    lease?.release();
  }
}

class World {
  nowMs = 0;
  readonly budget: MemoryBudget;

  constructor(totals: Amounts) {
    this.budget = new MemoryBudget(totals, { monotonicMs: () => this.nowMs });
  }

  async claim(model: Model): Promise<void> {
    model.error = undefined;
    this.budget.claim(model, model.amounts, model.abort.signal).then(
      (lease) => {
        model.lease = lease;
      },
      (error: unknown) => {
        model.error = error;
      },
    );
    await Bun.sleep(0);
  }

  /** Loads a model immediately. */
  async load(model: Model, idleSinceMs: number | undefined): Promise<void> {
    await this.claim(model);
    model.idleSinceMs = idleSinceMs;
    model.lease?.loaded();
  }

  used(pool: string): number {
    return this.budget.view().pools.find((one) => one.pool === pool)?.used ?? 0;
  }
}

describe("the memory budget", () => {
  test("evicts the longest idle model, and grants its memory only once it is gone", async () => {
    const world = new World({ ram: 10 });
    const [old, young, next] = [
      new Model("old", { ram: 5 }),
      new Model("young", { ram: 5 }),
      new Model("n", { ram: 4 }),
    ];
    await world.load(old, 1);
    await world.load(young, 2);
    await world.claim(next);
    expect([old.left, young.left, next.lease]).toEqual([["gone"], [], undefined]);
    expect(world.budget.view().waiting).toEqual([{ name: "n", amounts: { ram: 4 }, behind: ["old", "young"] }]);
    old.gone();
    await Bun.sleep(0);
    expect(next.lease).toBeDefined();
    expect(world.used("ram")).toBe(9);
  });

  test("evicts no idle model whose memory would not suffice", async () => {
    const world = new World({ ram: 10, gpu0: 10 });
    const small = new Model("small", { ram: 1 });
    const gpu = new Model("gpu", { gpu0: 9 });
    const busy = new Model("busy", { ram: 8 });
    await world.load(small, 1);
    await world.load(gpu, 2);
    await world.load(busy, 3);
    await world.claim(new Model("next", { ram: 9 }));
    expect([small.left, gpu.left, busy.left]).toEqual([[], [], ["gone"]]);
  });

  test("refuses at once a model that can never fit, alone or beside pinned ones", async () => {
    const world = new World({ ram: 10 });
    const large = new Model("large", { ram: 11 });
    await world.claim(large);
    expect(large.error).toEqual(new NeverFits("ram", 11, 10, 0));
    const pinned = new Model("pinned", { ram: 6 });
    pinned.pinned = true;
    await world.load(pinned, 0);
    const beside = new Model("beside", { ram: 5 });
    await world.claim(beside);
    expect(beside.error).toEqual(new NeverFits("ram", 5, 10, 6));
    const nowhere = new Model("nowhere", { gpu3: 1 });
    await world.claim(nowhere);
    expect(nowhere.error).toBeInstanceOf(NeverFits);
  });

  test("makes a busy model yield after as long as its load took, until no model waits any more", async () => {
    const world = new World({ ram: 10 });
    const busy = new Model("busy", { ram: 10 });
    await world.claim(busy);
    world.nowMs = 100;
    busy.idleSinceMs = undefined;
    busy.lease?.loaded();
    const next = new Model("next", { ram: 5 });
    await world.claim(next);
    expect(busy.yielding).toBe(false);
    world.nowMs = 200;
    world.budget.changed();
    expect([busy.yielding, busy.left]).toEqual([true, []]);
    next.abort.abort(new Error("left"));
    expect([busy.yielding, busy.left]).toEqual([false, []]);
    const other = new Model("other", { ram: 5 });
    await world.claim(other);
    world.nowMs = 300;
    world.budget.changed();
    busy.idleSinceMs = 300;
    world.budget.changed();
    expect(busy.left).toEqual(["gone"]);
  });

  test("loads one model at a time on a GPU, and frees nothing there meanwhile", async () => {
    const world = new World({ ram: 100, gpu0: 10, gpu1: 10 });
    const [first, second, elsewhere] = [
      new Model("first", { gpu0: 3 }),
      new Model("second", { gpu0: 3 }),
      new Model("elsewhere", { gpu1: 3 }),
    ];
    for (const model of [first, second, elsewhere]) await world.claim(model);
    expect([first.lease, second.lease, elsewhere.lease].map(Boolean)).toEqual([true, false, true]);
    first.lease?.loaded();
    await Bun.sleep(0);
    expect(second.lease).toBeDefined();
    expect(first.lease?.mayLeave).toBe(false);
    second.lease?.loaded();
    expect(first.lease?.mayLeave).toBe(true);
  });

  test("puts a model to sleep if that suffices, and reserves memory again before waking it", async () => {
    const world = new World({ ram: 100, gpu0: 10 });
    const sleeper = new Model("sleeper", { ram: 20, gpu0: 8 });
    sleeper.asleep = { ram: 20, gpu0: 1 };
    await world.load(sleeper, 1);
    const next = new Model("next", { gpu0: 9 });
    await world.claim(next);
    expect(sleeper.left).toEqual(["asleep"]);
    sleeper.lease?.slept({ ram: 20, gpu0: 1 });
    await Bun.sleep(0);
    next.lease?.loaded();
    expect(world.used("gpu0")).toBe(10);
    next.idleSinceMs = 5;
    const awake = sleeper.lease?.grow({ ram: 20, gpu0: 8 }, new AbortController().signal);
    expect(next.left).toEqual(["gone"]);
    next.gone();
    await awake;
    expect(world.used("gpu0")).toBe(8);
  });

  test("evicts a sleeping model that waits to wake, and does not wake it then", async () => {
    const world = new World({ ram: 30, gpu0: 10 });
    const [sleeper, busy] = [new Model("sleeper", { ram: 20, gpu0: 8 }), new Model("busy", { gpu0: 9 })];
    sleeper.asleep = { ram: 20, gpu0: 1 };
    await world.load(sleeper, 1);
    await world.claim(busy);
    sleeper.lease?.slept({ ram: 20, gpu0: 1 });
    await Bun.sleep(0);
    busy.lease?.loaded();
    busy.idleSinceMs = undefined;
    busy.pinned = false;
    let refused: unknown;
    sleeper.lease?.grow({ ram: 20, gpu0: 8 }, new AbortController().signal).catch((error: unknown) => {
      refused = error;
    });
    const next = new Model("next", { ram: 15 });
    await world.claim(next);
    expect(sleeper.left).toEqual(["asleep", "gone"]);
    expect(String(refused)).toContain("has to leave");
    sleeper.gone();
    await Bun.sleep(0);
    expect(next.lease).toBeDefined();
    expect(world.budget.view().held.map(({ name }) => name)).toEqual(["busy", "next"]);
  });

  test("loads only one member of a group at a time", async () => {
    const world = new World({ ram: 100, "group:chat": 1 });
    const one = new Model("one", { ram: 1, "group:chat": 1 });
    const two = new Model("two", { ram: 1, "group:chat": 1 });
    await world.load(one, 1);
    await world.claim(two);
    expect(one.left).toEqual(["gone"]);
    expect(world.budget.view().pools.map(({ pool }) => pool)).toEqual(["ram"]);
  });

  test("evicts idle models when a process turns out larger than expected", async () => {
    const world = new World({ ram: 10 });
    const [idle, grown] = [new Model("idle", { ram: 4 }), new Model("grown", { ram: 5 })];
    await world.load(idle, 1);
    await world.load(grown, undefined);
    grown.lease?.resize({ ram: 8 });
    expect(idle.left).toEqual(["gone"]);
  });
});

const pools = { ram: 12, gpu0: 8, gpu1: 8, "group:g": 1 };
const anyAmounts = fc.record(
  { ram: fc.integer({ min: 1, max: 8 }), gpu0: fc.integer({ min: 1, max: 8 }), "group:g": fc.constant(1) },
  { requiredKeys: ["ram"] },
);
const anyStep = fc.record({
  what: fc.constantFrom("claim", "claim", "loaded", "work", "idle", "gone", "abort", "pin", "time"),
  which: fc.nat(7),
});

type Step = { what: string; which: number };

/** Takes one step with one model, if the step is possible. */
async function take(world: World, models: Model[], { what, which }: Step): Promise<void> {
  const model = models[which % models.length];
  if (!model) return;
  const { lease } = model;
  const state = world.budget.view().held.find(({ name }) => name === model.name)?.state;
  const waits = world.budget.view().waiting.some(({ name }) => name === model.name);
  if (what === "claim" && !lease && !waits && !model.abort.signal.aborted) await world.claim(model);
  if (what === "loaded" && lease && state === "loading") lease.loaded();
  if (what === "work" && state === "loaded" && !model.yielding) model.idleSinceMs = undefined;
  if (what === "idle") model.idleSinceMs ??= world.nowMs;
  if (what === "gone" && state === "leaving") model.gone();
  if (what === "abort" && waits) model.abort.abort(new Error("left"));
  if (what === "pin") model.pinned = !model.pinned;
  world.nowMs += 10;
  world.budget.changed();
  await Bun.sleep(0);
}

function expectInBounds(world: World, models: Model[]): void {
  const { held } = world.budget.view();
  const used = held.reduce<Amounts>((total, { amounts }) => sum(total, amounts), {});
  for (const [pool, total] of Object.entries(pools)) expect(amountOf(used, pool)).toBeLessThanOrEqual(total);
  const loading = held
    .filter(({ state }) => state === "loading")
    .flatMap(({ amounts }) => poolsOf(amounts).filter(isGpu));
  expect(new Set(loading).size).toBe(loading.length);
  expect(models.filter(({ wasWorkingWhenLeft }) => wasWorkingWhenLeft)).toEqual([]);
}

test("keeps the budget, evicts no busy model and serves every model in random runs", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(anyAmounts, { minLength: 2, maxLength: 8 }),
      fc.array(anyStep, { maxLength: 60 }),
      async (sizes, steps) => {
        const world = new World(pools);
        const models = sizes.map((amounts, index) => new Model(`m${index}`, amounts));
        for (const step of steps) {
          await take(world, models, step);
          expectInBounds(world, models);
        }
        for (const model of models) model.pinned = false;
        const claimed = new Set(world.budget.view().waiting.map(({ name }) => name));
        for (let round = 0; round < 40 && world.budget.view().waiting.length > 0; round++) {
          for (const [which] of models.entries())
            for (const what of ["loaded", "idle", "gone"]) await take(world, models, { what, which });
          expectInBounds(world, models);
        }
        expect(world.budget.view().waiting).toEqual([]);
        for (const { name, error } of models) if (claimed.has(name)) expect(error).toBeUndefined();
      },
    ),
    { numRuns: 60 },
  );
});
