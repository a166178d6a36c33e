// Writes fail fast while the store is away, rather than wait one behind another.
import { expect, test } from "bun:test";
import { manualClock } from "../../../tests/support/manual-clock.ts";
import { StoreTurns } from "./store-turns.ts";

test("runs all store writes, at most four at once", async () => {
  const turns = new StoreTurns(manualClock());
  let [working, most] = [0, 0];
  const results = await Promise.all(
    Array.from({ length: 40 }, (_, nth) =>
      turns.take(async () => {
        most = Math.max(most, ++working);
        await Bun.sleep(1);
        working--;
        return nth;
      }),
    ),
  );
  expect(results).toEqual(results.map((_, nth) => nth));
  expect(most).toBe(4);
});

test("tries a single write at intervals while the store is away, and all writes after its return", async () => {
  const clock = manualClock();
  const turns = new StoreTurns(clock);
  let [tries, isAway] = [0, true];
  const work = async () => {
    tries++;
    await Bun.sleep(1);
    if (isAway) throw new Error("It is locked.");
  };
  const all = async () => {
    tries = 0;
    const results = await Promise.allSettled(Array.from({ length: 100 }, () => turns.take(work)));
    return [tries, results.filter(({ status }) => status === "rejected").length];
  };
  // The outage is unknown before the first four tries fail.
  expect(await all()).toEqual([4, 100]);
  expect(await all()).toEqual([0, 100]);
  clock.advance(500);
  expect(await all()).toEqual([1, 100]);
  clock.advance(500);
  isAway = false;
  const [triedNow] = await all();
  expect(triedNow).toBeGreaterThan(0);
  expect(await all()).toEqual([100, 0]);
});
