import { expect, test } from "bun:test";
import { noIndex } from "../base/indexed-set.ts";
import { type Stoppable, Stopping } from "./stopping.ts";

class Open implements Stoppable {
  setIndex = noIndex;
  stops = 0;
  stop(): void {
    this.stops++;
  }
}

test("stops each open entry once at shutdown, and no ended one, in any order", () => {
  const stopping = new Stopping();
  const all: Open[] = [];
  const open = new Set<Open>();
  let seed = 7;
  for (let step = 0; step < 5_000; step++) {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) | 0;
    const random = seed >>> 8;
    if (random % 16 < 9 || open.size === 0) {
      const one = new Open();
      all.push(one);
      open.add(one);
      stopping.add(one);
    } else {
      const one = [...open][(random >>> 4) % open.size] as Open;
      open.delete(one);
      stopping.remove(one);
      // An object that ends twice is also removed twice.
      if (random % 3 === 0) stopping.remove(one);
    }
  }
  expect(open.size).toBeGreaterThan(10);
  expect(all.length).toBeGreaterThan(open.size + 100);
  stopping.begin();
  expect(all.filter((one) => one.stops !== (open.has(one) ? 1 : 0))).toEqual([]);
});

test("stops an entry once if it removes itself meanwhile or is added afterwards", () => {
  const stopping = new Stopping();
  const first = new Open();
  const second = new Open();
  first.stop = () => {
    first.stops++;
    stopping.remove(first);
    stopping.remove(second);
  };
  stopping.add(second);
  stopping.add(first);
  stopping.begin();
  const late = new Open();
  stopping.add(late);
  expect([first.stops, second.stops, late.stops]).toEqual([1, 0, 1]);
});
