// Measures each page of the dashboard on a slow machine in a busy installation: how long it blocks, whether it shifts,
// what it loads. 500 keys, 50 models and 100,000 requests, at a quarter of this processor's speed. Arguments: paths to
// measure instead of all.
import type { Page } from "playwright-core";
import { desktop, leaveBrowser, openBrowser } from "../tests/support/chromium.ts";
import { busy, busyModels, openDashboardWorld } from "../tests/support/dashboard-world.ts";
import { watchPage } from "../tests/support/page-speed.ts";

/** The factor by which it is slower than this processor. */
const slowdown = 4;
const goalMs = 500;
const rounds = 3;
const everyPage = [
  ...["/", "/?range=30d", "/?by=key", "/playground", "/catalog", "/usage", "/usage?range=90d&group=key,model"],
  ...["/requests", "/chats", "/apps", "/settings/api-keys", "/settings/limits", "/settings/members"],
  ...["/settings/security", "/settings/audit-log", "/admin/upstreams", "/admin/nodes", "/admin/accounts"],
  ...["/admin/people", "/admin/tiers", "/admin/signing-keys", "/admin/audit-log", "/admin/system", "/docs/api"],
];

const asked = process.argv.slice(2);
await using world = await openDashboardWorld({ modelCount: busyModels });
await world.fill(busy);
const browser = await openBrowser();
let passed = true;
for (const path of asked.length > 0 ? asked : everyPage) {
  const all = [];
  for (let round = 0; round < rounds; round++) all.push(await measure(path));
  all.sort((one, two) => one.blockingMs - two.blockingMs);
  const median = all[Math.floor(rounds / 2)] ?? all[0];
  if (!median) throw new Error("Nothing was measured.");
  const shift = Math.max(...all.map((one) => one.shift));
  const isGood = median.blockingMs <= goalMs && shift === 0;
  passed &&= isGood;
  console.log(
    `${isGood ? "ok  " : "SLOW"} ${path.padEnd(34)} blocking ${median.blockingMs.toFixed(0).padStart(5)} ms (goal ${goalMs}), ` +
      `longest ${median.maxMs.toFixed(0).padStart(5)} ms, shift ${shift.toFixed(3)}, ${String(median.requests).padStart(3)} requests, ` +
      `${(median.bytes / 1000).toFixed(0).padStart(5)} kB`,
  );
}
const idle = await measureIdle();
console.log(`     an idle overview asks ${idle} times in 20 s`);
leaveBrowser();
process.exitCode = passed ? 0 : 1;

/** Measures a page in a browser that has nothing of it yet, from its first byte until it is at rest. */
async function measure(path: string) {
  const page = await visit();
  const cdp = await page.context().newCDPSession(page);
  await cdp.send("Emulation.setCPUThrottlingRate", { rate: slowdown });
  const watched = await watchPage(page);
  await page.goto(world.server.url + path, { waitUntil: "load" });
  const speed = await watched.atRest();
  await page.context().close();
  return speed;
}

async function measureIdle(): Promise<number> {
  const page = await visit();
  const watched = await watchPage(page);
  await page.goto(world.server.url, { waitUntil: "load" });
  const { requests } = await watched.atRest();
  await new Promise((resolve) => setTimeout(resolve, 20_000));
  const count = watched.requests() - requests;
  await page.context().close();
  return count;
}

async function visit(): Promise<Page> {
  const context = await browser.newContext({ viewport: desktop });
  await world.signIn(context);
  return await context.newPage();
}
