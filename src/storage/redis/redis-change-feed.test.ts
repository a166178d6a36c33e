// Changes are heard by the others, not by who told them; after a connection that broke everybody looks for itself.
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

test("each change reaches every other replica, by its topic, and no other installation", async () => {
  const [one, two, three] = [await replica(), await replica(), await replica()];
  const stranger = await replica("other:");
  one.feed.announce("credentials");
  two.feed.announce("routing");
  await until(() => three.heard.length === 2, "both were heard");
  await until(() => one.heard.length + two.heard.length === 2, "and by each other");
  expect(three.heard).toEqual(["credentials", "routing"]);
  expect([one.heard, two.heard, stranger.heard]).toEqual([["routing"], ["credentials"], []]);
});

test("what a change is about is told with it; where that may be anything, or very much, nothing is said of it", async () => {
  const [one, two] = [await replica(), await replica()];
  const heard: (readonly string[] | undefined)[] = [];
  two.feed.onChange("connections", (ids) => void heard.push(ids));
  const many = Array.from({ length: 101 }, (_, n) => `key_${n}`);
  for (const ids of [["key_1", "acct_2"], undefined, many, ["a b"]]) one.feed.announce("connections", ids);
  await until(() => heard.length === 4, "all were heard");
  expect(heard).toEqual([["key_1", "acct_2"], undefined, undefined, undefined]);
});

test("a listener that fails keeps no other from hearing", async () => {
  const [one, two] = [await replica(), await replica()];
  const heard: string[] = [];
  two.feed.onChange("connections", () => {
    throw new Error("broken");
  });
  two.feed.onChange("connections", () => heard.push("connections"));
  one.feed.announce("connections");
  await until(() => heard.length === 1, "the second was told");
});

test("a feed whose connection broke listens again, and tells of everything, as something may have been missed", async () => {
  const [one, two] = [await replica(), await replica()];
  await redis.stop();
  one.feed.announce("credentials");
  await redis.start();
  await until(() => two.heard.includes("credentials") && two.heard.includes("routing"), "told to look");
  await until(() => one.heard.length >= 2, "so was the other");
  two.heard.length = 0;
  // Heard once both are back; the first try may be too early for the one that speaks.
  await until(() => {
    one.feed.announce("credentials");
    return two.heard.includes("credentials");
  }, "changes are heard again");
});

test("a server that hangs is noticed, and what was told to it in vain is told again", async () => {
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

test("a server that refuses to pass a change on is asked again each second, told of once in the log, and the change comes late", async () => {
  const [one, two] = [await replica(), await replica()];
  const refusals = async () =>
    /cmdstat_publish:.*rejected_calls=(\d+)/.exec(String(await redis.command("INFO", "commandstats")))?.[1];
  await redis.command("ACL", "SETUSER", "default", "-publish");
  try {
    const before = Number((await refusals()) ?? 0);
    for (const id of ["key_1", "key_2"]) one.feed.announce("credentials", [id]);
    await Bun.sleep(1_500);
    // Two at once, one a second later with both.
    expect(Number(await refusals()) - before).toBeWithin(2, 5);
  } finally {
    await redis.command("ACL", "SETUSER", "default", "+publish");
  }
  await until(() => two.heard.includes("credentials"), "it came late");
  expect(one.warned).toEqual(["change_feed_refused"]);
});
