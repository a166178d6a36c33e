// In a real browser, in the long form as on a slow machine: pages do not move while they come, and do not hold the browser up for long.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { desktop, leaveBrowser, openBrowser } from "../support/chromium.ts";
import { busyModels, type DashboardWorld, openDashboardWorld } from "../support/dashboard-world.ts";
import { long } from "../support/long.ts";
import { watchPage } from "../support/page-speed.ts";

let world: DashboardWorld;

beforeAll(async () => {
  world = await openDashboardWorld({ modelCount: busyModels });
  await world.fill({ keys: 500, usedKeys: 500, requests: long ? 100_000 : 5_000, chats: 60, events: 200 });
}, 120_000);

afterAll(async () => {
  leaveBrowser();
  await world[Symbol.asyncDispose]();
});

/** Those with most to draw. That nothing of any page moves is seen by dashboard-shift.test.ts as well. */
const fullest = ["/", "/catalog", "/usage", "/requests", "/settings/api-keys", "/docs/api"];
const further = [
  ...["/playground", "/prices", "/tools", "/statements", "/chats", "/batches", "/settings/limits", "/settings/members"],
  ...[
    "/settings/audit-log",
    "/admin/upstreams",
    "/admin/tool-servers",
    "/admin/tiers",
    "/admin/signing-keys",
    "/admin/system",
  ],
  ...["/admin/model-files", "/settings/webhooks"],
];
/** In the long form what was promised; beside other tests, on a shared machine at its own speed, only that it is no multiple. */
const maxBlockingMs = long ? 500 : 5_000;

test.each(long ? [...fullest, ...further] : fullest)(
  "loads %s without layout shift or long blocking",
  async (path) => {
    const browser = await openBrowser();
    const context = await browser.newContext({ viewport: desktop });
    try {
      await world.signIn(context);
      const page = await context.newPage();
      const cdp = await context.newCDPSession(page);
      await cdp.send("Emulation.setCPUThrottlingRate", { rate: long ? 4 : 1 });
      const watched = await watchPage(page);
      await page.goto(world.server.url + path, { waitUntil: "load" });
      await page.locator("h1").first().waitFor({ timeout: 30_000 });
      const { moved, blockingMs } = await watched.atRest();
      if (long) console.log(`${path}: ${Math.round(blockingMs)} ms`);
      expect(moved).toEqual([]);
      expect(blockingMs).toBeLessThan(maxBlockingMs);
    } finally {
      await context.close();
    }
  },
  60_000,
);
