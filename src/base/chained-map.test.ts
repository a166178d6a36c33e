// A map whose entries come and go: it finds what a Map would.
import { expect, test } from "bun:test";
import fc from "fast-check";
import { ChainedMap } from "./chained-map.ts";

class Entry {
  next: Entry | undefined = undefined;
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

test("finds exactly the present entries after any additions and deletions", () => {
  const step = fc.record({ name: fc.nat(20_000), adds: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const [map, known] = [new ChainedMap<Entry>(), new Map<string, Entry>()];
      for (const { name: number, adds } of steps) {
        const name = `key_${number % 50}`;
        const before = known.get(name);
        expect(map.get(name)).toBe(before);
        if (adds && !before) {
          known.set(name, new Entry(name));
          map.add(known.get(name) as Entry);
        } else if (!adds && before) {
          known.delete(name);
          map.delete(before);
        }
        expect(map.size).toBe(known.size);
      }
    }),
    { numRuns: 50 },
  );
});

test("finds many more entries than it has chains, and no deleted ones", () => {
  const map = new ChainedMap<Entry>();
  const all = Array.from({ length: 20_000 }, (_, n) => new Entry(`key_${n}`));
  for (const entry of all) map.add(entry);
  for (const entry of all.filter((_, n) => n % 3 === 0)) map.delete(entry);
  expect(all.every((entry, n) => map.get(entry.name) === (n % 3 === 0 ? undefined : entry))).toBe(true);
  expect(map.size).toBe(all.filter((_, n) => n % 3 !== 0).length);
});
