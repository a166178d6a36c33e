// Housekeeping: every task has its turn each time, whatever becomes of another one, and none outlives the end.
import { expect, test } from "bun:test";
import { manualClock } from "../../tests/support/manual-clock.ts";
import { GatewayError } from "../base/errors.ts";
import type { LogFields } from "../base/log.ts";
import type { SeenTimes } from "../domain/usage/retention.ts";
import { DeletionClock } from "../policy/records/deletion-clock.ts";
import { Housekeeper } from "./housekeeper.ts";

const nowSeconds = 1_800_000_000;
const deletionClock = { nowSeconds: async () => nowSeconds };

function recordingLog() {
  const lines: { event: string; fields: LogFields | undefined }[] = [];
  const write = (event: string, fields?: LogFields) => void lines.push({ event, fields });
  return { lines, log: { info: write, warn: write, error: write } };
}

test("logs a failed task, retries it, and runs the other tasks", async () => {
  const { lines, log } = recordingLog();
  const calls: [string, number][] = [];
  const broken = async (at: number) => {
    calls.push(["broken", at]);
    throw new GatewayError("service_unavailable", "text", { detail: "database: SQLITE_BUSY" });
  };
  const fine = async (at: number) => void calls.push(["fine", at]);
  const housekeeper = new Housekeeper({ tasks: { broken, fine }, deletionClock, log });
  await housekeeper.sweep();
  await housekeeper.sweep();
  await housekeeper.close();
  const round: [string, number][] = [
    ["broken", nowSeconds],
    ["fine", nowSeconds],
  ];
  expect(calls).toEqual([...round, ...round]);
  const failed = { event: "housekeeping_failed", fields: { task: "broken", detail: "database: SQLITE_BUSY" } };
  expect(lines).toEqual([failed, failed]);
});

test("runs tasks periodically, one round at a time, and waits for a running round on close", async () => {
  const { log } = recordingLog();
  const step = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  let [running, most, ended] = [0, 0, 0];
  const slow = async () => {
    running++;
    most = Math.max(most, running);
    begun.resolve();
    await step.promise;
    running--;
    ended++;
  };
  const housekeeper = new Housekeeper({ tasks: { slow }, deletionClock, log, everyMs: 1 });
  await begun.promise;
  const rounds = [housekeeper.sweep(), housekeeper.sweep()];
  const closed = housekeeper.close();
  step.resolve();
  await Promise.all([...rounds, closed]);
  expect([most, ended, running]).toEqual([1, 1, 0]);
});

test("runs tasks with the trusted time when the clock jumps ahead by a year", async () => {
  const { lines, log } = recordingLog();
  const clock = manualClock(nowSeconds);
  let seen: SeenTimes | undefined;
  const store = {
    seenTimes: async () => seen,
    saveSeenTimes: async (times: SeenTimes) => {
      seen = times;
    },
  };
  const times: number[] = [];
  const housekeeper = new Housekeeper({
    tasks: { tokens: async (at) => void times.push(at) },
    deletionClock: new DeletionClock({ store, clock, log }),
    log,
  });
  for (const jump of [0, 365 * 86_400, -365 * 86_400]) {
    clock.jump(jump);
    await housekeeper.sweep();
  }
  await housekeeper.close();
  expect(times).toEqual([nowSeconds, nowSeconds, nowSeconds]);
  expect(lines.map(({ event }) => event)).toEqual(["clock_jumped"]);
});
