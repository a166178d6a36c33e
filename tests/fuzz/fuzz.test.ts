// What reads bytes from outside holds for all that fuzzing found before; the long form goes on fuzzing for a minute.
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { long } from "../support/long.ts";
import { seeded } from "../support/seeded.ts";
import { examine } from "./examine.ts";
import { plantedFault } from "./planted-fault.ts";
import { inputsOf, runTarget } from "./run-target.ts";
import { targets } from "./targets.ts";

const root = join(import.meta.dir, "..", "..");
/** Milliseconds for all targets together. */
const fuzzMs = 60_000;
const seed = long ? Date.now() : 20_261_123;

// hardening: F5
test.each(targets.map((target) => [target.name, target] as const))(
  "gives the same allowed result for each kept fuzz input of %s, however it is cut",
  async (_name, target) => {
    const random = seeded(seed);
    for (const input of inputsOf(target)) await examine(target, Buffer.from(input, "latin1"), random);
  },
);

test("finds the source files whose coverage guides fuzzing", () => {
  const files = targets.flatMap((target) => target.files);
  expect(files.filter((file) => !existsSync(join(root, file)))).toEqual([]);
});

// hardening: F5
test("finds a fault behind three bytes by coverage, one byte after another", async () => {
  const { name, seeds } = plantedFault;
  const { fault, found } = await runTarget({ target: name, inputs: seeds, seed: 1, forMs: 40_000 });
  expect(fault?.input).toBe(JSON.stringify("hE\x90"));
  expect(fault?.message).toContain("planted");
  // Each byte that was right was seen in the coverage, and what came next was made of that input.
  expect(found.some((input) => input.startsWith("h"))).toBe(true);
  expect(found.some((input) => input.startsWith("hE"))).toBe(true);
}, 60_000);

// hardening: F5
test.skipIf(!long).each(targets.map((target) => [target.name, target] as const))(
  "finds no new input that makes %s fail",
  async (name, target) => {
    const result = await runTarget({ target: name, inputs: inputsOf(target), seed, forMs: fuzzMs / targets.length });
    console.log(`${name}: ${result.runs} runs with the seed ${seed}, ${result.found.length} inputs kept`);
    expect(result.fault).toBeUndefined();
  },
  60_000,
);
