import { expect, test } from "bun:test";
import { StreamTable, type Tabled } from "./stream-table.ts";

interface One extends Tabled<One> {}

test("finds each stream by its number after any others came and went", () => {
  const table = new StreamTable<One>();
  const open = new Map<number, One>();
  let random = 11;
  for (let step = 0; step < 5_000; step++) {
    random = (Math.imul(random, 1_664_525) + 1_013_904_223) >>> 0;
    // The id is usually the next number, and sometimes one that shares its last bits with others.
    const id = random % 10 === 0 ? 1_024 * (random % 50) : step;
    const known = open.get(id);
    expect(table.get(id)).toBe(known);
    if (!known) {
      const one: One = { id, nextInTable: undefined };
      open.set(id, one);
      table.add(one);
    }
    const [victim] = [...open.values()].slice(random % open.size);
    if (victim && random % 32 < 15) {
      open.delete(victim.id);
      expect(table.delete(victim)).toBe(true);
      expect(table.delete(victim)).toBe(false);
    }
    expect(table.size).toBe(open.size);
  }
  expect(open.size).toBeGreaterThan(100);
  expect([...table].sort((a, b) => a.id - b.id)).toEqual([...open.values()].sort((a, b) => a.id - b.id));
});
