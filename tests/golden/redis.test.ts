// What replicas share in Redis: keys, figures and arguments of the limits' scripts, kept answers, and messages of the change feed.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LimitSet } from "../../src/domain/limits/limits.ts";
import type { AnswerKey, KeptAnswer } from "../../src/domain/models/policies/answer-store.ts";
import { limitScripts } from "../../src/limits/shared/limit-scripts.ts";
import { SharedLimits } from "../../src/limits/shared/shared-limits.ts";
import { RedisAnswers } from "../../src/storage/redis/redis-answers.ts";
import { RedisChangeFeed } from "../../src/storage/redis/redis-change-feed.ts";
import { until } from "../support/headrace.ts";
import { account, granted, key, ledgerWith, quotaOf, reserve } from "../support/limits-contract.ts";
import { manualClock } from "../support/manual-clock.ts";
import { type RedisServer, startRedis } from "../support/redis.ts";
import { hardTokens, streaming } from "../support/stops-contract.ts";
import { windowQuota } from "../support/windows-contract.ts";
import { expectCommitted } from "./committed.ts";

const directory = mkdtempSync(join(tmpdir(), "headrace-golden-"));
const log = { info() {}, warn() {}, error() {} };
let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(async () => {
  await redis[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true });
});

const scripts = Object.entries(limitScripts).map(([name, text]) => ({
  name,
  digest: new Bun.CryptoHasher("sha1").update(text).digest("hex"),
}));

/** Every command that Redis runs meanwhile, indented where a script does; bytes as %NN, and random ids blanked. */
async function recorded(work: () => Promise<void>): Promise<string[]> {
  let text = "";
  const socket = await Bun.connect({
    ...{ hostname: "127.0.0.1", port: redis.port },
    socket: {
      data(_socket, bytes) {
        text += bytes.toString();
      },
    },
  });
  socket.write("MONITOR\r\n");
  await until(async () => text.startsWith("+OK"), "Redis tells what it is asked");
  await work();
  await redis.command("ECHO", "last");
  await until(async () => text.includes('"ECHO" "last"'), "Redis has told all");
  socket.end();
  const lines = text.split("\r\n").flatMap((line) => /^\+[\d.]+ \[\d+ ([^\]]+)\] (.*)$/.exec(line) ?? []);
  const commands: string[] = [];
  for (let i = 0; i < lines.length; i += 3) {
    const by = lines[i + 1] === "lua" ? "  " : "";
    const [command = "", ...others] = (lines[i + 2] ?? "").split(" ");
    if (/"(?:HELLO|INFO|PING|SCRIPT|ECHO|CLIENT|TIME|AUTH)"/.test(command)) continue;
    commands.push(by + blanked([command, ...others].join(" ")));
  }
  return commands;
}

function blanked(command: string): string {
  const named = scripts.reduce((text, { name, digest }) => text.replace(digest, `<script ${name}>`), command);
  return named
    .replaceAll("\\x", "%")
    .replace(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "<uuid>")
    .replace(/"[0-9a-f]{40}"/g, '"<run id>"');
}

test("reads and writes shared limits in Redis as committed", async () => {
  const clock = manualClock(Date.UTC(2026, 10, 20) / 1000);
  const time = { micros: () => clock.monotonicMs() * 1000, seconds: () => clock.nowSeconds() };
  const rolling = windowQuota({ unit: "requests", amount: 30, per: "5h", window: "rolling" });
  const set: LimitSet = {
    requests: [account, { ...key, limit: 3, windowSeconds: 1 }],
    tokens: [{ ...account, limit: 1_000 }],
    quotas: [quotaOf(10_000, 20_000)],
    windows: [rolling, hardTokens(5_000)],
  };
  const records = await recorded(async () => {
    const limits = await SharedLimits.open({
      ...{ url: redis.url, clock, time, ledger: ledgerWith({ tokens: 5, nanoUsd: 6 }), directory, log },
      deadlineMs: 30_000,
    });
    const { lease, stop } = await granted(limits.admit(set, { ...streaming(), tokens: 50, minTokens: 50 }));
    clock.advance(10);
    await stop?.grow(40, 0);
    lease.extend(60, 7);
    clock.advance(10);
    lease.settle(30, 8);
    const other = await granted(limits.admit({ ...set, windows: [] }, reserve(10)));
    other.lease.settle(1, 1);
    await limits.peek(set);
    limits.forgetQuotas([rolling, hardTokens(5_000)]);
    await limits.usedInWindow(rolling);
    await limits.beat();
    await limits.close();
  });
  expectCommitted("redis-limits", records);
});

const place: AnswerKey = { digest: "d1", accountId: "acct_1", model: "m" };
const answer: KeptAnswer = {
  ...{ bytes: Buffer.from('{"id":"c"}'), ignored: ["seed"], at: 1_790_000_000, expiresAt: 1_790_000_060 },
  usage: {
    ...{
      promptTokens: 1,
      completionTokens: 2,
      estimated: true,
      understated: true,
      overstated: true,
      pastLimit: true,
    },
    parts: { cachedTokens: 1, cacheWriteTokens: 2, reasoningTokens: 3, details: { searches: 1 } },
  },
};

test("writes cached answers and their clearing as committed and reads them back", async () => {
  const answers = await RedisAnswers.open({
    ...{ url: redis.url, log, maxSeconds: 86_400, deadlineMs: 30_000 },
    sealFor: (where) => ({ seal: (text) => `[${where}] ${text}`, open: (text) => text.slice(where.length + 3) }),
  });
  let found: unknown;
  const records = await recorded(async () => {
    const { mark } = await answers.read(place);
    answers.write(place, answer, mark);
    found = (await answers.read(place)).answer;
    await answers.forget({ accountId: "acct_1", model: "m" });
  });
  answers.close();
  const marks = records.filter((command) => /"SET" "headrace:answers:forgotten/.test(command));
  expect(marks.length).toBe(5);
  expectCommitted("redis-answers", records);
  expect(found).toEqual(answer);
});

test("publishes changes as committed, and another replica receives them", async () => {
  const heard: unknown[] = [];
  const [one, other] = await Promise.all([1, 2].map(() => RedisChangeFeed.open({ url: redis.url, log })));
  for (const topic of ["credentials", "routing", "answers"] as const)
    other?.onChange(topic, (ids) => heard.push([topic, ids]));
  const records = await recorded(async () => {
    one?.announce("credentials", ["key_1", "key_2"]);
    one?.announce("routing");
    one?.announce("answers", ["acct_1"]);
    await until(async () => heard.length === 3, "all of it is heard");
  });
  one?.close();
  other?.close();
  expectCommitted("redis-changes", records);
  expect(heard).toEqual([
    ["credentials", ["key_1", "key_2"]],
    ["routing", undefined],
    ["answers", ["acct_1"]],
  ]);
});
