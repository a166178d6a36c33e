// Tests that refused requests are recorded up to a limit, written in the background, and never delay requests.
import { afterEach, expect, test } from "bun:test";
import { manualClock } from "../../../tests/support/manual-clock.ts";
import type { Log } from "../../base/log.ts";
import type { RefusedRequest } from "../../domain/usage/refused-request.ts";
import { RefusedRequests, type RefusedRequestsOptions } from "./refused-requests.ts";

const clock = manualClock();
const logged: string[] = [];
const log: Log = { info() {}, warn: (event) => void logged.push(event), error() {} };

let written: string[][] = [];
let isBroken = false;
const store = {
  async add(refused: readonly RefusedRequest[]): Promise<void> {
    if (isBroken) throw new Error("locked");
    written.push(refused.map(({ requestId }) => requestId));
  },
};

const opened: RefusedRequests[] = [];
afterEach(async () => {
  isBroken = false;
  for (const one of opened.splice(0)) await one.close();
  written = [];
  logged.length = 0;
});

function open(more: Partial<RefusedRequestsOptions> = {}): RefusedRequests {
  const refused = new RefusedRequests({ store, clock, log, flushMs: 1e6, ...more });
  opened.push(refused);
  return refused;
}

function refusal(requestId: string): RefusedRequest {
  return {
    ...{ requestId, at: 1, accountId: "acct_1", keyId: "key_1", appId: null, environment: "live" },
    ...{ operation: "chat", model: "m", stream: false, errorCode: "rate_limit_exceeded", message: "no" },
    durationMs: 1,
  };
}

/** Returns how many of `count` requests are admitted. */
function tries(refused: RefusedRequests, keyId: string, count: number, accountId = "acct_1"): number {
  let admitted = 0;
  for (let i = 0; i < count; i++) if (refused.admits(keyId, accountId)) admitted++;
  return admitted;
}

// hardening: O9
test("records a flooding key's refusals up to a bound, other keys' in full, and counts the rest", () => {
  const bounds = {
    ofKey: { atOnce: 10, everyMs: 60_000 },
    ofAccount: { atOnce: 1_000, everyMs: 1 },
    ofAll: { atOnce: 1_000, everyMs: 1 },
  };
  const refused = open({ bounds });
  expect(tries(refused, "key_1", 100_000)).toBe(10);
  expect(tries(refused, "key_2", 5)).toBe(5);
  expect(refused.figures.leftOut).toBe(99_990);
  clock.advance(180_000);
  expect(tries(refused, "key_1", 100)).toBe(3);
});

test("bounds the records of all keys together, not counting what exceeds a key's own bound", () => {
  const bounds = {
    ofKey: { atOnce: 10, everyMs: 60_000 },
    ofAccount: { atOnce: 25, everyMs: 60_000 },
    ofAll: { atOnce: 25, everyMs: 60_000 },
  };
  const refused = open({ bounds });
  expect(tries(refused, "key_1", 1_000)).toBe(10);
  expect(["key_2", "key_3", "key_4"].map((key) => tries(refused, key, 10))).toEqual([10, 5, 0]);
});

test("writes records together in order when they are read or at shutdown", async () => {
  const refused = open();
  for (const id of ["a", "b"]) refused.note(refusal(id));
  expect([written, refused.figures.pending]).toEqual([[], 2]);
  await refused.flush();
  expect([written, refused.figures.pending]).toEqual([[["a", "b"]], 0]);
  refused.note(refusal("c"));
  await refused.close();
  expect(written).toEqual([["a", "b"], ["c"]]);
});

// hardening: O9
test("holds a bounded number of records while the database fails, logs once, and writes them later", async () => {
  const refused = open();
  isBroken = true;
  for (let i = 0; i < 2_100; i++) refused.note(refusal(`req_${i}`));
  expect(refused.figures).toEqual({ pending: 2_000, leftOut: 0, lost: 100 });
  await refused.flush();
  await refused.flush();
  expect(logged).toEqual(["refused_requests_not_written"]);
  expect(refused.figures).toEqual({ pending: 2_000, leftOut: 0, lost: 100 });
  isBroken = false;
  await refused.flush();
  expect(refused.figures.pending).toBe(0);
  expect(written.flat()).toHaveLength(2_000);
  expect(written.flat()[0]).toBe("req_0");
  expect(Math.max(...written.map(({ length }) => length))).toBeLessThanOrEqual(100);
});

test("leaves room for other accounts beside an account whose keys are always refused", () => {
  const refused = open();
  for (let key = 0; key < 50; key++) tries(refused, `key_of_one_${key}`, 100, "acct_one");
  expect(tries(refused, "key_other", 100, "acct_other")).toBe(100);
});
