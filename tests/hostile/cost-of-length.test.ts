// What is sixteen times as long costs about sixteen times as much, whatever it is made of and however it is cut: nothing looks again at what it has seen.
import { expect, test } from "bun:test";
import { inPieces } from "../fuzz/examine.ts";
import { growth } from "../support/growth.ts";
import { type Scanner, scanners } from "./scanners.ts";

const timesLength = 16;
/** The cost as a multiple of sixteen inputs of a sixteenth of the length. A square would be 16; what is over 1 is for memory that is farther away. */
const maxTimesCost = 3;

/** `make`: pieces of an input of so many bytes. */
function growthOf(scan: Scanner["scan"], make: (length: number) => () => Buffer[], length: number): Promise<number> {
  const [short, long] = [make(length / timesLength), make(length)];
  return growth({ short: () => scan(short()), long: () => scan(long()), times: timesLength }, maxTimesCost);
}

const rows = scanners.flatMap((scanner) =>
  scanner.cuts.map((cut) => [scanner.name, cut === undefined ? "whole" : `in pieces of ${cut}`, cut, scanner] as const),
);

// hardening: F4
test.each(rows)(
  "runs %s, %s, in time proportional to the input's length",
  async (_name, _how, cut, { scan, inputs, length }) => {
    for (const [index, input] of inputs.entries()) {
      const make = (bytes: number) => {
        const all = Buffer.from(input(bytes), "latin1");
        return () => inPieces(all, cut ?? all.length);
      };
      const times = await growthOf(scan, make, length);
      const begins = JSON.stringify(input(40).slice(0, 80));
      if (times >= maxTimesCost) throw new Error(`input ${index}, ${begins}: ${times.toFixed(1)} times the cost`);
    }
    expect(inputs.length).toBeGreaterThan(0);
  },
  120_000,
);

test("tells a quadratic scanner from a linear one", async () => {
  const make = (length: number) => {
    const all = Buffer.alloc(length, "x");
    return () => inPieces(all, 16);
  };
  const again = (given: readonly Buffer[]) => {
    let all = Buffer.alloc(0);
    for (const piece of given) {
      all = Buffer.concat([all, piece]);
      all.indexOf("y");
    }
  };
  const once = (given: readonly Buffer[]) => {
    for (const piece of given) piece.indexOf("y");
  };
  expect(await growthOf(again, make, 128_000)).toBeGreaterThan(maxTimesCost);
  expect(await growthOf(once, make, 128_000)).toBeLessThan(maxTimesCost);
}, 60_000);
