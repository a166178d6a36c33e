// The order of many texts: whole, right where a few characters tell them apart, and found in pieces.
import { expect, test } from "bun:test";
import { inOrderOfTexts } from "./text-order.ts";

function ordered(texts: readonly string[]): { order: string[]; pieces: number } {
  const sorting = inOrderOfTexts(texts);
  for (let pieces = 0; ; pieces++) {
    const { done, value } = sorting.next();
    if (done) return { order: Array.from(value, (place) => texts[place] ?? ""), pieces };
  }
}

test("texts with a long beginning in common come in their order, all of them, and with turns for others in between", () => {
  const texts = Array.from(
    { length: 20_000 },
    (_, i) => `key_019aa7d0-${((i * 7_919) % 20_000).toString().padStart(5, "0")}`,
  );
  const { order, pieces } = ordered(texts);
  expect(order).toEqual(texts.toSorted());
  expect(pieces).toBeGreaterThan(4);
});

test("no text, one text, equal ones and the beginning of another have their places", () => {
  expect(ordered([]).order).toEqual([]);
  expect(ordered(["a"]).order).toEqual(["a"]);
  expect(ordered(["b", "a", "b"]).order).toEqual(["a", "b", "b"]);
  expect(ordered(["key_1", "key_", "key_0"]).order).toEqual(["key_", "key_0", "key_1"]);
});

test("of half a million texts each has its place, once", () => {
  const texts = Array.from(
    { length: 500_000 },
    (_, i) => `key_${((i * 7_919) % 500_000).toString(36).padStart(4, "0")}`,
  );
  const { order } = ordered(texts);
  expect(new Set(order).size).toBe(texts.length);
  expect(order).toEqual(texts.toSorted());
});
