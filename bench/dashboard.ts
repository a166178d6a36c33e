// Measures the dashboard in a real browser: its first page, and usage and logs over ten million requests. Arguments:
// how many requests instead, and an existing directory in which the data are kept for the next time.
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { openDatabase } from "../src/storage/sql/database.ts";
import { setUp } from "../tests/support/browser.ts";
import { operator } from "../tests/support/browser-world.ts";
import { openBrowser } from "../tests/support/chromium.ts";
import { signIn } from "../tests/support/dashboard-world.ts";
import { startHeadrace } from "../tests/support/headrace.ts";
import { percentile } from "./statistics.ts";
import { addUsageRows } from "./usage-rows.ts";

const rounds = 7;
const daySeconds = 86_400;
const days = 90;
const requests = Number(process.argv[2] ?? 10_000_000);
const kept = process.argv[3];
const directory = kept ?? mkdtempSync(join(tmpdir(), "headrace-dashboard-"));
const dataDir = join(directory, "data");

if (!existsSync(dataDir)) await prepare();
const server = await startHeadrace({ dataDir });
const browser = await openBrowser();
let passed = true;

await measure("first page, until its figures are there and it answers a click", 1_000, async () => {
  const page = await visit();
  return [page, () => firstPage(page)];
});
for (const [name, query] of [
  ["usage, 30 days by model", ""],
  ["usage, 90 days by key and model", "?range=90d&group=key,model"],
] as const) {
  await measure(`${name}, until its figures are there`, 300, async () => {
    const page = await visit("/catalog");
    return [page, () => open(page, `/usage${query}`, ".numeric")];
  });
}
await measure("logs, until the newest are there", 300, async () => {
  const page = await visit("/catalog");
  return [page, () => open(page, "/requests", "tbody tr:nth-child(5)")];
});
await measureScrolling();

await browser.close();
await server[Symbol.asyncDispose]();
if (kept === undefined) rmSync(directory, { recursive: true });
process.exitCode = passed ? 0 : 1;

async function prepare(): Promise<void> {
  const made = await startHeadrace({ dataDir });
  await setUp(made, { person: operator });
  const { accountId } = made.firstKey.record;
  await made.close();
  const db = await openDatabase(join(dataDir, "headrace.db"));
  const end = Math.floor(Date.now() / 1000);
  const start = end - days * daySeconds;
  const rows = { accountId, environment: "dev", requests, start, end, keys: 50, models: 8 };
  await addUsageRows(db, rows, (written) => process.stdout.write(`\r${written} requests`));
  process.stdout.write("\n");
  await db.close();
}

/** Somebody signed in, at a page that has come to rest; without a path in a fresh browser that has loaded nothing. */
async function visit(path?: string): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  const page = await context.newPage();
  await signIn(server, context, operator.email);
  if (path !== undefined) {
    await page.goto(server.url + path);
    await page.waitForLoadState("networkidle");
  }
  return page;
}

async function firstPage(page: Page): Promise<void> {
  await page.goto(server.url, { waitUntil: "commit" });
  await page.waitForSelector("main canvas");
  await page.getByRole("button", { name: `${operator.name}, menu` }).click();
  await page.getByRole("menuitem", { name: "Sign out" }).waitFor();
}

/** Goes to an address within the application, as a link does, and waits for what it shows; measured in the page itself. */
async function open(page: Page, address: string, shown: string): Promise<void> {
  await page.evaluate(
    ([path, selector]) =>
      new Promise<void>((resolve) => {
        history.pushState(null, "", path);
        const look = () => (document.querySelector(`main ${selector}`) ? resolve() : requestAnimationFrame(look));
        look();
      }),
    [address, shown] as const,
  );
}

async function measure(
  name: string,
  limitMs: number,
  prepareOne: () => Promise<[Page, () => Promise<void>]>,
): Promise<void> {
  const took: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const [page, act] = await prepareOne();
    const startedMs = performance.now();
    await act();
    took.push(performance.now() - startedMs);
    await page.context().close();
  }
  took.sort((one, two) => one - two);
  report(name, percentile(took, 0.5), percentile(took, 1), limitMs);
}

function report(name: string, median: number, worst: number, limitMs: number): void {
  const isGood = median < limitMs;
  passed &&= isGood;
  const figures = `median ${median.toFixed(0).padStart(5)} ms, worst ${worst.toFixed(0).padStart(5)} ms`;
  console.log(`${isGood ? "ok  " : "SLOW"} ${name.padEnd(58)} ${figures} (goal: under ${limitMs} ms)`);
}

/** Frames while the wheel turns through ten thousand requests. */
async function measureScrolling(): Promise<void> {
  const page = await visit("/requests");
  await page.waitForSelector("tbody tr:nth-child(5)");
  const frames = await page.evaluate(async () => {
    const box = document.querySelector(".long-table");
    if (!box) throw new Error("There is no long table.");
    const times: number[] = [];
    let last = performance.now();
    const deadline = last + 30_000;
    while (performance.now() < deadline && box.scrollTop < 10_000 * 53) {
      box.scrollTop += 160;
      await new Promise(requestAnimationFrame);
      const now = performance.now();
      times.push(now - last);
      last = now;
    }
    return times;
  });
  frames.sort((one, two) => one - two);
  report("scrolling through requests, a frame", percentile(frames, 0.5), percentile(frames, 0.99), 34);
  await page.context().close();
}
