// In a real browser: what is there of a page stays where it is, in whichever order come the answers that it waits for.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { desktop, leaveBrowser, openBrowser, openBrowserWithScrollBars, phone } from "../support/chromium.ts";
import { type DashboardWorld, openDashboardWorld } from "../support/dashboard-world.ts";
import { watchPage } from "../support/page-speed.ts";

let world: DashboardWorld;
let tallTab: Tab;
let phoneTab: Tab;

beforeAll(async () => {
  world = await openDashboardWorld();
  await world.fill();
  // What pages say only sometimes, above or below what they always have.
  const { browser, server } = world;
  const bounded = { requests_per_minute: null, tokens_per_minute: null, monthly_spend: 5 };
  await browser.ask("/v1/admin/tiers/bounded", { method: "PUT", body: bounded });
  await browser.ask("/v1/admin/signing-keys/rotate", { method: "POST" });
  const models = join(server.dataDir, "models");
  mkdirSync(models, { recursive: true });
  writeFileSync(join(models, "half-a-model.gguf.part"), "x".repeat(2_000_000));
  [tallTab, phoneTab] = await Promise.all([openTab(tall), openTab(phone)]);
}, 60_000);

afterAll(async () => {
  await Promise.all([tallTab, phoneTab].map(({ page }) => page.context().close()));
  leaveBrowser();
  await world[Symbol.asyncDispose]();
});

const paths = [
  ...[
    "/",
    "/playground",
    "/catalog",
    "/prices",
    "/tools",
    "/usage",
    "/statements",
    "/requests",
    "/chats",
    "/batches",
    "/apps",
    "/settings/api-keys",
  ],
  ...["/settings/limits", "/settings/members", "/settings/security", "/settings/audit-log", "/admin/upstreams"],
  "/admin/tool-servers",
  ...["/admin/nodes", "/admin/accounts", "/admin/people", "/admin/tiers", "/admin/signing-keys", "/admin/audit-log"],
  ...["/admin/system", "/admin/model-files", "/settings/webhooks", "/admin/webhooks"],
];
/** Tall enough that all of most pages is in view. */
const tall = { ...desktop, height: 2_000 };

test.each(paths)(
  "keeps the layout of %s stable in whatever order its requests are answered",
  async (path) => {
    const lastFirst = movedAt(tallTab, path, (held) => held.pop());
    const firstFirst = movedAt(phoneTab, path, (held) => held.shift());
    expect(await Promise.all([lastFirst, firstFirst])).toEqual([[], []]);
  },
  60_000,
);

test("keeps the layout stable when a scroll bar appears or a dialog covers the page", async () => {
  await using browser = await openBrowserWithScrollBars();
  const context = await browser.newContext({ viewport: desktop, reducedMotion: "reduce" });
  await world.signIn(context);
  const page = await context.newPage();
  const watched = await watchPage(page);
  await page.goto(`${world.server.url}/catalog`, { waitUntil: "load" });
  await page.locator(".model-row").nth(4).waitFor();
  expect(await page.evaluate(() => innerWidth - document.documentElement.clientWidth)).toBeGreaterThan(0);
  expect((await watched.speed()).moved).toEqual([]);
  const edges = () =>
    page.evaluate(() =>
      [...document.querySelectorAll("#root header, h1, .model-list")].map((e) => e.getBoundingClientRect()),
    );
  const before = await edges();
  await page.getByRole("button", { name: "Add model" }).click();
  await page.getByRole("dialog").waitFor();
  expect(await edges()).toEqual(before);
});

/** A tab whose questions to the API wait until they are let go, by the ids that the browser has for them. */
async function openTab(viewport: typeof phone) {
  const context = await (await openBrowser()).newContext({ viewport, reducedMotion: "reduce" });
  await world.signIn(context);
  const page = await context.newPage();
  const watched = await watchPage(page);
  const cdp = await context.newCDPSession(page);
  const held: string[] = [];
  // One that its page left behind is not there any more.
  const letGo = (requestId: string) => cdp.send("Fetch.continueRequest", { requestId }).catch(() => undefined);
  cdp.on("Fetch.requestPaused", ({ requestId, request }) => {
    if (new URL(request.url).pathname === "/v1/session") void letGo(requestId);
    else held.push(requestId);
  });
  // Playwright's own way to hold requests takes the files of the dashboard along, and keeps none of them in the cache.
  await cdp.send("Fetch.enable", { patterns: [{ urlPattern: "*/v1/*" }] });
  return { page, watched, held, letGo };
}

type Tab = Awaited<ReturnType<typeof openTab>>;

/** What moved of a page whose questions are answered one by one: which of those that wait, `choose` says. */
async function movedAt(tab: Tab, path: string, choose: (held: string[]) => string | undefined) {
  const { page, held } = tab;
  held.length = 0;
  await page.goto(world.server.url + path, { waitUntil: "load" });
  await page.locator("h1").first().waitFor();
  while (await asks(tab)) {
    const next = choose(held);
    if (next !== undefined) await tab.letGo(next);
    await page.waitForTimeout(drawnMs);
  }
  return (await tab.watched.speed()).moved;
}

/** For an answer to be drawn: one that is not yet leaves the page as it was, and the next one finds it so. */
const drawnMs = 100;
/** Longer than a page takes for what an answer leads it to ask for, and less than it waits before it asks again. */
const quietMs = 300;

async function asks({ page, held }: Tab): Promise<boolean> {
  for (let waitedMs = 0; held.length === 0 && waitedMs < quietMs; waitedMs += 50) await page.waitForTimeout(50);
  return held.length > 0;
}
