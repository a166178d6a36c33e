// A shortened attempt log keeps its last step and its first steps, and has the number of steps left out.
import { expect, test } from "bun:test";
import fc from "fast-check";
import { maxSteps, stepResults, type TrailStep } from "../../domain/usage/trail.ts";
import { readTrail, shortTrailText, trailText } from "./trail-text.ts";

const stepOf = (startedMs: number, more: Partial<TrailStep> = {}): TrailStep => ({
  ...{ upstream: "gpu-1", upstreamModel: "m:7b", model: "m", result: "refused", status: 500, reason: "overloaded" },
  ...{ startedMs, durationMs: 7, ...more },
});

test("reads back the number of omitted steps, in a form that older versions ignore", () => {
  const trail = [stepOf(0), stepOf(9, { leftOut: 3 })];
  expect(readTrail(trailText(trail))).toEqual(trail);
  expect(trailText([stepOf(0)])).toBe('[["gpu-1","m:7b","m","refused",500,"overloaded",0,7]]');
  expect(JSON.parse(trailText(trail))[1]).toEqual(["gpu-1", "m:7b", "m", "refused", 500, "overloaded", 9, 7, 3]);
});

test("keeps the last step before the first ones, and reasons where they fit", () => {
  const trail = Array.from({ length: 10 }, (_, i) => stepOf(i, { reason: `${i}`.repeat(100) }));
  const short = readTrail(shortTrailText(trail, 300) ?? "");
  expect(short?.map(({ startedMs, leftOut, reason }) => [startedMs, leftOut ?? 0, reason === null])).toEqual([
    [0, 0, false],
    [9, 8, false],
  ]);
  const shorter = readTrail(shortTrailText(trail, 240) ?? "");
  expect(shorter?.map(({ startedMs, leftOut, reason }) => [startedMs, leftOut ?? 0, reason === null])).toEqual([
    [0, 0, true],
    [1, 0, true],
    [9, 7, false],
  ]);
  expect(shortTrailText(trail, 20)).toBeUndefined();
  expect(shortTrailText(trail, 10_000)).toBe(trailText(trail));
});

const texts = fc.string({ unit: "grapheme", maxLength: 40 });
const steps = fc.array(
  fc.record({
    ...{ upstream: fc.option(texts), upstreamModel: fc.option(texts), model: texts, reason: fc.option(texts) },
    ...{
      result: fc.constantFrom(...stepResults),
      status: fc.option(fc.nat(599)),
      startedMs: fc.nat(),
      durationMs: fc.nat(),
    },
    leftOut: fc.nat(3),
  }),
  { minLength: 1, maxLength: maxSteps },
);

test("shortens a trail to any size readably, with its first and last steps and a full count", () => {
  const countOf = (trail: readonly TrailStep[]) => trail.reduce((sum, { leftOut = 0 }) => sum + 1 + leftOut, 0);
  fc.assert(
    fc.property(steps, fc.nat(2_000), (made, maxBytes) => {
      // Only the last step of a log has `leftOut`.
      const trail = made.map(({ leftOut, ...step }, i) =>
        leftOut > 0 && i === made.length - 1 ? { ...step, leftOut } : step,
      );
      const text = shortTrailText(trail, maxBytes);
      if (text === undefined) return;
      expect(Buffer.byteLength(text)).toBeLessThanOrEqual(maxBytes);
      const short = readTrail(text) ?? [];
      expect(countOf(short)).toBe(countOf(trail));
      const asKept = ({ leftOut: _, ...step }: TrailStep, at: number) => ({
        ...step,
        reason: short[at]?.reason ?? null,
      });
      const last = trail.at(-1) as TrailStep;
      const expected = [...trail.slice(0, short.length - 1).map(asKept), asKept(last, short.length - 1)];
      expect(short.map(({ leftOut: _, ...step }) => step)).toEqual(expected);
    }),
  );
});
