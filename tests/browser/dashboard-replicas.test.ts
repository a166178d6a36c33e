// In a real browser: an operator sees which replicas there are, and what it means that Redis is away.
import { afterAll, expect, test } from "bun:test";
import { ensureDashboard } from "../../scripts/setup.mjs";
import { setUp } from "../support/browser.ts";
import { operator } from "../support/browser-world.ts";
import { desktop, leaveBrowser, openVisitor } from "../support/chromium.ts";
import { signIn } from "../support/dashboard-world.ts";
import { until } from "../support/headrace.ts";
import { look } from "../support/page-checks.ts";
import { startRedis } from "../support/redis.ts";
import { startReplicas } from "../support/replicas.ts";

afterAll(leaveBrowser);

test("lists replicas on the system page, and warns of the lack of Redis", async () => {
  ensureDashboard();
  await using redis = await startRedis();
  await using all = await startReplicas({
    env: { HEADRACE_REDIS_URL: redis.url },
    flags: { advertiseUrl: "http://10.0.0.5:7545" },
  });
  await setUp(all, { person: operator });
  const [one] = all.servers;
  if (!one) throw new Error("There is no server.");
  for (const server of all.servers) {
    await until(async () => {
      await server.replicas.refresh();
      return server.replicas.count === 2;
    }, "it knows of both");
  }
  await using visitor = await openVisitor({ at: all.url, size: desktop });
  const { page } = visitor;
  await signIn({ people: one.people, url: all.url }, visitor.context, operator.email);
  await visitor.go("/admin/system");
  await page.getByText("All checks passed").waitFor();
  const table = page.getByRole("region", { name: "Replicas" });
  expect(await table.getByRole("row").count()).toBe(3);
  expect(await table.getByText("shown here").count()).toBe(1);
  expect(await page.getByText("PostgreSQL", { exact: true }).count()).toBe(1);
  expect(await page.getByText("Redis, for all replicas").count()).toBe(1);
  await look(visitor, "system-replicas");

  await redis.stop();
  await until(async () => (await (await fetch(`${one.url}/readyz`)).json()).checks.redis === "failed", "it is told");
  await visitor.go("/admin/system");
  await page.getByText("Redis is unavailable.").waitFor();
  expect(await page.getByText("each replica separately").count()).toBe(1);
  await look(visitor, "system-without-redis");
}, 60_000);
