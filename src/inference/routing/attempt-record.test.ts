// A server counts as failing after five failures in a row, or ten seconds of failures, until an attempt works.
import { expect, test } from "bun:test";
import type { Fault } from "../../domain/usage/attempt-health.ts";
import { AttemptRecord } from "./attempt-record.ts";

const fault: Fault = { cause: "server_error", status: 500, message: "CUDA out of memory" };
const second = 1_000;

function recordWith(...timesMs: number[]): AttemptRecord {
  const record = new AttemptRecord();
  for (const at of timesMs) record.failed(fault, at);
  return record;
}

test("fails with the fifth failure in a row", () => {
  const record = recordWith(0, 1, 2, 3);
  expect(record.isFailing(4)).toBe(false);
  record.failed(fault, 5);
  expect(record.isFailing(5)).toBe(true);
});

test("fails ten seconds after the first of two failures in a row, and not after a single failure", () => {
  expect(recordWith(0, 3 * second).isFailing(10 * second - 1)).toBe(false);
  expect(recordWith(0, 3 * second).isFailing(10 * second)).toBe(true);
  expect(recordWith(0).isFailing(60 * second)).toBe(false);
});

test("knows the time of the last success for ten minutes", () => {
  const record = recordWith(0);
  expect(record.health(0, 1_000).workedAt).toBeNull();
  record.worked(5 * second);
  expect(record.health(604 * second, 1_604).workedAt).toBe(1_005);
  expect(record.health(605 * second, 1_605).workedAt).toBeNull();
});

test("fails ten seconds after a single failure if others came shortly before the last success", () => {
  const record = recordWith(0, 1);
  record.worked(2);
  record.failed(fault, 60 * second);
  expect(record.isFailing(69 * second)).toBe(false);
  expect(record.isFailing(70 * second)).toBe(true);
  expect(record.isFailing(200 * second)).toBe(true);
});

test("recovers with the first success, and counts failures anew", () => {
  const record = recordWith(0, 1, 2, 3, 4);
  record.worked(5);
  expect(record.isFailing(5)).toBe(false);
  expect(record.isProven).toBe(true);
  for (const at of [6, 7, 8, 9]) record.failed(fault, at);
  expect(record.isFailing(9)).toBe(false);
});

test("forgets a failing server that got no request for ten minutes", () => {
  const record = recordWith(0, 1, 2, 3, 4);
  expect(record.isFailing(599 * second)).toBe(true);
  expect(record.isFailing(601 * second)).toBe(false);
  expect(record.isProven).toBe(false);
});

test("counts the attempts of the last two minutes", () => {
  const record = recordWith(0, 1, 2);
  record.worked(3);
  for (let at = 60; at < 65; at++) record.failed(fault, at * second);
  expect(record.health(65 * second, 1_000)).toEqual({
    ...{ attempts: 9, failed: 8, isFailing: true, since: 995 },
    last: { ...fault, at: 999 },
    workedAt: 935,
  });
  expect(record.health(125 * second, 1_060)).toMatchObject({ attempts: 5, failed: 5 });
  expect(record.health(300 * second, 1_235)).toMatchObject({ attempts: 0, failed: 0, isFailing: true });
});

test("adds the attempts of another process with their order", () => {
  const [worker, primary] = [new AttemptRecord(), new AttemptRecord()];
  for (const at of [0, 1, 2]) worker.failed(fault, at);
  const first = worker.take();
  expect(first).toEqual({ worked: 0, failed: 3, failures: 3, last: fault });
  expect(worker.take()).toBeUndefined();
  if (first) primary.add(first, 10);
  worker.worked(11);
  for (const at of [12, 13]) worker.failed(fault, at);
  const next = worker.take();
  expect(next).toEqual({ worked: 1, failed: 2, failures: 2, last: fault });
  if (next) primary.add(next, 20);
  expect(primary.health(20, 1_000)).toMatchObject({ attempts: 6, failed: 5, isFailing: false });
  for (const at of [21, 22, 23]) primary.failed(fault, at);
  expect(primary.isFailing(23)).toBe(true);
  primary.add({ worked: 1, failed: 0, failures: 0, last: null }, 30);
  expect(primary.isFailing(30)).toBe(false);
});
