// Checks of used quotas: one report for each threshold, and repeated checks after failures.
import { expect, test } from "bun:test";
import type { LimitSet, Quota } from "../../domain/limits/limits.ts";
import type { Tidings } from "../../domain/notifications/notification.ts";
import { QuotaWatch } from "./quota-watch.ts";

const silent = { info() {}, warn() {}, error() {} };

function start() {
  const received: Tidings[] = [];
  const month = { start: 1_000, end: 2_000 };
  const state = { used: 0, isAway: false, isKept: true, asked: 0, start: undefined as number | undefined, month };
  const watch = new QuotaWatch({
    ...{ log: silent, everyMs: 1e9 },
    limits: {
      async usedInWindow({ window }) {
        state.asked++;
        if (state.isAway) throw new Error("away");
        const used = { requests: state.used, tokens: state.used, nanoUsd: state.used * 1e9 };
        const { start } = state;
        if (window === undefined) return { ...used, period: state.month };
        return { ...used, period: start === undefined ? undefined : { start, end: start + 60 } };
      },
    },
    teller: {
      async notify(tidings) {
        if (state.isKept) received.push(tidings);
        return state.isKept;
      },
    },
  });
  const use = (used: number, ...all: Quota[]) => {
    state.used = used;
    const [quotas, windows] = [all.filter(({ window }) => !window), all.filter(({ window }) => window)];
    const limits: LimitSet = { requests: [], tokens: [], quotas, windows };
    watch.used({ limits, account: { id: "acct_1" } as never });
    return watch.check();
  };
  return {
    received,
    state,
    watch,
    use,
    reached: () => received.map(({ data }) => (data as { threshold?: number }).threshold),
  };
}

const quota = (more: Partial<Quota> = {}): Quota => ({
  ...{ id: "key:key_1", owner: "key", ownerId: "key_1", environment: "live", tokens: 1_000, nanoUsd: null },
  ...more,
});

test("reports a quota threshold exactly at its token, only the highest of several, and once", async () => {
  const { use, reached, received } = start();
  await use(499, quota());
  expect(reached()).toEqual([]);
  await use(500, quota());
  await use(500, quota());
  await use(799, quota());
  expect(reached()).toEqual([50]);
  await use(2_000, quota());
  expect(reached()).toEqual([50, 100]);
  await use(2_000, quota({ tokens: 2_222 }));
  expect(reached()).toEqual([50, 100, 90]);
  expect(new Set(received.map(({ once }) => once)).size).toBe(3);
});

test("reports the shared quota of an organization to operators, and others to their account", async () => {
  const { use, received } = start();
  await use(500, quota(), quota({ id: "organization:org_1:live", owner: "organization", ownerId: "org_1" }));
  expect(received.map(({ accountId, data }) => [accountId, (data as { owner?: string }).owner])).toEqual([
    ["acct_1", "key"],
    [null, "organization"],
  ]);
});

test("reports tokens and USD of a quota separately, and none for missing or zero limits", async () => {
  const { use, received, state } = start();
  await use(5, quota({ tokens: null }), quota({ tokens: 0, nanoUsd: 0 }));
  expect(received).toEqual([]);
  await use(5, quota({ tokens: 10, nanoUsd: 6e9 }));
  expect(received.map(({ data }) => data)).toMatchObject([
    { unit: "tokens", limit: 10, used: 5, threshold: 50 },
    { unit: "USD", limit: 6, used: 5, threshold: 80 },
  ]);
  expect(state.asked).toBe(2);
});

test("reports a windowed quota once in each window with its span and models, and never between windows", async () => {
  const { use, received, state } = start();
  const window = { per: 60, kind: "rolling", seconds: 60 } as const;
  const models = { filter: { models: ["m*"] } };
  const perMinute = quota({ tokens: null, requests: 10, called: "app", window, ...models });
  await use(9, perMinute);
  expect(received).toEqual([]);
  for (const begun of [100, 100, 160]) {
    state.start = begun;
    await use(9, perMinute);
  }
  const data = { owner: "app", unit: "requests", limit: 10, used: 9, threshold: 90, per: 60, models: ["m*"] };
  expect(received.map((one) => one.data)).toMatchObject([
    { ...data, window: { starts_at: 100, ends_at: 160 } },
    { ...data, window: { starts_at: 160, ends_at: 220 } },
  ]);
});

test("reports quota thresholds of two consecutive months, each with its own dates", async () => {
  const { use, received, state } = start();
  await use(1_000, quota());
  state.month = { start: 2_000, end: 3_000 };
  await use(500, quota());
  expect(received.map(({ data }) => data)).toMatchObject([
    { threshold: 100, window: { starts_at: 1_000, ends_at: 2_000 } },
    { threshold: 50, window: { starts_at: 2_000, ends_at: 3_000 } },
  ]);
});

test("reports a rolling window once, even if its start is read differently while Redis is away", async () => {
  const { use, reached, state } = start();
  const perMinute = quota({ tokens: null, requests: 10, window: { per: 60, kind: "rolling", seconds: 60 } });
  for (const begun of [100, 99, 130, 101]) {
    state.start = begun;
    await use(9, perMinute);
  }
  await use(10, perMinute);
  state.start = 161;
  await use(9, perMinute);
  expect(reached()).toEqual([90, 100, 90]);
});

test("repeats a quota check or report that failed until it succeeds", async () => {
  const { use, reached, state, watch } = start();
  state.isAway = true;
  await use(900, quota());
  await watch.check();
  state.isAway = false;
  state.isKept = false;
  await watch.check();
  state.isKept = true;
  expect(reached()).toEqual([]);
  await watch.check();
  await watch.check();
  expect(reached()).toEqual([90]);
  expect(state.asked).toBe(4);
});

test("counts a key whose limits are recreated for each use once in a round, with its last amounts", async () => {
  const { watch, state, reached } = start();
  state.used = 600;
  const use = (name: string, tokens: number) => {
    const quotas = [quota({ id: `key:${name}`, tokens })];
    watch.used({ limits: { name, requests: [], tokens: [], quotas }, account: { id: "acct_1" } });
  };
  for (let n = 0; n < 20_000; n++) use("key_busy", 1_000_000);
  use("key_busy", 1_000);
  use("key_other", 750);
  await watch.check();
  expect(reached()).toEqual([50, 80]);
  expect(state.asked).toBe(2);
});
