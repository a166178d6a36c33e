// Windows that roll over a restart: the one that was open goes on, and what was used before it is not counted in it.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { admittedOf, ledgerWith, refusal, reserve } from "../../../tests/support/limits-contract.ts";
import { manualClock } from "../../../tests/support/manual-clock.ts";
import { windowQuota, withWindows } from "../../../tests/support/windows-contract.ts";
import { MemoryLimits } from "./memory-limits.ts";
import { WindowStarts } from "./window-starts.ts";

let directory: string;
let path: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "headrace-starts-"));
  path = join(directory, "window-starts");
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const logged: string[] = [];
const log = { error: (event: string) => void logged.push(event) };
const quota = windowQuota({ unit: "requests", amount: 5, per: "5h", window: "rolling" });
const set = withWindows(quota);
const hourMs = 3_600_000;

function setUp() {
  const clock = manualClock();
  const ledger = ledgerWith({ requests: 0, tokens: 0, nanoUsd: 0 });
  const start = () => new MemoryLimits({ clock, ledger, starts: new WindowStarts(path, clock.nowSeconds(), log) });
  return { clock, ledger, start };
}

test("ends an open window after a restart as before, with its own usage only", async () => {
  const { clock, ledger, start } = setUp();
  let limits = start();
  const ask = () => limits.admit(set, reserve(1));
  expect(await admittedOf(9, ask)).toBe(5);
  clock.advance(5 * hourMs);
  expect(await admittedOf(2, ask)).toBe(2);
  const begun = clock.nowSeconds();
  clock.advance(hourMs);
  limits = start();
  ledger.totals.requests = 2;
  ledger.totals.firstAt = begun;
  const before = ledger.reads.length;
  expect(await admittedOf(9, ask)).toBe(3);
  expect(ledger.reads.slice(before).map(({ since }) => since)).toEqual([begun]);
  expect((await limits.usedInWindow(quota)).period).toEqual({ start: begun, end: begun + 18_000 });
  clock.advance(4 * hourMs);
  expect(await admittedOf(9, ask)).toBe(5);
});

test("does not read usage of a window that ended before a restart", async () => {
  const { clock, ledger, start } = setUp();
  const begun = clock.nowSeconds();
  const limits = start();
  expect(await admittedOf(9, () => limits.admit(set, reserve(1)))).toBe(5);
  clock.advance(6 * hourMs);
  const again = start();
  expect((await again.usedInWindow(quota)).period).toBeUndefined();
  expect(ledger.reads.at(-1)?.since).toBe(begun + 18_000);
  expect(await admittedOf(9, () => again.admit(set, reserve(1)))).toBe(5);
});

test("falls back to the ledger for a torn line, a clock set back or a missing file", async () => {
  const { clock, ledger, start } = setUp();
  writeFileSync(path, `${clock.nowSeconds() + 500} 18000 ${quota.id}\n`);
  appendFileSync(path, `${clock.nowSeconds() - 5} 180`);
  await start().usedInWindow(quota);
  rmSync(path);
  await start().usedInWindow(quota);
  expect(ledger.reads.map(({ since }) => since)).toEqual([clock.nowSeconds() - 17_999, clock.nowSeconds() - 17_999]);
});

test("keeps the file of windows small and without ended ones", () => {
  const starts = new WindowStarts(path, 0, log);
  for (let second = 0; second < 30_000; second++) starts.add(`key:${second % 10}`, second, 60);
  expect(readFileSync(path, "utf8").split("\n").length).toBeLessThan(20_100);
  const again = new WindowStarts(path, 30_000, log);
  expect(again.lastOf("key:9", 30_000)).toBe(29_999);
  expect(readFileSync(path, "utf8").split("\n")).toHaveLength(11);
  new WindowStarts(path, 40_000, log);
  expect(readFileSync(path, "utf8")).toBe("");
});

test("refuses no request because of an unwritable file, and logs that once", async () => {
  const { clock, ledger } = setUp();
  const starts = new WindowStarts(join(directory, "nowhere", "x"), clock.nowSeconds(), log);
  const limits = new MemoryLimits({ clock, ledger, starts });
  expect(await admittedOf(9, () => limits.admit(set, reserve(1)))).toBe(5);
  clock.advance(5 * hourMs);
  expect(await admittedOf(9, () => limits.admit(set, reserve(1)))).toBe(5);
  expect((await refusal(limits.admit(set, reserve(1)))).code).toBe("insufficient_quota");
  expect(logged).toEqual(["window_starts_failed"]);
});
