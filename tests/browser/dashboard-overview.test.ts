// In a real browser: the overview of a new account leads to its first call and notices it; later it shows how the account does.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { desktop, leaveBrowser, openVisitor, phone, type Visitor } from "../support/chromium.ts";
import { colleagues, type DashboardWorld, openDashboardWorld } from "../support/dashboard-world.ts";
import { until } from "../support/headrace.ts";
import { look } from "../support/page-checks.ts";

let world: DashboardWorld;

beforeAll(async () => {
  world = await openDashboardWorld();
});

afterAll(async () => {
  leaveBrowser();
  await world[Symbol.asyncDispose]();
});

async function arrive(path: string, email?: string, size = desktop): Promise<Visitor> {
  const visitor = await openVisitor({ at: world.server.url, size });
  await world.signIn(visitor.context, email);
  await visitor.go(path);
  return visitor;
}

const ask = (model: string) =>
  world.server.request("/v1/chat/completions", { body: { model, messages: [{ role: "user", content: "Hello" }] } });
const tile = ({ page }: Visitor, name: string) => page.getByRole("region", { name, exact: true });
const chart = ({ page }: Visitor, title: string) => page.getByRole("slider", { name: new RegExp(`^${title}:`) });
const reading = (visitor: Visitor, title: string) => chart(visitor, title).getAttribute("aria-valuetext");

test("shows three steps to an account without requests, reports a failed call, and notices the first success", async () => {
  await using visitor = await arrive("/");
  const { page } = visitor;
  await page.getByText("Waiting for the first call…").waitFor();
  expect(await page.getByRole("link", { name: "Create a key" }).getAttribute("href")).toBe(
    "/settings/api-keys?create=1",
  );
  await page.getByText('"model": "aurora-large"').first().waitFor();
  await look(visitor, "overview-first-steps");
  expect((await ask("gale-preview")).status).toBe(502);
  await page.getByText("A call arrived, but it failed (upstream_error).").waitFor();
  expect((await ask("aurora-mini")).status).toBe(200);
  await page.getByRole("heading", { name: "The first call worked" }).waitFor();
  expect(await page.evaluate(() => document.activeElement?.textContent)).toBe("The first call worked");
  await page.getByText("aurora-mini answered with").waitFor();
  await look(visitor, "overview-first-call");
  await visitor.press("Go to Overview");
  await tile(visitor, "Requests").getByText("2", { exact: true }).waitFor();
});

test("shows a day's figures with their change, and updates them live", async () => {
  await world.fill({ keys: 12, requests: 2_000, chats: 0, events: 0 });
  await using visitor = await arrive("/");
  const { page } = visitor;
  await chart(visitor, "Requests").waitFor();
  for (const name of ["Tokens", "Spend", "Error rate", "Time to first token", "Tokens per second"]) {
    // What was there before is shown until it is asked for again.
    await tile(visitor, name).getByText("in the 24 hours before").first().waitFor({ state: "attached" });
  }
  await page.getByRole("region", { name: "Rate-limited requests" }).getByText("refused").first().waitFor();
  await page.getByRole("region", { name: "Limits and quotas" }).getByText("Tokens this month").waitFor();
  const error = page
    .getByRole("region", { name: "Recent errors" })
    .getByRole("link", { name: "upstream_error" })
    .first();
  expect(await error.getAttribute("href")).toMatch(/^\/requests\/req_/);
  const before = await tile(visitor, "Requests").textContent();
  await ask("aurora-mini");
  await until(async () => (await tile(visitor, "Requests").textContent()) !== before, "one request more");
  await look(visitor, "overview");
});

test("reads all charts of a page at the same time by arrow keys, and stops on Escape", async () => {
  await using visitor = await arrive("/");
  const { page } = visitor;
  await chart(visitor, "Requests").focus();
  expect(await reading(visitor, "Requests")).toBe("No value selected");
  await page.keyboard.press("ArrowLeft");
  const last = await reading(visitor, "Requests");
  expect(last).toMatch(/, so far: .*total [\d,]+$/);
  expect(await reading(visitor, "Spend")).toContain(last?.slice(0, last.indexOf(": ")) ?? "-");
  await page.keyboard.press("ArrowLeft");
  expect(await reading(visitor, "Requests")).not.toContain("so far");
  await page.keyboard.press("Home");
  expect(await chart(visitor, "Requests").getAttribute("aria-valuenow")).toBe("1");
  await page.keyboard.press("Escape");
  expect(await reading(visitor, "Requests")).toBe("No value selected");
});

test("keeps the time selected by arrow keys before the charts are drawn", async () => {
  await using visitor = await openVisitor({ at: world.server.url, size: desktop });
  const { page } = visitor;
  await world.signIn(visitor.context);
  const { promise: goOn, resolve: letThrough } = Promise.withResolvers<void>();
  await page.route("**/plot-*.js", async (route) => {
    await goOn;
    await route.continue();
  });
  await visitor.go("/");
  await chart(visitor, "Requests").focus();
  await page.keyboard.press("Home");
  const first = await reading(visitor, "Requests");
  expect(first).not.toBe("No value selected");
  letThrough();
  await page.locator("main canvas").nth(3).waitFor();
  expect(await reading(visitor, "Requests")).toBe(first);
});

test("keeps the time selected by arrow keys after charts are redrawn, wherever the pointer is", async () => {
  await using visitor = await arrive("/");
  const { page } = visitor;
  await page.locator("main canvas").nth(3).waitFor();
  const readout = (title: string) => page.getByRole("figure").filter({ hasText: title }).locator(".chart-readout");
  await chart(visitor, "Tokens").hover();
  await readout("Tokens").waitFor();
  await chart(visitor, "Requests").focus();
  await page.keyboard.press("Home");
  await readout("Requests").waitFor();
  const first = await reading(visitor, "Requests");
  const before = await tile(visitor, "Requests").textContent();
  await ask("aurora-mini");
  await until(async () => (await tile(visitor, "Requests").textContent()) !== before, "one request more");
  expect(await reading(visitor, "Requests")).toBe(first);
  expect(await readout("Requests").count()).toBe(1);
  expect(await readout("Tokens").count()).toBe(0);
});

test("excludes a hidden series from the readout and its total", async () => {
  await using visitor = await arrive("/");
  const { page } = visitor;
  await chart(visitor, "Requests").focus();
  // From the newest hour, in which perhaps none came yet, to one in which some did.
  const whole = await until(async () => {
    await page.keyboard.press("ArrowLeft");
    const read = await reading(visitor, "Requests");
    return read?.includes("aurora-mini") ? read : undefined;
  }, "an hour with requests to aurora-mini is read");
  const hour = await chart(visitor, "Requests").getAttribute("aria-valuenow");
  const own = Number(/aurora-mini (\d+)/.exec(whole)?.[1]);
  const total = Number(/total (\d+)/.exec(whole)?.[1]);
  expect(own).toBeGreaterThan(0);
  const legend = page.getByRole("group", { name: "Requests: series shown" });
  await legend.getByRole("button", { name: "aurora-mini" }).click();
  expect(await legend.getByRole("button", { name: "aurora-mini" }).getAttribute("aria-pressed")).toBe("false");
  await chart(visitor, "Requests").focus();
  await until(async () => {
    await page.keyboard.press("ArrowLeft");
    return (await chart(visitor, "Requests").getAttribute("aria-valuenow")) === hour;
  }, "the same hour is read");
  const rest = await reading(visitor, "Requests");
  expect(rest).not.toContain("aurora-mini");
  expect(rest).toContain(`total ${total - own}`);
});

test("keeps range, grouping and live mode in the address, and names keys and apps", async () => {
  await using visitor = await arrive("/?range=30d&by=key", undefined, phone);
  const { page } = visitor;
  await page.getByRole("button", { name: "Production website" }).first().waitFor();
  await page.getByText("App", { exact: true }).click();
  await page.getByRole("button", { name: "Meeting Notes" }).first().waitFor();
  await page.getByText("7 days", { exact: true }).click();
  await page.getByRole("switch", { name: "Auto-refresh" }).click({ force: true });
  await until(() => visitor.path() === "/?range=7d&by=app&live=off", "the address has it");
  await page.getByRole("button", { name: "Requests: show as table" }).click();
  await page.getByRole("region", { name: "Requests, figures" }).getByRole("columnheader", { name: "No app" }).waitFor();
  await page.mouse.move(0, 0);
  await page.getByRole("tooltip").waitFor({ state: "detached" });
  await look(visitor, "overview-table");
});

test("polls one resource every few seconds in an idle overview, gets 304, and redraws no chart", async () => {
  await using visitor = await arrive("/");
  const { page } = visitor;
  await chart(visitor, "Requests").waitFor();
  await page.locator("main canvas").nth(1).waitFor();
  await page.waitForLoadState("networkidle");
  const asked: string[] = [];
  const statuses: number[] = [];
  page.on("response", (response) => {
    const { pathname } = new URL(response.url());
    // The number of failing upstreams in the menu is renewed every 10 s, on every page.
    if (pathname === "/v1/admin/upstreams") return;
    asked.push(pathname);
    statuses.push(response.status());
  });
  await page.evaluate(() => {
    const told = { drawn: 0 };
    Object.assign(globalThis, { told });
    const { clearRect } = CanvasRenderingContext2D.prototype;
    CanvasRenderingContext2D.prototype.clearRect = function (...box) {
      told.drawn += 1;
      clearRect.apply(this, box);
    };
  });
  // The charts are drawn one after the other; the last may follow the second by seconds on a busy machine.
  await until(() => statuses.includes(304), "an answer was 304", 30_000);
  statuses.length = 0;
  await page.evaluate(() => {
    (globalThis as unknown as { told: { drawn: number } }).told.drawn = 0;
  });
  await until(() => statuses.length >= 2, "it was asked twice more", 20_000);
  expect(new Set(asked)).toEqual(new Set(["/v1/overview"]));
  expect(statuses.filter((status) => status === 304).length).toBeGreaterThanOrEqual(1);
  if (statuses.every((status) => status === 304)) {
    expect(await page.evaluate(() => (globalThis as unknown as { told: { drawn: number } }).told.drawn)).toBe(0);
  }
});

test("shows in each chart its own largest groups, so that the costliest is never among the others", async () => {
  await using visitor = await arrive("/?by=key");
  await chart(visitor, "Spend").waitFor();
  const overview = await world.browser.ask("/v1/overview?group_by=key");
  const { groups, ranking } = overview["usage"] as {
    groups: { cost: number[] }[];
    ranking: { cost: number[] };
  };
  const sums = ranking.cost.map((at) => groups[at]?.cost.reduce((sum, one) => sum + one, 0) ?? 0);
  expect(sums.length).toBeGreaterThan(1);
  expect(sums).toEqual(sums.toSorted((one, other) => other - one));
});

test("shows a member without usage how to begin, and account figures once an owner allows it", async () => {
  await using visitor = await arrive("/", colleagues.member.email);
  await visitor.page.getByText("Waiting for the first call…").waitFor();
  const { people } = world.server.people;
  const person = await people.findByEmail(colleagues.member.email);
  const [membership] = await people.membershipsOf(person?.id ?? "");
  const event = { id: `audit_${Bun.randomUUIDv7()}`, actor: { type: "operator" }, action: "member.updated" } as const;
  const about = { at: 1, accountId: membership?.accountId ?? "", targetId: null, clientAddress: null, requestId: null };
  await people.setSeesAllUsage(membership?.id ?? "", true, { ...event, ...about, detail: {} });
  world.server.governance.changed();
  await visitor.go("/");
  await chart(visitor, "Requests").waitFor();
  await visitor.page
    .getByRole("region", { name: "Limits and quotas" })
    .getByText("No rate limits apply in Development")
    .waitFor();
  expect(visitor.trouble).toEqual([]);
});
