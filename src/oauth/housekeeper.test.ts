// Housekeeping: every task has its turn each time, whatever becomes of another one, and none outlives the end.
import { expect, test } from "bun:test";
import { GatewayError } from "../domain/errors.ts";
import type { LogFields } from "../domain/log.ts";
import { Housekeeper } from "./housekeeper.ts";

const clock = { nowSeconds: () => 1_800_000_000, monotonicMs: () => 0 };

function recordingLog() {
  const lines: { event: string; fields: LogFields | undefined }[] = [];
  const write = (event: string, fields?: LogFields) => void lines.push({ event, fields });
  return { lines, log: { info: write, warn: write, error: write } };
}

test("a task that fails is told of and tried again, and keeps no other from its turn", async () => {
  const { lines, log } = recordingLog();
  const calls: [string, number][] = [];
  const broken = async (nowSeconds: number) => {
    calls.push(["broken", nowSeconds]);
    throw new GatewayError("service_unavailable", "text", { detail: "database: SQLITE_BUSY" });
  };
  const fine = async (nowSeconds: number) => void calls.push(["fine", nowSeconds]);
  const housekeeper = new Housekeeper({ tasks: { broken, fine }, clock, log });
  await housekeeper.sweep();
  await housekeeper.sweep();
  await housekeeper.close();
  const round: [string, number][] = [
    ["broken", clock.nowSeconds()],
    ["fine", clock.nowSeconds()],
  ];
  expect(calls).toEqual([...round, ...round]);
  const failed = { event: "housekeeping_failed", fields: { task: "broken", detail: "database: SQLITE_BUSY" } };
  expect(lines).toEqual([failed, failed]);
});

test("it comes by itself, one round at a time, and closing waits for the one that is under way", async () => {
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
  const housekeeper = new Housekeeper({ tasks: { slow }, clock, log, everyMs: 1 });
  await begun.promise;
  const rounds = [housekeeper.sweep(), housekeeper.sweep()];
  const closed = housekeeper.close();
  step.resolve();
  await Promise.all([...rounds, closed]);
  expect([most, ended, running]).toEqual([1, 1, 0]);
});
