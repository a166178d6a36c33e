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

test("sorts texts with a long common beginning, with other work in between", () => {
  const texts = Array.from(
    { length: 20_000 },
    (_, i) => `key_019aa7d0-${((i * 7_919) % 20_000).toString().padStart(5, "0")}`,
  );
  const { order, pieces } = ordered(texts);
  expect(order).toEqual(texts.toSorted());
  expect(pieces).toBeGreaterThan(4);
});

test("sorts no text, one text, equal texts and prefixes", () => {
  expect(ordered([]).order).toEqual([]);
  expect(ordered(["a"]).order).toEqual(["a"]);
  expect(ordered(["b", "a", "b"]).order).toEqual(["a", "b", "b"]);
  expect(ordered(["key_1", "key_", "key_0"]).order).toEqual(["key_", "key_0", "key_1"]);
});

test("sorts half a million texts, each once", () => {
  const texts = Array.from(
    { length: 500_000 },
    (_, i) => `key_${((i * 7_919) % 500_000).toString(36).padStart(4, "0")}`,
  );
  const { order } = ordered(texts);
  expect(new Set(order).size).toBe(texts.length);
  expect(order).toEqual(texts.toSorted());
});
