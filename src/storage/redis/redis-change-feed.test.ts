// Changes reach the other processes, not the sender. After a broken connection every process polls.
import { afterAll, expect, test } from "bun:test";
import { until } from "../../../tests/support/headrace.ts";
import { startRedis } from "../../../tests/support/redis.ts";
import { RedisChangeFeed } from "./redis-change-feed.ts";

const redis = await startRedis();
const feeds: RedisChangeFeed[] = [];
afterAll(async () => {
  for (const feed of feeds) feed.close();
  await redis[Symbol.asyncDispose]();
});

async function replica(prefix?: string) {
  const warned: string[] = [];
  const log = { info() {}, warn: (event: string) => warned.push(event), error() {} };
  const feed = await RedisChangeFeed.open({ url: redis.url, log, ...(prefix ? { prefix } : {}) });
  feeds.push(feed);
  const heard: string[] = [];
  for (const topic of ["credentials", "routing"] as const) feed.onChange(topic, () => heard.push(topic));
  return { feed, heard, warned };
}

test("sends each change to every other replica by its topic, and to no other installation", async () => {
  const [one, two, three] = [await replica(), await replica(), await replica()];
  const stranger = await replica("other:");
  one.feed.announce("credentials");
  two.feed.announce("routing");
  await until(() => three.heard.length === 2, "both were heard");
  await until(() => one.heard.length + two.heard.length === 2, "and by each other");
  expect(three.heard).toEqual(["credentials", "routing"]);
  expect([one.heard, two.heard, stranger.heard]).toEqual([["routing"], ["credentials"], []]);
});

test("sends the ids of a change, or none if there are too many, unknown or unprintable ones", async () => {
  const [one, two] = [await replica(), await replica()];
  const heard: (readonly string[] | undefined)[] = [];
  two.feed.onChange("connections", (ids) => void heard.push(ids));
  const many = Array.from({ length: 101 }, (_, n) => `key_${n}`);
  for (const ids of [["key_1", "acct_2"], undefined, many, ["a b"]]) one.feed.announce("connections", ids);
  await until(() => heard.length === 4, "all were heard");
  expect(heard).toEqual([["key_1", "acct_2"], undefined, undefined, undefined]);
});

test("delivers changes to all listeners although one throws", async () => {
  const [one, two] = [await replica(), await replica()];
  const heard: string[] = [];
  two.feed.onChange("connections", () => {
    throw new Error("broken");
  });
  two.feed.onChange("connections", () => heard.push("connections"));
  one.feed.announce("connections");
  await until(() => heard.length === 1, "the second was told");
});

test("listens again after a lost connection, and reports every topic as changed", async () => {
  const [one, two] = [await replica(), await replica()];
  await redis.stop();
  one.feed.announce("credentials");
  await redis.start();
  await until(() => two.heard.includes("credentials") && two.heard.includes("routing"), "told to look");
  await until(() => one.heard.length >= 2, "so was the other");
  two.heard.length = 0;
  // The change arrives once both connections are back. The first announcement may come before the sender is connected.
  await until(() => {
    one.feed.announce("credentials");
    return two.heard.includes("credentials");
  }, "changes are heard again");
});

test("notices a hanging server, and repeats the changes that it did not take", async () => {
  const [one, two] = [await replica(), await replica()];
  redis.pause();
  try {
    one.feed.announce("routing");
    await Bun.sleep(1_200);
  } finally {
    redis.resume();
  }
  await until(() => two.heard.includes("routing"), "it came late");
});

test("retries a refused change each second, logs the refusal once, and delivers the change late", async () => {
  const [one, two] = [await replica(), await replica()];
  const refusals = async () =>
    /cmdstat_publish:.*rejected_calls=(\d+)/.exec(String(await redis.command("INFO", "commandstats")))?.[1];
  await redis.command("ACL", "SETUSER", "default", "-publish");
  try {
    const before = Number((await refusals()) ?? 0);
    for (const id of ["key_1", "key_2"]) one.feed.announce("credentials", [id]);
    await Bun.sleep(1_500);
    // Two publications at once are refused, and one a second later that has both ids.
    expect(Number(await refusals()) - before).toBeWithin(2, 5);
  } finally {
    await redis.command("ACL", "SETUSER", "default", "+publish");
  }
  await until(() => two.heard.includes("credentials"), "it came late");
  expect(one.warned).toEqual(["change_feed_refused"]);
});
