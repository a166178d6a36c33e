// Bounds of the work that the check of whole texts does before other requests run.
import { expect, test } from "bun:test";
import { checkTexts, type TextGuard } from "./text-guard.ts";
import type { TextSlot } from "./text-slots.ts";

const pieceLength = 1_000;

/** A guard that passes everything on, and reports the lengths of the pieces that it gets. */
function guardWith(fed: (length: number) => void): TextGuard {
  const feed = (piece: string) => {
    fed(piece.length);
    return piece;
  };
  return {
    ...{ blockedBy: undefined, asks: false, pieceLength, bytesOfText: 0 },
    open: () => ({ feed, end: () => "" }),
    ask: () => Promise.resolve([]),
  };
}

function* slotsOf(text: string, count: number): Generator<TextSlot> {
  for (let index = 0; index < count; index++) yield { text, isJson: false, put: () => {} };
}

/** Returns the most characters that were checked in one tick. */
async function mostInTick(slots: Iterable<TextSlot>): Promise<number> {
  let inTick = 0;
  let most = 0;
  let isOver = false;
  const tick = () => {
    inTick = 0;
    if (!isOver) setImmediate(tick);
  };
  setImmediate(tick);
  const guard = guardWith((length) => {
    inTick += length;
    most = Math.max(most, inTick);
  });
  expect(await checkTexts(slots, guard)).toBe(false);
  isOver = true;
  return most;
}

test.each([
  ["one long text", "x".repeat(100_000), 1],
  ["many texts shorter than a piece", "x".repeat(900), 100],
  ["many short texts", "xy", 50_000],
])("lets other requests run after each thousand characters of %s", async (_, text, count) => {
  expect(await mostInTick(slotsOf(text, count))).toBeLessThanOrEqual(pieceLength);
});
