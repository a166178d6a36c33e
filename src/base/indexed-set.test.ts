import { expect, test } from "bun:test";
import { type IndexedItem, IndexedSet, noIndex } from "./indexed-set.ts";

interface One extends IndexedItem {
  readonly number: number;
}

const one = (number: number): One => ({ setIndex: noIndex, number });
const numbersIn = (bag: IndexedSet<One>) => [...bag].map(({ number }) => number).sort((a, b) => a - b);

test("contains the items that were added and not deleted, also after repeated deletions", () => {
  const bag = new IndexedSet<One>();
  const [a, b, c, d] = [one(1), one(2), one(3), one(4)];
  for (const each of [a, b, c, d]) bag.add(each);
  bag.delete(b);
  bag.delete(b);
  expect(numbersIn(bag)).toEqual([1, 3, 4]);
  bag.add(b);
  bag.delete(a);
  bag.delete(c);
  expect(numbersIn(bag)).toEqual([2, 4]);
  bag.delete(d);
  bag.delete(b);
  expect(bag.size).toBe(0);
});

test("yields each remaining item while the loop deletes and adds items", () => {
  for (let seed = 1; seed <= 200; seed++) {
    const bag = new IndexedSet<One>();
    const all = Array.from({ length: 20 }, (_, number) => one(number));
    for (const each of all) bag.add(each);
    const seen = new Set<One>();
    let random = seed;
    for (const each of bag) {
      seen.add(each);
      random = (Math.imul(random, 1_664_525) + 1_013_904_223) >>> 0;
      const victim = all[(random >>> 8) % 20];
      if (victim && random % 3 > 0) bag.delete(victim);
      if (random % 5 === 0) bag.add(one(100 + seen.size));
    }
    expect(all.filter((each) => each.setIndex !== noIndex && !seen.has(each))).toEqual([]);
  }
});
