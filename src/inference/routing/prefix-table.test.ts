// Tests which prompts the table remembers for each deployment: exactly, and within a limit.
import { expect, test } from "bun:test";
import { PrefixTable } from "./prefix-table.ts";
import { PromptPrefix } from "./prompt-prefix.ts";

function prefix(...hashes: number[]): PromptPrefix {
  const made = new PromptPrefix();
  made.hashes.push(...hashes);
  made.ends.push(...hashes.map((_, index) => (index + 1) * 512));
  made.length = hashes.length * 512;
  return made;
}

const many = Array.from({ length: 100 }, (_, index) => ({ index }));

test("measures the warm prefix of a prompt at each deployment by what was sent there", () => {
  const table = new PrefixTable<object>();
  const [a = {}, b = {}, c = {}] = many;
  table.record(prefix(1, 2, 3, 4), a, 100);
  table.record(prefix(1, 2, 9), b, 100);
  const candidates = [a, b, c].map((state) => ({ state, warm: -1 }));
  table.read(prefix(1, 2, 3, 7), candidates.slice(0, 2));
  expect(candidates.map(({ warm }) => warm)).toEqual([3 * 512, 2 * 512, -1]);
  expect(table.warm(prefix(8, 2, 3), a)).toBe(0);
  expect(table.warm(prefix(1, 2, 3, 4), c)).toBe(0);
});

test("keeps up to 124 deployments apart, then starts over", () => {
  const table = new PrefixTable<object>();
  for (const [index, one] of many.entries()) table.record(prefix(1, 1_000 + index), one, 1_000);
  for (const [index, one] of many.entries()) {
    expect(table.warm(prefix(1, 1_000 + index), one)).toBe(2 * 512);
    expect(table.warm(prefix(1, 1_001 + index), one)).toBe(512);
  }
  const others = Array.from({ length: 25 }, () => ({}));
  for (const one of others) table.record(prefix(5), one, 1_000);
  const last = others.at(-1) ?? {};
  expect(table.warm(prefix(5), last)).toBe(512);
});

test("forgets prefixes that are not used again, per deployment, and keeps used ones", () => {
  const table = new PrefixTable<object>();
  const [a = {}, b = {}] = many;
  table.record(prefix(1, 2), a, 50);
  table.record(prefix(1, 2), b, 50);
  for (let i = 0; i < 400; i++) {
    table.record(prefix(10_000 + i), b, 50);
    if (i % 10 === 0) table.record(prefix(1, 2), b, 50);
    expect(table.size).toBeLessThanOrEqual(104);
  }
  expect(table.warm(prefix(1, 2), b)).toBe(2 * 512);
  expect(table.warm(prefix(1, 2), a)).toBe(0);
});
