// One limit, three processes, three hundred clients: together they get what the formula allows, whatever their clocks say.
import { expect, test } from "bun:test";
import { join } from "node:path";
import type { RateLimit } from "../../src/domain/limits/limits.ts";
import type { LimitsClientOrder, LimitsClientResult } from "../support/limits-client.ts";
import { long } from "../support/long.ts";
import { startRedis } from "../support/redis.ts";

const program = join(import.meta.dir, "..", "support", "limits-client.ts");
const loadMs = long ? 30_000 : 2_000;
const limit = 200;
const windowSeconds = 10;

async function run(order: LimitsClientOrder): Promise<LimitsClientResult> {
  const child = Bun.spawn([process.execPath, program, JSON.stringify(order)], { stdout: "pipe", stderr: "inherit" });
  const text = await new Response(child.stdout).text();
  expect(await child.exited).toBe(0);
  return JSON.parse(text) as LimitsClientResult;
}

// hardening: L2
test("admits 300 clients in three processes exactly by burst + rate x time", async () => {
  await using redis = await startRedis();
  // Where the machine stands still for longer than Redis may take, each goes on by its share: that is another test's.
  for (let attempt = 1; ; attempt++) {
    const rule: RateLimit = { id: `account:${attempt}:live`, owner: "account", limit, windowSeconds };
    const set = { requests: [rule, { ...rule, id: `key:${attempt}`, limit: limit * 2 }], tokens: [], quotas: [] };
    const from = Date.now() + 1_500;
    const order = { url: redis.url, set, clients: 100, from, until: from + loadMs };
    const results = await Promise.all([0, 86_400, -3_600].map((wallOffSeconds) => run({ ...order, wallOffSeconds })));
    const endedMs = Date.now();
    if (attempt < 3 && results.some(({ degraded }) => degraded)) continue;
    expect(results.map(({ degraded }) => degraded)).toEqual([false, false, false]);
    const admitted = results.reduce((sum, one) => sum + one.admitted, 0);
    const perMs = limit / (windowSeconds * 1000);
    // They ask all the time from the first moment to the last, but for how late the slowest is.
    expect(admitted).toBeGreaterThanOrEqual(Math.floor(limit + perMs * loadMs) - 2);
    expect(admitted).toBeLessThanOrEqual(Math.ceil(limit + perMs * (endedMs - from)));
    for (const { refused } of results) expect(refused).toBeGreaterThan(100);
    return;
  }
});
