import { expect, test } from "bun:test";
import { cpuMicros, cpuSnapshot, processTree, rssBytes } from "./process-usage.ts";

const rest = { waitedNanos: 0 };

test("sums the usage of all threads of a process, including new ones", () => {
  const before = { threads: new Map([["1", 1_000_000]]), ticks: 5, ...rest };
  const after = {
    threads: new Map([
      ["1", 3_000_000],
      ["2", 500_000],
    ]),
    ticks: 5,
    ...rest,
  };
  expect(cpuMicros(before, after)).toBe(2_500);
});

test("uses clock ticks if a thread ended or the kernel has no finer figures", () => {
  const before = { threads: new Map([["1", 1_000_000_000]]), ticks: 100, ...rest };
  expect(cpuMicros(before, { threads: new Map(), ticks: 150, ...rest })).toBe(500_000);
});

test.skipIf(process.platform !== "linux")("measures the usage of the current process", () => {
  const before = cpuSnapshot([process.pid]);
  const end = performance.now() + 30;
  while (performance.now() < end);
  const micros = cpuMicros(before, cpuSnapshot([process.pid]));
  expect(micros).toBeGreaterThan(3_000);
  expect(rssBytes([process.pid])).toBeGreaterThan(10e6);
});

test.skipIf(process.platform !== "linux")("finds the children of a process", async () => {
  const child = Bun.spawn(["sleep", "30"]);
  try {
    expect(processTree(process.pid)).toContain(child.pid);
  } finally {
    child.kill();
    await child.exited;
  }
});
