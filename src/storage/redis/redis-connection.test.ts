import { expect, test } from "bun:test";
import { startRedis } from "../../../tests/support/redis.ts";
import { RedisAwayError, RedisConnection } from "./redis-connection.ts";

test("times out a command that is sent while an earlier one is being watched", async () => {
  await using redis = await startRedis();
  const log = { info() {}, warn() {}, error() {} };
  const options = { url: redis.url, log, purpose: "tests", deadlineMs: 400, retryMs: 60_000 };
  const connection = new RedisConnection({ ...options, onConnect: async () => {}, onAway: () => {} });
  await connection.start();
  expect(await connection.send("PING", [])).toBe("PONG");
  redis.pause();
  await Bun.sleep(100);
  const late = connection.send("PING", []).catch((error: unknown) => error);
  expect(await Promise.race([late, Bun.sleep(5_000)])).toBeInstanceOf(RedisAwayError);
  expect(connection.isUp).toBe(false);
  redis.resume();
  connection.close();
});
