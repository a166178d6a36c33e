// Tests that reports of other processes cause a poll immediately, and are trusted if the store cannot be asked.
import { afterEach, expect, test } from "bun:test";
import { systemClock } from "../../base/clock.ts";
import { RevisionWatcher } from "./revision-watcher.ts";

let watcher: RevisionWatcher | undefined;
afterEach(() => watcher?.close());

/** Creates a watcher that polls only when told to. */
async function watch(reread?: () => Promise<void>) {
  const errors: string[] = [];
  const world = { revision: 1, isAway: false, looks: 0, changes: 0, beforeAnswer: async () => {}, errors };
  const made = new RevisionWatcher({
    keys: {
      async credentialRevision() {
        world.looks++;
        const { revision } = world;
        await world.beforeAnswer();
        if (world.isAway) throw new Error("away");
        return revision;
      },
    },
    clock: systemClock,
    log: { info() {}, warn() {}, error: (event) => void errors.push(event) },
    onChange: () => void world.changes++,
    ...(reread ? { reread } : {}),
    pollMs: 3_600_000,
  });
  watcher = made;
  await made.ask();
  world.changes = 0;
  world.looks = 0;
  return { world, made };
}

test("polls at once when told of a change, and clears nothing if there is none", async () => {
  const { world, made } = await watch();
  await made.hint();
  expect([world.looks, world.changes]).toEqual([1, 0]);
  world.revision = 2;
  await made.hint();
  expect([world.looks, world.changes]).toEqual([2, 1]);
});

test("reports a database that went back to an older revision once, and clears its caches", async () => {
  const { world, made } = await watch();
  world.revision = 3;
  await made.ask();
  expect(world.errors).toEqual([]);
  world.revision = 2;
  await made.ask();
  await made.ask();
  expect([world.changes, world.errors]).toEqual([2, ["database_went_back"]]);
});

test("polls once more when told of a change during a poll", async () => {
  const { world, made } = await watch();
  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  world.beforeAnswer = () => held;
  const looking = made.ask();
  await Bun.sleep(2);
  world.revision = 2;
  const reported = made.hint();
  release();
  await Promise.all([looking, reported]);
  expect([world.looks, world.changes]).toEqual([2, 1]);
});

test("assumes a reported change if the store has just become unavailable", async () => {
  const { world, made } = await watch();
  world.isAway = true;
  await made.hint();
  expect(world.changes).toBe(1);
});

test("assumes a reported change without waiting if the store is known to be unavailable", async () => {
  const { world, made } = await watch();
  world.isAway = true;
  await made.ask();
  expect([made.isAway, world.changes]).toEqual([true, 0]);
  const reported = made.hint();
  expect(world.changes).toBe(1);
  await reported;
});

test("retries the other reads after a change until they succeed", async () => {
  let fails = false;
  let reads = 0;
  const { world, made } = await watch(async () => {
    if (fails) throw new Error("away");
    reads++;
  });
  expect(reads).toBe(1);
  fails = true;
  world.revision = 2;
  await made.ask();
  expect([world.changes, made.isAway]).toEqual([1, true]);
  fails = false;
  await made.ask();
  expect([reads, world.changes, made.isAway]).toEqual([2, 2, false]);
  await made.ask();
  expect([reads, world.changes]).toEqual([2, 2]);
});
