// What a replica used while it was cut from the shared limits outlives it: whoever starts after it counts it.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { appendFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type CutLink, startCutLink } from "../../../tests/support/cut-link.ts";
import { until } from "../../../tests/support/headrace.ts";
import { granted, ledgerWith, none, quotaOf, refusal, reserve } from "../../../tests/support/limits-contract.ts";
import { startRedis } from "../../../tests/support/redis.ts";
import { systemClock } from "../../base/clock.ts";
import { SharedLimits } from "./shared-limits.ts";

const redis = await startRedis();
const silent = { info() {}, warn() {}, error() {} };
const quota = quotaOf(1_000);
const set = { ...none, quotas: [quota] };

let directory: string;
let link: CutLink;
let ledger: ReturnType<typeof ledgerWith>;
const opened: SharedLimits[] = [];

beforeEach(async () => {
  await redis.flush();
  directory = mkdtempSync(join(tmpdir(), "headrace-limits-"));
  link = await startCutLink(redis.port);
  ledger = ledgerWith();
});

afterEach(async () => {
  await Promise.all(opened.splice(0).map((limits) => limits.close()));
  await link[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true });
});

async function open(of = directory): Promise<SharedLimits> {
  const url = `redis://127.0.0.1:${link.port}`;
  const limits = await SharedLimits.open({ url, clock: systemClock, ledger, directory: of, log: silent, retryMs: 50 });
  opened.push(limits);
  return limits;
}

const isOk = (limits: SharedLimits) => limits.state().status === "ok";
const isMarked = () => existsSync(join(directory, "untold-quotas"));

/** Settled, and in the ledger as well. */
async function use(limits: SharedLimits, tokens: number): Promise<void> {
  (await granted(limits.admit(set, reserve(tokens)))).lease.settle(tokens, 0);
  ledger.totals.tokens += tokens;
}

/** One that has used 100 before it was cut off, and 800 since. */
async function cutOff(): Promise<SharedLimits> {
  const limits = await open();
  await use(limits, 100);
  expect(await limits.used(quota)).toMatchObject({ tokens: 100 });
  link.cut();
  await until(() => !isOk(limits), "it is missed");
  await use(limits, 800);
  return limits;
}

for (const [how, end] of [
  ["an end in order", (limits: SharedLimits) => limits.close()],
  ["a death", async () => {}],
] as const) {
  test(`keeps a quota's usage of an outage at each replica after ${how}`, async () => {
    const first = await cutOff();
    await end(first);
    expect(isMarked()).toBe(true);
    const elsewhere = mkdtempSync(join(tmpdir(), "headrace-limits-"));
    // It must not be the first itself that tells, where it still lives here.
    await first.close();
    link.mend();
    const other = await open(elsewhere);
    const next = await open();
    await until(() => !isMarked(), "it was told");
    for (const limits of [other, next]) {
      // Until it has the shared limits it decides over a part of what is left, and its refusals say so.
      await until(() => isOk(limits), "it has the shared limits");
      expect(await limits.used(quota)).toMatchObject({ tokens: 900 });
      expect((await refusal(limits.admit(set, reserve(101)))).message).toContain("900 tokens of 1,000 tokens are used");
    }
    rmSync(elsewhere, { recursive: true });
  });
}

test("leaves unsent usage to the next start if a start ends before Redis is back", async () => {
  await (await cutOff()).close();
  await (await open()).close();
  expect(isMarked()).toBe(true);
  link.mend();
  expect(await (await open()).used(quota)).toMatchObject({ tokens: 900 });
});

test("leaves no file after an outage that the process outlives, or without unsent usage", async () => {
  const limits = await cutOff();
  expect(isMarked()).toBe(true);
  link.mend();
  await until(() => isOk(limits) && !isMarked(), "it was told");
  const reads = ledger.reads.length;
  expect(await limits.used(quota)).toMatchObject({ tokens: 900 });
  expect(ledger.reads).toHaveLength(reads);
  await use(limits, 50);
  await limits.close();
  expect(isMarked()).toBe(false);
  const next = await open();
  expect(await next.used(quota)).toMatchObject({ tokens: 950 });
  expect(ledger.reads).toHaveLength(reads);
});

test("keeps unsent usage from before an outage beyond the process", async () => {
  const limits = await open();
  await use(limits, 100);
  const { lease } = await granted(limits.admit(set, reserve(300)));
  redis.pause();
  try {
    lease.settle(300, 0);
    ledger.totals.tokens += 300;
    await until(() => !isOk(limits), "it is missed");
    expect(isMarked()).toBe(true);
    link.cut();
    await limits.close();
  } finally {
    redis.resume();
  }
  link.mend();
  expect(await (await open()).used(quota)).toMatchObject({ tokens: 400 });
});

test("ignores a torn or foreign line in the file of quotas", async () => {
  await (await cutOff()).close();
  appendFileSync(join(directory, "untold-quotas"), "\0\0\nanother:replicas\nheadrace:quota:20");
  link.mend();
  const next = await open();
  await until(() => !isMarked(), "it was told");
  expect(await next.used(quota)).toMatchObject({ tokens: 900 });
  expect(isOk(next)).toBe(true);
});
