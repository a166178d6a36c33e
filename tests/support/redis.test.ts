// The server for tests does what tests rely on.
import { expect, test } from "bun:test";
import { startRedis } from "./redis.ts";

test("answers, loses its data, stops and restarts empty on the same port as a test Redis", async () => {
  await using redis = await startRedis();
  await redis.command("SET", "a", "1");
  expect(await redis.command("GET", "a")).toBe("1");
  await redis.flush();
  expect(await redis.command("GET", "a")).toBeNull();
  await redis.command("SET", "a", "2");
  redis.pause();
  const late = redis.command("GET", "a");
  expect(await Promise.race([late, Bun.sleep(50).then(() => "silent")])).toBe("silent");
  redis.resume();
  expect(await late).toBe("2");
  await redis.stop();
  await expect(redis.command("PING")).rejects.toThrow();
  await redis.start();
  expect(await redis.command("GET", "a")).toBeNull();
});
