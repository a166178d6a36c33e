// Shared limits when the server is away, slow, emptied or back, and when a replica dies: bounded excess, nothing lost, nothing held for good.
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "../../../tests/support/headrace.ts";
import {
  account,
  granted,
  ledgerWith,
  none,
  quotaOf,
  refusal,
  reserve,
} from "../../../tests/support/limits-contract.ts";
import { withinMs } from "../../../tests/support/long.ts";
import { manualClock } from "../../../tests/support/manual-clock.ts";
import { type RedisServer, startRedis } from "../../../tests/support/redis.ts";
import { windowQuota, withWindows } from "../../../tests/support/windows-contract.ts";
import { systemClock } from "../../base/clock.ts";
import type { LimitSet } from "../../domain/limits/limits.ts";
import { SharedLimits, type SharedLimitsOptions } from "./shared-limits.ts";

const redis = await startRedis();
const opened: SharedLimits[] = [];
afterAll(async () => {
  await Promise.all(opened.map((limits) => limits.close()));
  await redis[Symbol.asyncDispose]();
});

const silent = { info() {}, warn() {}, error() {} };
let worlds = 0;
const world = () => `outage${++worlds}:`;

async function open(prefix: string, options: Partial<SharedLimitsOptions> = {}): Promise<SharedLimits> {
  const limits = await SharedLimits.open({
    ...{ url: redis.url, clock: systemClock, ledger: ledgerWith(), log: silent, prefix, retryMs: 50 },
    directory: mkdtempSync(join(tmpdir(), "headrace-limits-")),
    ...options,
  });
  opened.push(limits);
  return limits;
}

const isOk = (limits: SharedLimits) => limits.state().status === "ok";

/** A day's window gives back next to nothing while a test runs. */
const daily = (limit: number): LimitSet => ({ ...none, requests: [{ ...account, limit, windowSeconds: 86_400 }] });

async function admittedOf(limits: SharedLimits, set: LimitSet, count: number): Promise<number> {
  const answers = await Promise.all(Array.from({ length: count }, () => limits.admit(set, reserve(0))));
  return answers.filter((answer) => "lease" in answer).length;
}

/** Answers nothing for as long as `work` takes, which begins once all have noticed. */
async function whilePaused(server: RedisServer, replicas: readonly SharedLimits[], work: () => Promise<void>) {
  server.pause();
  try {
    for (const replica of replicas) await replica.peek({ ...none, requests: [{ ...account, id: "another" }] });
    for (const replica of replicas)
      expect(replica.state()).toMatchObject({ status: "degraded", replicas: replicas.length });
    await work();
  } finally {
    server.resume();
  }
  const startMs = performance.now();
  await until(() => replicas.every(isOk), "all are back");
  expect(performance.now() - startMs).toBeLessThan(withinMs(5_000));
}

/** Three replicas, of which each knows the others from its first heartbeat on. */
async function three(): Promise<[SharedLimits, SharedLimits, SharedLimits]> {
  const prefix = world();
  const replicas = [await open(prefix), await open(prefix), await open(prefix)] as const;
  for (const replica of replicas) await replica.beat();
  return [...replicas];
}

// hardening: L4
test("continues by each replica's share when Redis hangs, waits once, and reports admissions later", async () => {
  const replicas = await three();
  const [one, two] = replicas;
  const set = daily(30);
  expect(await admittedOf(one, set, 6)).toBe(6);
  await whilePaused(redis, replicas, async () => {
    const startMs = performance.now();
    // A share of 10 each, 2 of which this one has seen taken; and nobody has to wait for an answer any more.
    expect(await admittedOf(one, set, 100)).toBe(8);
    expect(await admittedOf(two, set, 4)).toBe(4);
    expect(performance.now() - startMs).toBeLessThan(withinMs(200));
    expect((await one.peek(set)).requests).toMatchObject({ limit: 10, remaining: 0 });
  });
  // 6 before, 8 and 4 meanwhile.
  expect((await one.peek(set)).requests).toMatchObject({ limit: 30, remaining: 12 });
});

// hardening: L4
test("admits at most one more limit in an outage during a burst, and owes the rest afterwards", async () => {
  const replicas = await three();
  const [one, two, late] = replicas;
  const set = daily(30);
  // Two of the replicas have seen how much is left, at different moments; the third has seen nothing.
  expect(await admittedOf(one, set, 12)).toBe(12);
  expect(await admittedOf(two, set, 12)).toBe(12);
  let meanwhile = 0;
  await whilePaused(redis, replicas, async () => {
    // 12 of 30 gone: 4 of 10; 24 of 30: 8 of 10.
    expect(await admittedOf(one, set, 20)).toBe(6);
    expect(await admittedOf(two, set, 20)).toBe(2);
    expect(await admittedOf(late, set, 20)).toBe(10);
    meanwhile = 18;
  });
  expect(meanwhile).toBeLessThanOrEqual(30);
  // 24 and 18 are more than 30: requests never owe, but there is no further burst either.
  expect(await admittedOf(one, set, 50)).toBe(0);
});

test("admits one request of a small limit at each replica, and owes the excess of a large one", async () => {
  const replicas = await three();
  const [one] = replicas;
  const tokens: LimitSet = { ...none, tokens: [{ ...account, limit: 900, windowSeconds: 86_400 }] };
  await whilePaused(redis, replicas, async () => {
    expect(await admittedOf(one, daily(2), 10)).toBe(1);
    expect((await granted(one.admit(tokens, reserve(700)))).reservedTokens).toBe(700);
    expect((await refusal(one.admit(tokens, reserve(1)))).code).toBe("rate_limit_exceeded");
    expect((await refusal(one.admit(tokens, reserve(901)))).message).toContain("more than the rate limit");
  });
  expect((await one.peek(tokens)).tokens?.remaining).toBe(200);
});

test("decides requests that were pending when Redis hung in order", async () => {
  const limits = await open(world());
  const set = daily(3);
  redis.pause();
  try {
    const answers = await Promise.all(Array.from({ length: 5 }, () => limits.admit(set, reserve(0))));
    expect(answers.map((answer) => "lease" in answer)).toEqual([true, true, true, false, false]);
  } finally {
    redis.resume();
  }
  await until(() => isOk(limits), "it is back");
});

test("neither loses nor doubles requests that were pending when Redis hung", async () => {
  const limits = await open(world());
  const quota = quotaOf(1_000);
  const set = { ...none, quotas: [quota] };
  const before = await granted(limits.admit(set, reserve(100)));
  redis.pause();
  // Sent, and answered by this process: what the server finds later is not another one.
  const during = await granted(limits.admit(set, reserve(400)));
  before.lease.settle(60, 0);
  redis.resume();
  await until(() => isOk(limits), "it is back");
  expect(await limits.used(quota)).toEqual({ tokens: 60, nanoUsd: 0 });
  // 60 used, 400 held.
  await until(async () => "lease" in (await limits.admit(set, reserve(540))), "the rest is there");
  expect((await refusal(limits.admit(set, reserve(1)))).message).toContain("940 tokens are set aside");
  during.lease.settle(30, 0);
  expect(await limits.used(quota)).toEqual({ tokens: 90, nanoUsd: 0 });
});

test("decides requests that waited for the ledger in Redis once it is back", async () => {
  const ledger = ledgerWith();
  const limits = await open(world(), { ledger });
  const quota = quotaOf(1_000);
  const set = { ...daily(30), quotas: [quota] };
  const gate = Promise.withResolvers<void>();
  ledger.gate = gate.promise;
  redis.pause();
  await limits.peek(daily(30));
  expect(isOk(limits)).toBe(false);
  const waiting = Array.from({ length: 3 }, () => limits.admit(set, reserve(300)));
  redis.resume();
  await until(() => isOk(limits), "it is back");
  gate.resolve();
  const { lease } = await granted(waiting[0] as (typeof waiting)[0]);
  await Promise.all(waiting);
  expect((await limits.peek(daily(30))).requests?.remaining).toBe(27);
  expect((await refusal(limits.admit(set, reserve(101)))).message).toContain("900 tokens are set aside");
  lease.settle(50, 0);
  expect(await limits.used(quota)).toEqual({ tokens: 50, nanoUsd: 0 });
});

test("loses and doubles nothing when connections break under load", async () => {
  const prefix = world();
  const limits = await open(prefix, { deadlineMs: 5_000 });
  const quota = quotaOf(1_000_000_000);
  const set = { ...none, tokens: [{ ...account, limit: 1_000_000_000 }], quotas: [quota] };
  await granted(limits.admit(set, reserve(1)));
  let used = 0;
  let isOver = false;
  const clients = Array.from({ length: 30 }, async (_, client) => {
    for (let round = 0; !isOver; round++) {
      const { lease } = await granted(limits.admit(set, reserve(100)));
      await Bun.sleep((client + round) % 4);
      lease.extend(150, 0);
      lease.settle(7 + (round % 200), 0);
      used += 7 + (round % 200);
    }
  });
  for (let cut = 0; cut < 8; cut++) {
    await until(() => isOk(limits), "it is there");
    await Bun.sleep(60);
    await redis.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
  }
  isOver = true;
  await Promise.all(clients);
  await until(() => isOk(limits), "it is there");
  await until(async () => (await limits.used(quota)).tokens === used, "all of it is counted");
  // The first one is open still: 1 token; nothing else is held.
  const leases = async () =>
    ((await redis.command("HKEYS", await leasesKey(prefix))) as string[]).filter((id) => /^\d/.test(id));
  await until(async () => (await leases()).length === 1, "nothing is left behind");
  expect((await refusal(limits.admit(set, reserve(1_000_000_000 - used)))).message).toContain("1 tokens are set aside");
});

async function leasesKey(prefix: string): Promise<string> {
  const [key = ""] = (await redis.command("KEYS", `${prefix}leases:*`)) as string[];
  return key;
}

test("resets limits, reads quotas from the ledger and restores reservations when Redis returns empty", async () => {
  const ledger = ledgerWith({ tokens: 100, nanoUsd: 0 });
  const server = await startRedis();
  try {
    const limits = await open(world(), { url: server.url, ledger });
    const quota = quotaOf(1_000);
    const set = { ...daily(10), quotas: [quota] };
    const { lease } = await granted(limits.admit(set, reserve(500)));
    expect(await admittedOf(limits, daily(10), 20)).toBe(9);
    await server.stop();
    await until(() => !isOk(limits), "it is missed");
    expect(await admittedOf(limits, daily(10), 20)).toBe(0);
    ledger.totals.tokens = 250;
    await server.start();
    await until(() => isOk(limits), "it is back");
    expect(await limits.used(quota)).toEqual({ tokens: 250, nanoUsd: 0 });
    // 250 used, 500 held.
    expect((await refusal(limits.admit({ ...none, quotas: [quota] }, reserve(251)))).message).toContain("500 tokens");
    lease.settle(40, 0);
    expect(await limits.used(quota)).toEqual({ tokens: 290, nanoUsd: 0 });
    // Requests that this process knew of were not granted again.
    expect(await admittedOf(limits, daily(10), 20)).toBe(0);
  } finally {
    await server[Symbol.asyncDispose]();
  }
});

test("notices FLUSHALL on a live connection at the next request", async () => {
  const server = await startRedis();
  try {
    const ledger = ledgerWith();
    const limits = await open(world(), { url: server.url, ledger });
    const quota = quotaOf(1_000);
    const { lease } = await granted(limits.admit({ ...none, quotas: [quota] }, reserve(600)));
    await server.flush();
    expect((await refusal(limits.admit({ ...none, quotas: [quota] }, reserve(401)))).message).toContain("600 tokens");
    lease.settle(600, 0);
    expect(await limits.used(quota)).toEqual({ tokens: 600, nanoUsd: 0 });
    expect(ledger.reads).toHaveLength(2);
  } finally {
    await server[Symbol.asyncDispose]();
  }
});

// hardening: L4
test.each(["the same process", "another process", "a process beside another one"])(
  "reads quotas from the ledger again if Redis returns with an older copy: %s",
  async (who) => {
    const directory = mkdtempSync(join(tmpdir(), "headrace-redis-"));
    const server = await startRedis(directory);
    try {
      const ledger = ledgerWith();
      const prefix = world();
      const limits = await open(prefix, { url: server.url, ledger });
      const quota = quotaOf(1_000);
      const rolling = windowQuota({ unit: "tokens", amount: 1_000, per: "day", window: "rolling" });
      const set = { ...none, quotas: [quota], windows: [rolling] };
      const use = async (tokens: number) => {
        (await granted(limits.admit(set, reserve(tokens)))).lease.settle(tokens, 0);
        ledger.totals.tokens += tokens;
        await limits.used(quota);
      };
      await use(100);
      await server.command("SAVE");
      await use(700);
      const beside =
        who === "a process beside another one" ? await open(prefix, { url: server.url, ledger }) : undefined;
      await server.stop();
      await until(() => !isOk(limits), "it is away");
      if (who === "another process") await limits.close();
      await server.start();
      const asked = who === "the same process" ? limits : (beside ?? (await open(prefix, { url: server.url, ledger })));
      await until(() => isOk(asked), "it is back");
      expect((await asked.used(quota)).tokens).toBe(800);
      expect((await asked.used(rolling)).tokens).toBe(800);
      expect((await refusal(asked.admit(set, reserve(201)))).code).toBe("insufficient_quota");
    } finally {
      await server[Symbol.asyncDispose]();
      rmSync(directory, { recursive: true, force: true });
    }
  },
);

test.each([
  ["has no SCAN", ["--rename-command", "SCAN", ""]],
  ["forbids SCAN", ["--user", "default", "on", "nopass", "~*", "&*", "+@all", "-scan"]],
])("counts in a Redis that %s, and logs once that quotas cannot be listed", async (_, settings) => {
  const server = await startRedis(tmpdir(), settings);
  try {
    const logged: string[] = [];
    const log = { ...silent, warn: (event: string) => void logged.push(event) };
    const prefix = world();
    const limits = await open(prefix, { url: server.url, log });
    expect(isOk(limits)).toBe(true);
    await server.stop();
    await until(() => !isOk(limits), "it is away");
    await server.start();
    await until(() => isOk(limits), "it is back");
    expect(await admittedOf(limits, daily(10), 20)).toBe(10);
    expect(logged.filter((event) => event === "redis_quotas_unlisted")).toHaveLength(1);
    expect(await server.command("GET", `${prefix}run`)).toBeNull();
  } finally {
    await server[Symbol.asyncDispose]();
  }
});

test("starts with the share known to the database while Redis is away, and joins later", async () => {
  const server = await startRedis();
  await server.stop();
  try {
    const limits = await open(world(), { url: server.url, countReplicas: () => 4 });
    expect(limits.state()).toMatchObject({ status: "degraded", replicas: 4 });
    expect(await admittedOf(limits, daily(40), 30)).toBe(10);
    await server.start();
    await until(() => isOk(limits), "it is there");
    expect((await limits.peek(daily(40))).requests?.remaining).toBe(30);
  } finally {
    await server[Symbol.asyncDispose]();
  }
});

test("continues quotas from their last state and from the ledger, which other replicas write too", async () => {
  const server = await startRedis();
  try {
    const clock = manualClock();
    const ledger = ledgerWith({ tokens: 100, nanoUsd: 0 });
    const limits = await open(world(), { url: server.url, clock, ledger });
    const quota = quotaOf(1_000);
    const set = { ...none, quotas: [quota] };
    (await granted(limits.admit(set, reserve(10)))).lease.settle(10, 0);
    (await granted(limits.admit(set, reserve(10)))).lease.settle(10, 0);
    await server.stop();
    await until(() => !isOk(limits), "it is missed");
    // Seen were 110 used and 10 held; it reads the ledger beside that.
    expect((await refusal(limits.admit(set, reserve(881)))).message).toContain("120 tokens of 1,000 tokens are used");
    ledger.totals.tokens = 900;
    clock.advance(10_001);
    await limits.admit(set, reserve(1));
    await until(async () => "refusal" in (await limits.admit(set, reserve(100))), "the new figure counts");
    ledger.totals.tokens = 905;
    await server.start();
    await until(() => isOk(limits), "it is back");
    expect((await limits.used(quota)).tokens).toBe(905);
  } finally {
    await server[Symbol.asyncDispose]();
  }
});

// hardening: F32
test("admits little more than a quota's remainder across replicas without Redis", async () => {
  const server = await startRedis();
  try {
    const prefix = world();
    const clock = manualClock();
    const ledger = ledgerWith({ tokens: 100, nanoUsd: 0 });
    const quota = quotaOf(1_000);
    const set = { ...none, quotas: [quota] };
    const options = { url: server.url, clock, ledger };
    const replicas = [await open(prefix, options), await open(prefix, options), await open(prefix, options)];
    for (const replica of replicas) await replica.beat();
    const [one] = replicas as [SharedLimits, ...SharedLimits[]];
    (await granted(one.admit(set, reserve(10)))).lease.settle(10, 0);
    ledger.totals.tokens += 10;
    await server.stop();
    await until(() => !replicas.some(isOk), "it is missed by all");
    const booked = ledger.totals.tokens;
    let admitted = 0;
    for (const replica of replicas) {
      const asked = await Promise.all(Array.from({ length: 100 }, () => replica.admit(set, reserve(20))));
      for (const answer of asked) if ("lease" in answer) admitted += 20;
      expect(asked.filter((answer) => "refusal" in answer).length).toBeGreaterThan(0);
    }
    expect(booked + admitted).toBeLessThanOrEqual(1_000);
    expect(booked + admitted).toBeGreaterThan(1_000 - 3 * 20 - 10);
    // Amounts that the others have not taken are shared out again: here, where nobody else settles anything, what is
    // left of it.
    clock.advance(1_001);
    await granted(one.admit(set, reserve(1)));
  } finally {
    await server[Symbol.asyncDispose]();
  }
});

// hardening: F1
test("drops a dead replica's reservations after 30 s, and restores those of a paused one", async () => {
  const prefix = world();
  const clock = manualClock();
  const time = { micros: () => clock.monotonicMs() * 1000, seconds: () => clock.nowSeconds() };
  const patient = { clock, time, deadlineMs: 5_000 };
  const sleeper = await open(prefix, patient);
  const quota = quotaOf(1_000);
  const set = { ...none, tokens: [{ ...account, limit: 1_000, windowSeconds: 600 }], quotas: [quota] };
  const { lease } = await granted(sleeper.admit(set, reserve(900)));
  clock.advance(29_000);
  const other = await open(prefix, patient);
  const ofQuota = { ...none, quotas: [quota] };
  expect((await refusal(other.admit(ofQuota, reserve(101)))).message).toContain("900 tokens are set aside");
  clock.advance(2_000);
  await other.beat();
  await granted(other.admit(ofQuota, reserve(1_000)));
  expect(other.state()).toEqual({ status: "ok", replicas: 1 });
  // It wakes up: its bucket still knows the hold, its quota counts what it used.
  lease.settle(300, 0);
  expect((await sleeper.peek(set)).tokens?.remaining).toBe(Math.min(1_000, 700 + Math.floor(31_000 / 600)));
  expect((await sleeper.used(quota)).tokens).toBe(300);
  await sleeper.beat();
  await other.beat();
  expect(other.state()).toEqual({ status: "ok", replicas: 2 });
});

// hardening: F1
test("keeps the reservation of a long stream on a live replica", async () => {
  const prefix = world();
  const clock = manualClock();
  const time = { micros: () => clock.monotonicMs() * 1000, seconds: () => clock.nowSeconds() };
  const [one, two] = [await open(prefix, { clock, time }), await open(prefix, { clock, time })];
  const set = { ...none, quotas: [quotaOf(1_000)] };
  await granted(one.admit(set, reserve(900)));
  for (let minute = 0; minute < 10; minute++) {
    for (let beat = 0; beat < 6; beat++) {
      clock.advance(10_000);
      await Promise.all([one.beat(), two.beat()]);
    }
    expect((await refusal(two.admit(set, reserve(101)))).code).toBe("insufficient_quota");
  }
});

test("reads forgotten quotas from the ledger again and keeps reservations", async () => {
  const ledger = ledgerWith({ tokens: 100, nanoUsd: 0 });
  const limits = await open(world(), { ledger });
  const quota = quotaOf(1_000);
  const set = { ...none, quotas: [quota] };
  await granted(limits.admit(set, reserve(200)));
  ledger.totals.tokens = 650;
  limits.forgetQuotas([quota]);
  expect((await refusal(limits.admit(set, reserve(151)))).message).toContain("650 tokens of 1,000 tokens are used in");
  await granted(limits.admit(set, reserve(150)));
});

for (const quota of [quotaOf(1_000), windowQuota({ unit: "tokens", amount: 1_000, per: "5h", window: "rolling" })]) {
  const kind = quota.window ? "window" : "month";
  const set = quota.window ? withWindows(quota) : { ...none, quotas: [quota] };
  const use = async (limits: SharedLimits, tokens: number) =>
    (await granted(limits.admit(set, reserve(tokens)))).lease.settle(tokens, 0);

  test(`does not lose a replica's usage of a ${kind} that another replica had read from the ledger already`, async () => {
    const server = await startRedis();
    try {
      const [prefix, url] = [world(), server.url];
      // What the late one has settled is not in the database yet.
      const early = await open(prefix, { url });
      const late = await open(prefix, { url, retryMs: 3_000 });
      for (const replica of [early, late]) await replica.beat();
      await server.stop();
      await until(() => !isOk(early) && !isOk(late), "it is missed");
      await server.start();
      // Just before the other one reads the ledger: what was settled longer ago is taken to be in the database.
      await use(late, 40);
      await until(() => isOk(early), "it is back for one");
      await use(early, 5);
      expect((await early.usedInWindow(quota)).tokens).toBe(5);
      await use(late, 30);
      expect(isOk(late)).toBe(false);
      await until(() => isOk(late), "it is back for both");
      for (const replica of [early, late]) expect((await replica.usedInWindow(quota)).tokens).toBe(75);
    } finally {
      await server[Symbol.asyncDispose]();
    }
  });

  test(`counts what replicas settle of a ${kind} during another's read, stored or not`, async () => {
    const prefix = world();
    const ledger = ledgerWith();
    const [reader, other] = [await open(prefix, { ledger }), await open(prefix)];
    for (const replica of [reader, other]) await replica.beat();
    await use(other, 7);
    const running = await granted(other.admit(set, reserve(20)));
    reader.forgetQuotas([quota]);
    // The other one writes what it had settled before a moment later.
    setTimeout(() => {
      ledger.totals = { ...ledger.totals, tokens: 7, requests: 1, firstAt: systemClock.nowSeconds() };
    }, 200);
    const reading = reader.usedInWindow(quota);
    await reader.beat();
    running.lease.settle(13, 0);
    expect((await reading).tokens).toBe(20);
    await use(other, 1);
    expect(await reader.usedInWindow(quota)).toMatchObject({ tokens: 21 });
  });
}

test("takes the month from Redis, whatever the gateway's wall clock says", async () => {
  const ledger = ledgerWith();
  const clock = { ...systemClock, nowSeconds: () => 86_400 * 400 };
  const limits = await open(world(), { ledger, clock });
  await limits.used(quotaOf(1_000));
  const now = new Date();
  expect(ledger.reads[0]?.since).toBe(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 1) / 1000);
});

test("lets all its keys expire, and removes the replica at shutdown", async () => {
  const prefix = world();
  const limits = await open(prefix);
  const set = { ...daily(10), quotas: [quotaOf(100)] };
  (await granted(limits.admit(set, reserve(1)))).lease.settle(1, 0);
  await limits.close();
  const keys = (await redis.command("KEYS", `${prefix}*`)) as string[];
  for (const key of keys) {
    if (key === `${prefix}born` || key === `${prefix}run`) continue;
    expect({ key, ms: (await redis.command("PTTL", key)) as number }).toEqual({ key, ms: expect.any(Number) });
    expect((await redis.command("PTTL", key)) as number).toBeWithin(1, 86_400_000);
  }
  expect(keys.toSorted()).toEqual([
    `${prefix}born`,
    expect.stringContaining("quota:"),
    `${prefix}requests:${account.id}`,
    `${prefix}run`,
  ]);
});

test("reports a wrong password or version in the state, never with the URL", async () => {
  const logged: string[] = [];
  const log = { ...silent, warn: (event: string, fields?: object) => logged.push(event + JSON.stringify(fields)) };
  const url = `redis://somebody:sesame@127.0.0.1:${redis.port}`;
  const limits = await open(world(), { url, log });
  let tries = 0;
  await until(() => ++tries > 20, "some more tries");
  const reported = JSON.stringify(limits.state()) + logged.join();
  expect(logged.filter((line) => line.startsWith("redis_away"))).toHaveLength(1);
  expect(reported).not.toContain("sesame");
  expect(reported).not.toContain("somebody");
});
