// In a real browser: usage is explored by group, time and filter, exported as files, and limits are shown with what they refused.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import type { Request } from "playwright-core";
import { desktop, leaveBrowser, openVisitor, phone, type Visitor } from "../support/chromium.ts";
import { colleagues, type DashboardWorld, openDashboardWorld } from "../support/dashboard-world.ts";
import { until } from "../support/headrace.ts";
import { look } from "../support/page-checks.ts";

let world: DashboardWorld;

beforeAll(async () => {
  world = await openDashboardWorld();
  await world.fill({ keys: 40, requests: 3_000, chats: 0, events: 0 });
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

const table = ({ page }: Visitor) => page.getByRole("region", { name: "Usage", exact: true });
const total = ({ page }: Visitor, name: string) => page.getByRole("region", { name, exact: true }).textContent();
/** Cells of a column, from the top. */
async function column(visitor: Visitor, at: number): Promise<string[]> {
  return table(visitor).locator(`tbody tr td:nth-child(${at})`).allTextContents();
}
const figure = (text: string | undefined) => Number(text?.replaceAll(/[^\d.]/g, ""));

async function save(visitor: Visitor, kind: string): Promise<{ name: string; text: string }> {
  await visitor.press("Export");
  const [file] = await Promise.all([
    visitor.page.waitForEvent("download"),
    visitor.page.getByRole("menuitem", { name: kind }).click(),
  ]);
  return { name: file.suggestedFilename(), text: readFileSync(await file.path(), "utf8") };
}

test("groups a month by model, sorts by any column, and filters by a click on a name", async () => {
  await using visitor = await arrive("/usage");
  const { page } = visitor;
  await table(visitor).getByText("aurora-mini").waitFor();
  const requests = (await column(visitor, 2)).map(figure);
  expect(requests).toEqual(requests.toSorted((a, b) => b - a));
  expect(await total(visitor, "Requests")).toContain(requests.reduce((sum, one) => sum + one, 0).toLocaleString("en"));
  await table(visitor).locator("tr", { hasText: "gale-preview" }).getByText("no price").waitFor();
  await look(visitor, "usage");
  await table(visitor).getByRole("button", { name: "Spend" }).click();
  expect(visitor.path()).toBe("/usage?sort=-cost");
  expect(await table(visitor).getByRole("columnheader", { name: "Spend" }).getAttribute("aria-sort")).toBe(
    "descending",
  );
  expect((await column(visitor, 1))[0]).toBe("aurora-large");
  await table(visitor).getByRole("button", { name: "ember-code" }).click();
  await until(async () => (await column(visitor, 1)).join() === "ember-code", "only one model is shown");
  // It has no price, which is not the same as to cost nothing.
  await table(visitor).getByText("no price").waitFor();
  await page.getByRole("region", { name: "Spend", exact: true }).getByText("No price").waitFor();
  expect(await total(visitor, "Requests")).toContain((await column(visitor, 2))[0] ?? "-");
  expect(visitor.path()).toBe("/usage?sort=-cost&model=ember-code");
  await page.reload();
  await until(async () => (await column(visitor, 1)).join() === "ember-code", "the address shows the same");
});

test("groups usage by tag with untagged apart, counts no request twice, and filters by one tag", async () => {
  await using visitor = await arrive("/usage?range=90d&group=none");
  const { page } = visitor;
  await page.getByRole("region", { name: "Requests", exact: true }).waitFor();
  const whole = await total(visitor, "Requests");
  await page.getByText("Tag", { exact: true }).last().click();
  await table(visitor).getByText("team:search").waitFor();
  expect(visitor.path()).toBe("/usage?range=90d&group=tag");
  expect(await total(visitor, "Requests")).toBe(whole);
  const rows = new Map<string, number>();
  const counts = (await column(visitor, 2)).map(figure);
  for (const [i, name] of (await column(visitor, 1)).entries()) rows.set(name, counts[i] ?? 0);
  expect([...rows.keys()].sort()).toEqual([
    ...["No tags", "customer:acme", "project:assistant-2", "team:research", "team:search", "team:support"],
  ]);
  const of = (start: string) =>
    [...rows].filter(([name]) => name.startsWith(start)).reduce((sum, [, requests]) => sum + requests, 0);
  expect(of("team:") + of("No tags")).toBe(3_000);
  await page.getByText("A request with several tags appears in several rows").waitFor();
  await look(visitor, "usage-tags");
  await table(visitor).getByRole("button", { name: "team:search" }).click();
  await until(
    async () => (await total(visitor, "Requests"))?.includes(of("team:search").toLocaleString("en")),
    "one tag",
  );
  await visitor.go("/requests?range=&tag=team%3Asearch");
  expect(await page.getByRole("combobox", { name: "Tag" }).inputValue()).toBe("team:search");
  await page.getByRole("region", { name: "Requests" }).locator("tbody tr a").first().click();
  await page.getByRole("dialog").getByRole("link", { name: "team:search" }).waitFor();
  await look(visitor, "request-tags");
});

test("combines groups, steps and dates without changing the totals", async () => {
  await using visitor = await arrive("/usage?range=7d");
  const { page } = visitor;
  await table(visitor).getByText("aurora-mini").waitFor();
  const before = await total(visitor, "Tokens");
  await page.getByText("Key", { exact: true }).last().click();
  await table(visitor).getByText("Production website").first().waitFor();
  expect(await total(visitor, "Tokens")).toBe(before);
  await page.getByText("By day", { exact: true }).click();
  await table(visitor).getByRole("columnheader", { name: "Time" }).waitFor();
  expect(visitor.path()).toBe("/usage?range=7d&group=model%2Ckey&rows=times");
  await page.getByRole("combobox", { name: "Time" }).click();
  await page.getByRole("option", { name: "Custom dates" }).click();
  await page.getByLabel("First day").fill("2020-02-01");
  await page.getByLabel("Last day").fill("2020-02-29");
  await page.getByText("No usage in this time.").first().waitFor();
  await page.getByLabel("First day").fill("2020-03-01");
  await page.getByText("The first day must not be after the last.").waitFor();
  await look(visitor, "usage-dates");
});

test("shows operators the usage of all accounts, and members no choice of accounts", async () => {
  await using visitor = await arrive("/usage");
  const own = await total(visitor, "Requests");
  await visitor.page.getByRole("combobox", { name: "Accounts" }).selectOption("All accounts");
  await until(async () => (await column(visitor, 1)).join() === "First account", "the row of the account");
  expect(visitor.path()).toBe("/usage?group=account&of=all");
  expect(await total(visitor, "Requests")).toBe(own);
  await visitor.page.getByText("Outcome", { exact: true }).click();
  await until(async () => (await column(visitor, 2)).includes("failed"), "the rows by outcome");
  await using other = await arrive("/usage?of=all", colleagues.member.email);
  await other.page.getByRole("region", { name: "Requests", exact: true }).waitFor();
  expect(await other.page.getByRole("combobox", { name: "Accounts" }).count()).toBe(0);
});

test("asks for exactly this month or the last one, in UTC", async () => {
  await using visitor = await arrive("/usage?range=last-month");
  const { page } = visitor;
  const now = new Date();
  const first = (back: number) => Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - back) / 1000;
  // The filter of tags asks for usage too, without an end.
  const isReport = (request: Request) => /\/v1\/usage\?.*end=/.test(request.url());
  const reload = page.waitForRequest(isReport);
  await page.reload();
  const last = new URL((await reload).url()).searchParams;
  expect([Number(last.get("start")), Number(last.get("end"))]).toEqual([first(1), first(0)]);
  await page.getByRole("combobox", { name: "Time" }).click();
  const changed = page.waitForRequest(isReport);
  await page.getByRole("option", { name: "This month" }).click();
  expect(Number(new URL((await changed).url()).searchParams.get("start"))).toBe(first(0));
  expect(visitor.path()).toBe("/usage?range=month");
});

test("finds one of many keys by typing, and names it in chart and table", async () => {
  await using visitor = await arrive("/usage?group=key");
  const { page } = visitor;
  await table(visitor).getByText("Nightly batch").waitFor();
  await page.getByRole("combobox", { name: "Key", exact: true }).fill("nightly");
  await page.getByRole("option", { name: /^Nightly batch/ }).click();
  await until(async () => (await column(visitor, 1)).join() === "Nightly batch", "only one key is shown");
  expect(visitor.path()).toMatch(/^\/usage\?group=key&key=key_/);
});

test("exports the shown usage as CSV and JSON with the same totals and descriptive file names", async () => {
  await using visitor = await arrive("/usage?range=90d&group=model,key,environment");
  await table(visitor).getByText("Production website").first().waitFor();
  const shown = figure((await total(visitor, "Requests"))?.match(/Requests([\d,]+?)(?=\d* an? |[\d,]+ an? |$)/)?.[1]);
  const csv = await save(visitor, "CSV, all rows");
  expect(csv.name).toMatch(/^headrace-usage-by-model-key-environment-\d{4}-\d\d-\d\d-to-\d{4}-\d\d-\d\d\.csv$/);
  const [head, ...lines] = csv.text.trimEnd().split("\r\n");
  expect(head).toStartWith("start,end,model,key,environment,requests,");
  const json = await save(visitor, "JSON");
  expect(json.name).toBe(csv.name.replace(/csv$/, "json"));
  const { data } = JSON.parse(json.text) as { data: { requests: number }[] };
  const sum = data.reduce((all, { requests }) => all + requests, 0);
  expect(data).toHaveLength(lines.length);
  expect(lines.reduce((all, line) => all + Number(line.split(",")[5]), 0)).toBe(sum);
  expect(sum).toBe(3_000);
  expect(shown).toBeGreaterThan(0);
  await visitor.page
    .getByText(`has ${lines.length.toLocaleString("en")} rows.`)
    .first()
    .waitFor();
});

test("reports a result too large to show, with complete totals", async () => {
  await using visitor = await arrive("/");
  await visitor.page.route("**/v1/usage?*group_by*", (route) => {
    const { searchParams } = new URL(route.request().url());
    const start = Number(searchParams.get("start"));
    const day = start - (start % 86_400);
    const figures = { requests: 1, prompt_tokens: 1, completion_tokens: 1, total_tokens: 2, cost: 0, errors: 0 };
    const from = Number(searchParams.get("cursor") ?? 0);
    const data = Array.from({ length: 1_000 }, (_, at) => ({
      ...{ start: day, end: day + 86_400, key: `key_${start}_${from + at}` },
      ...{ ...figures, first_token_ms: null, tokens_per_second: null },
    }));
    return route.fulfill({ json: { object: "list", data, next: String(from + 1_000) } });
  });
  await visitor.go("/usage?group=key&range=90d");
  await visitor.page.getByText("Too many rows for this page").waitFor();
  expect(await total(visitor, "Requests")).toContain("3,000");
  await visitor.page.getByText(/^\d\d,\d{3} in total$/).waitFor();
  // Only the rows in view are drawn.
  expect(await table(visitor).locator("tbody tr").count()).toBeLessThan(80);
});

test("shows tier, rate and quota, and refusals in words with what to do", async () => {
  await using visitor = await arrive("/settings/limits");
  const { page } = visitor;
  await page.getByRole("region", { name: "Request rate of a key" }).getByText("A key sent more requests").waitFor();
  await page.getByRole("region", { name: "Rate limits" }).getByText("no limit").first().waitFor();
  await page.getByRole("row", { name: /enterprise\s*yours/ }).waitFor();
  await look(visitor, "limits");
});

test("shows an exhausted rate and a nearly spent quota as bars and words", async () => {
  await using visitor = await arrive("/settings/limits", colleagues.member.email, phone);
  await visitor.page.route("**/v1/account", async (route) => {
    const account = (await (await route.fetch()).json()) as object;
    const rate = {
      requests: { limit: 60, remaining: 0, reset_seconds: 42 },
      tokens: { limit: 10_000, remaining: 10_000, reset_seconds: 0 },
    };
    const period = { period_start: 1_793_491_200, period_end: 1_796_083_200 };
    const quota = { ...period, tokens: { limit: 1_000_000, used: 850_000 }, spend: { limit: 10, used: 12 } };
    await route.fulfill({ json: { ...account, rate, quota } });
  });
  await visitor.page.reload();
  await visitor.page.getByText("Full again in 42 s: used up").waitFor();
  await visitor.page.getByText("85% used: nearly used up").waitFor();
  await visitor.page.getByText("100% used: used up").waitFor();
  await look(visitor, "limits-used-up");
});
