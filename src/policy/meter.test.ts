// Tests the accounting of one request: ledger, lease and price agree, once, however the request ends.
import { describe, expect, test } from "bun:test";
import { usageBegin as begin } from "../../tests/support/usage-begin.ts";
import { GatewayError } from "../base/errors.ts";
import type { StopLease } from "../domain/limits/limits.ts";
import type { LedgerEntry, TokenUsage, UsageEnd } from "../domain/usage/usage.ts";
import { Meter } from "./meter.ts";

/** Starts a meter, and records its calls of the ledger and the lease in order. */
function start(options: { reservedTokens?: number; closed?: boolean; begun?: Promise<void>; stop?: StopLease } = {}) {
  const received: unknown[] = [];
  let nowMs = 1_000;
  let asked = 0;
  let leased = true;
  const kept = Promise.resolve();
  const entry: LedgerEntry = {
    begun: options.begun ?? Promise.resolve(),
    progress: (usage, nanoUsd) => void received.push(["progress", usage.completionTokens, nanoUsd]),
    settle: (end) => {
      received.push(["ledger", end]);
      return kept;
    },
  };
  const create = () =>
    new Meter(
      {
        ledger: {
          begin(request) {
            if (options.closed) throw new GatewayError("service_unavailable", "closed");
            received.push(["begin", request]);
            return entry;
          },
        },
        clock: { nowSeconds: () => 5, monotonicMs: () => nowMs },
      },
      {
        lease: {
          extend: (tokens, nanoUsd) => void received.push(["extend", tokens, nanoUsd]),
          settle: (tokens, nanoUsd) => {
            if (!leased) return;
            leased = false;
            received.push(["lease", tokens, nanoUsd]);
          },
        },
        reservedTokens: options.reservedTokens ?? 100,
        stop: options.stop,
      },
      begin,
      { input: 1, output: 2 },
      { promptTokens: 1_000, completionTokens: 1_000 },
    );
  const usage = (completionTokens: number): TokenUsage => ({ promptTokens: 10, completionTokens, estimated: true });
  return {
    create,
    received,
    kept,
    usage,
    pass: (ms: number) => {
      nowMs += ms;
    },
    soFar: (completionTokens: number) => () => {
      asked++;
      return usage(completionTokens);
    },
    asked: () => asked,
  };
}

const end = { outcome: "completed", errorCode: null, upstream: "up", queueMs: 3 } as const;

describe("a meter", () => {
  test("records the usage and price of a request once at its end, in ledger and lease alike", () => {
    const run = start();
    const meter = run.create();
    run.pass(20);
    meter.delivered(1, run.soFar(1));
    run.pass(30);
    meter.settle({ ...end, usage: { promptTokens: 7, completionTokens: 9, estimated: false } });
    const booked: UsageEnd = {
      promptTokens: 7,
      completionTokens: 9,
      estimated: false,
      outcome: "completed",
      errorCode: null,
      nanoUsd: 7_000 + 18_000,
      capped: false,
      upstream: "up",
      durationMs: 50,
      firstTokenMs: 20,
      queueMs: 3,
    };
    expect(run.received).toEqual([
      ["begin", begin],
      ["progress", 1, 12_000],
      ["lease", 16, 25_000],
      ["ledger", booked],
    ]);
  });

  test("writes a checkpoint at the first piece, then at most one a second", () => {
    const run = start();
    const meter = run.create();
    for (let piece = 1; piece <= 30; piece++) {
      meter.delivered(piece, run.soFar(piece));
      run.pass(100);
    }
    const checkpoints = run.received.filter((entry) => (entry as string[])[0] === "progress");
    expect(checkpoints.map((entry) => (entry as number[])[1])).toEqual([1, 11, 21]);
    expect(run.asked()).toBe(3);
  });

  test("extends the reservation of a stream that outgrows it, with a margin", () => {
    const run = start({ reservedTokens: 10 });
    const meter = run.create();
    for (let tokens = 1; tokens <= 40; tokens++) meter.delivered(tokens, run.soFar(tokens - 10));
    const extensions = run.received.filter((entry) => (entry as string[])[0] === "extend") as [
      string,
      number,
      number,
    ][];
    expect(extensions.length).toBeLessThan(8);
    expect(extensions.length).toBeGreaterThan(1);
    expect(extensions.at(-1)?.[1]).toBeGreaterThanOrEqual(40);
  });

  test("records the same when told only of due pieces as when told of each", () => {
    for (let seed = 1; seed <= 50; seed++) {
      const [each, due] = [start({ reservedTokens: 3 * seed }), start({ reservedTokens: 3 * seed })];
      const [meterOfEach, meterWhenDue] = [each.create(), due.create()];
      let calls = 0;
      for (let [tokens, nowMs] = [1, 1_000]; tokens < 1_900; tokens += 1 + ((tokens * seed) % 7)) {
        meterOfEach.delivered(tokens, each.soFar(tokens));
        if (nowMs >= meterWhenDue.dueMs || tokens > meterWhenDue.dueTokens) {
          meterWhenDue.delivered(tokens, due.soFar(tokens));
          calls++;
        }
        const ms = (tokens * 31 * seed) % 90;
        each.pass(ms);
        due.pass(ms);
        nowMs += ms;
      }
      expect(due.received).toEqual(each.received);
      expect(due.asked()).toBe(each.asked());
      expect(calls).toBeLessThan(400);
    }
  });

  test("returns the reservation and passes on the reason if the ledger is closed", () => {
    const run = start({ closed: true });
    expect(run.create).toThrow("closed");
    expect(run.received).toEqual([["lease", 0, 0]]);
  });

  test("returns the reservation if the start of the request cannot be written", async () => {
    const begun = Promise.withResolvers<void>();
    const run = start({ begun: begun.promise });
    const meter = run.create();
    begun.reject(new GatewayError("service_unavailable", "full"));
    await expect(meter.begun).rejects.toThrow("full");
    meter.settle({ ...end, outcome: "failed", usage: { promptTokens: 0, completionTokens: 0, estimated: true } });
    expect(run.received.filter((entry) => (entry as string[])[0] === "lease")).toEqual([["lease", 0, 0]]);
  });

  test("settles the reservation once if a request ends before its start is written", async () => {
    const begun = Promise.withResolvers<void>();
    const run = start({ begun: begun.promise });
    const meter = run.create();
    meter.settle({ ...end, outcome: "cancelled", usage: run.usage(0) });
    begun.reject(new GatewayError("service_unavailable", "full"));
    await expect(meter.begun).rejects.toThrow("full");
    expect(run.received.filter((entry) => (entry as string[])[0] === "lease")).toEqual([["lease", 10, 10_000]]);
  });

  test("waits for the ledger before the end counts as recorded", () => {
    const run = start();
    expect(run.create().settle({ ...end, usage: run.usage(1) }).kept).toBe(run.kept);
  });

  test("caps and flags a usage report above all bounds", () => {
    const run = start();
    const { end: booked } = run.create().settle({
      ...end,
      usage: { promptTokens: 5, completionTokens: 1_000_000, estimated: false },
    });
    expect(booked.completionTokens).toBe(1_000);
    expect(run.received.at(-1)).toMatchObject(["ledger", { completionTokens: 1_000, capped: true }]);
    expect(run.received.at(-2)).toEqual(["lease", 1_005, 5_000 + 2_000_000]);
  });

  test("caps a usage report above all bounds in mid-stream, in checkpoint and lease alike", () => {
    const run = start();
    const meter = run.create();
    const milliard = { promptTokens: 1e9, completionTokens: 1e9, estimated: false };
    meter.delivered(101, () => ({ ...milliard, promptTokens: 10 }));
    expect(run.received.slice(1)).toEqual([
      ["progress", 1_000, 10_000 + 2_000_000],
      ["extend", Math.ceil(1_010 * 1.25), 2_010_000 * 1.25],
    ]);
    run.pass(1_000);
    meter.delivered(1_300, () => milliard);
    expect(run.received.slice(3)).toEqual([
      ["progress", 1_000, 1_000_000 + 2_000_000],
      ["extend", 2_000, 3_000_000 * 1.25],
    ]);
  });

  test("extends the lease by delivered tokens above the request's bounds, but not at each piece", () => {
    const run = start();
    const meter = run.create();
    meter.delivered(5_000, run.soFar(4_990));
    expect(run.received.at(-1)).toMatchObject(["extend", 6_250, expect.any(Number)]);
    const before = [run.received.length, run.asked()];
    for (let i = 0; i < 10; i++) meter.delivered(6_250 - i, run.soFar(4_990));
    expect([run.received.length, run.asked()]).toEqual(before);
  });

  test("records tokens above the request's bounds if the delivered text proves them", () => {
    const run = start();
    const usage = { promptTokens: 5, completionTokens: 5_000, estimated: false, pastLimit: true };
    const { end: booked } = run.create().settle({ ...end, usage });
    expect(booked).toMatchObject({ completionTokens: 5_000, estimated: false, capped: false });
    expect(run.received.at(-2)).toEqual(["lease", 5_005, 5_000 + 10_000_000]);
  });

  test("prices and bounds by the model that serves the request instead of the requested one", () => {
    const run = start();
    const meter = run.create();
    meter.servedBy({ input: 10, output: 20 }, { promptTokens: 50, completionTokens: 60 });
    meter.delivered(109, run.soFar(99));
    expect(run.received.at(-1)).toEqual(["extend", 110, Math.ceil((10 * 10_000 + 60 * 20_000) * 1.25)]);
    const { end: booked } = meter.settle({
      ...end,
      usage: { promptTokens: 70, completionTokens: 80, estimated: false },
    });
    expect(booked).toMatchObject({ promptTokens: 50, completionTokens: 60, capped: true, nanoUsd: 1_700_000 });
  });

  test("caps each part of a usage figure at the figure", () => {
    const run = start();
    const parts = { cachedTokens: 99, cacheWriteTokens: 9, reasoningTokens: 77 };
    const usage = { promptTokens: 5, completionTokens: 6, estimated: false, parts };
    expect(run.create().settle({ ...end, usage }).end.parts).toMatchObject({
      ...{ cachedTokens: 5, cacheWriteTokens: 0, reasoningTokens: 6 },
    });
  });

  test.each([
    ["understated", { understated: true }],
    ["overstated", { overstated: true }],
  ])("flags a usage report that was %s", (_, doubt) => {
    const usage = { promptTokens: 5, completionTokens: 6, estimated: true };
    expect(
      start()
        .create()
        .settle({ ...end, usage }).end.capped,
    ).toBe(false);
    expect(
      start()
        .create()
        .settle({ ...end, usage: { ...usage, ...doubt } }).end.capped,
    ).toBe(true);
  });
});

test("records no time to first token for a cached answer", () => {
  const run = start();
  const meter = run.create();
  meter.replays(0.5);
  run.pass(20);
  meter.delivered(1, run.soFar(1));
  expect(meter.settle({ ...end, usage: run.usage(9) }).end.firstTokenMs).toBeNull();
});

test("stops an answer by the price of the model that serves it", () => {
  const lease: StopLease = {
    ...{ tokens: 1_000, nanoUsd: 30_000, mostTokens: 1_000, mostNanoUsd: 30_000, tightest: undefined },
    grow() {},
  };
  const meter = start({ stop: lease }).create();
  const usage: TokenUsage = { promptTokens: 10, completionTokens: 9, estimated: true };
  expect(meter.checkStop(usage)).toBe("goes_on");
  // The prompt costs 20,000 nano-USD, and each token of the answer 10,000.
  meter.servedBy({ input: 2, output: 10 }, { promptTokens: 1_000, completionTokens: 1_000 });
  expect(meter.checkStop(usage)).toBe("spent");
});
