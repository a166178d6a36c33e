// Remembers for an hour what a deployment refused, and a bounded number of members.
import { expect, test } from "bun:test";
import { AdaptationMemory } from "./adaptation-memory.ts";

const hourMs = 3_600_000;

test("forgets each adaptation an hour after it was last learned", () => {
  const memory = new AdaptationMemory();
  memory.add(["a", "b"], 0);
  memory.add(["a"], 10);
  expect(memory.keys(hourMs - 1)).toEqual(new Set(["b", "a"]));
  expect(memory.keys(hourMs)).toEqual(new Set(["a"]));
  expect(memory.keys(hourMs + 10)).toBeUndefined();
});

test("holds tried adaptations until the last request that tries them has ended", () => {
  const memory = new AdaptationMemory();
  memory.beginTrial(["a", "b"]);
  memory.beginTrial(["a"]);
  expect(memory.keys(0)).toEqual(new Set(["a", "b"]));
  memory.endTrial(["a", "b"]);
  expect(memory.keys(0)).toEqual(new Set(["a"]));
  memory.endTrial(["a"]);
  expect(memory.keys(0)).toBeUndefined();
});

test("remembers 64 adaptations, and forgets the oldest first", () => {
  const memory = new AdaptationMemory();
  const keys = Array.from({ length: 1_000 }, (_, index) => `member=${index}`);
  for (const [index, key] of keys.entries()) memory.add([key], index);
  expect(memory.keys(1_000)).toEqual(new Set(keys.slice(-64)));
});
