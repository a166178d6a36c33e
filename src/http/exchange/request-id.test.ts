// Tests that request ids are UUIDs of version 7, and each is greater than the one before, even if the clock goes back.
import { expect, test } from "bun:test";
import { RequestIds } from "./request-id.ts";

const hour = 3_600_000;
const start = 1_700_000_000_000;

test("makes ids that are UUIDs of version 7 for the current moment", () => {
  const id = new RequestIds().next(start);
  expect(id).toMatch(/^req_[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
  expect(msOf(id)).toBe(start);
});

test("makes each id greater than the one before, within a millisecond and after the clock went back", () => {
  const made = new RequestIds();
  const times = [...new Array(10_000).fill(start), start - hour, start - hour, start + 1, start + hour];
  const ids = times.map((ms) => made.next(ms));
  expect(ids.toSorted()).toEqual(ids);
  expect(new Set(ids).size).toBe(ids.length);
  // A millisecond has room for at least 2,000 ids, so 10,000 ids run ahead of the clock by at most 5 ms.
  expect(msOf(ids[9_999] ?? "") - start).toBeLessThanOrEqual(5);
  expect(msOf(ids.at(-1) ?? "")).toBe(start + hour);
});

test("fills every bit of an id after its counter randomly", () => {
  const made = new RequestIds();
  const seen = [0n, 0n];
  for (let n = 0; n < 200; n++) {
    const bits = BigInt(`0x${made.next(start).slice(23).replaceAll("-", "")}`);
    seen[0] = (seen[0] ?? 0n) | bits;
    seen[1] = (seen[1] ?? 0n) | ~bits;
  }
  const free = (1n << 62n) - 1n;
  expect([(seen[0] ?? 0n) & free, (seen[1] ?? 0n) & free]).toEqual([free, free]);
});

function msOf(id: string): number {
  return Number.parseInt(id.slice(4).replaceAll("-", "").slice(0, 12), 16);
}
