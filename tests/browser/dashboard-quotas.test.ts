// In a real browser: quotas per window are added, changed and removed wherever they can be, with what is used of each.
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Locator, Page } from "playwright-core";
import { desktop, leaveBrowser, openVisitor, phone, type Visitor } from "../support/chromium.ts";
import { colleagues, type DashboardWorld, openDashboardWorld } from "../support/dashboard-world.ts";
import { until } from "../support/headrace.ts";
import { look } from "../support/page-checks.ts";
import { unfold } from "../support/unfold.ts";

let world: DashboardWorld;
let url: string;

beforeAll(async () => {
  const yaml = `tiers:
  - name: campus
    requests_per_minute: 500
    tokens_per_minute: 200000
    environments: [live, test, dev]
    quotas: [{ unit: usd, amount: 5, per: day, models: [aurora-*] }]
`;
  world = await openDashboardWorld({ yaml });
  await world.fill({ keys: 2, requests: 0, chats: 0, events: 0 });
  url = world.server.url;
}, 30_000);

afterAll(async () => {
  leaveBrowser();
  await world[Symbol.asyncDispose]();
});

async function arrive(path: string, email?: string, size = desktop): Promise<Visitor> {
  const visitor = await openVisitor({ at: url, size });
  await visitor.context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await world.signIn(visitor.context, email);
  await visitor.go(path);
  return visitor;
}

const ask = (path: string, method = "GET", body?: unknown) =>
  world.browser.ask(path, { method, ...(body === undefined ? {} : { body }) });
const waitForText = (page: Page, text: string | RegExp) => page.getByText(text).first().waitFor();
const quotaOf = (page: Page, number: number) => page.getByRole("region", { name: `Quota ${number}`, exact: true });

interface Rule {
  amount: string;
  of?: string;
  per?: string;
  window?: string;
  models?: string;
}

/** Writes into the fields of one quota. */
async function write(quota: Locator, { amount, of, per, window, models }: Rule): Promise<void> {
  await quota.getByRole("textbox", { name: "Amount" }).fill(amount);
  if (of) await quota.getByRole("combobox", { name: "Unit", exact: true }).selectOption(of);
  if (per) await quota.getByRole("combobox", { name: "Per", exact: true }).selectOption(per);
  if (window) await quota.getByRole("combobox", { name: "Window" }).selectOption(window);
  if (models) {
    await quota.getByLabel("Models", { exact: true }).fill(models);
    await quota.getByLabel("Models", { exact: true }).press("Enter");
    // What there is to choose from is shown for as long as the keyboard is there.
    await quota.getByLabel("Models", { exact: true }).press("Tab");
  }
}

async function add(page: Page, number: number, rule: Rule): Promise<void> {
  await page.getByRole("button", { name: "Add a quota" }).click();
  // Without a step in between, whoever goes by keyboard writes on.
  await until(
    () =>
      quotaOf(page, number)
        .getByRole("textbox", { name: "Amount" })
        .evaluate((field) => field === document.activeElement),
    "the keyboard is at the amount",
  );
  await write(quotaOf(page, number), rule);
}

async function chat(key: string, model = "aurora-mini"): Promise<number> {
  const body = JSON.stringify({ model, messages: [{ role: "user", content: "Hello" }], max_tokens: 20 });
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  return (await fetch(`${url}/v1/chat/completions`, { method: "POST", headers, body })).status;
}

test("gives a tier quotas for each kind of window, shows errors at fields, and keeps unchanged ones", async () => {
  await using visitor = await arrive("/admin/tiers");
  const { page } = visitor;
  const drawer = page.getByRole("dialog");
  const press = (name: string) => drawer.getByRole("button", { name, exact: true }).click();
  const saved = async () => {
    const tiers = (await ask("/v1/admin/tiers"))["data"] as { name: string; quotas: unknown[] }[];
    return tiers.find(({ name }) => name === "research")?.quotas;
  };
  await visitor.press("Create tier");
  await drawer.getByRole("textbox", { name: "Name" }).fill("research");
  await add(page, 1, { amount: "200", per: "5h" });
  expect(await quotaOf(page, 1).getByRole("combobox", { name: "Window" }).textContent()).toBe("From first use");
  await add(page, 2, { amount: "2.5", of: "usd", per: "week", window: "rolling", models: "aurora-*" });
  await add(page, 3, { amount: "1000000", of: "tokens", per: "other" });
  await quotaOf(page, 3).getByLabel("Tag", { exact: true }).fill("team a");
  await quotaOf(page, 3).getByRole("switch", { name: "Hard stop" }).check();
  expect(await quotaOf(page, 1).getByRole("switch", { name: "Hard stop" }).count()).toBe(0);
  await quotaOf(page, 3).getByRole("textbox", { name: "Length" }).fill("400");
  await quotaOf(page, 3).getByRole("combobox", { name: "Time unit" }).selectOption({ label: "days" });
  await press("Create tier");
  await waitForText(page, "Must be from one minute to 366 days.");
  await look(visitor, "quotas-tier-wrong");
  await quotaOf(page, 3).getByRole("textbox", { name: "Length" }).fill("10");
  await press("Create tier");
  await quotaOf(page, 3)
    .getByText(/^Must /)
    .waitFor();
  expect(await quotaOf(page, 3).getByLabel("Tag", { exact: true }).getAttribute("aria-invalid")).toBe("true");
  // The server was asked, and refused it.
  expect(visitor.trouble.splice(0)).toHaveLength(2);
  await quotaOf(page, 3).getByLabel("Tag", { exact: true }).fill("team-a");
  await add(page, 4, { amount: "", per: "day" });
  await press("Create tier");
  await waitForText(page, "Enter an amount.");
  await quotaOf(page, 4).getByRole("textbox", { name: "Amount" }).fill("5");
  await quotaOf(page, 4).getByRole("combobox", { name: "Per", exact: true }).selectOption("5h");
  await press("Create tier");
  await waitForText(page, "The list already has a quota of this kind");
  await press("Remove quota 4");
  await waitForText(page, "1,000,000 tokens per 10 d with the tag team-a, hard stop");
  await look(visitor, "quotas-tier");
  await press("Create tier");
  await drawer.waitFor({ state: "detached" });
  const wanted = [
    { unit: "requests", amount: 200, per: "5h", window: "rolling" },
    { unit: "usd", amount: 2.5, per: "week", window: "rolling", models: ["aurora-*"] },
    { unit: "tokens", amount: 1_000_000, per: 864_000, window: "rolling", tag: "team-a", hard_stop: true },
  ];
  expect(await saved()).toEqual(wanted);

  await page.getByRole("button", { name: "research" }).click();
  await press("Save");
  await drawer.waitFor({ state: "detached" });
  expect(await saved()).toEqual(wanted);
  await page.getByRole("button", { name: "campus" }).click();
  await waitForText(page, "$5.00 per day for aurora-*");
  expect(visitor.trouble).toEqual([]);
}, 60_000);

test("shows an account's tier quotas or its own list, with usage by environment", async () => {
  const path = `/v1/admin/accounts/${world.accountId}`;
  await ask(path, "PATCH", { tier: "campus" });
  expect(await chat(world.server.key, "aurora-large")).toBe(200);
  await using visitor = await arrive(`/admin/accounts/${world.accountId}`);
  const { page } = visitor;
  const used = page.getByRole("progressbar", { name: "Spend per day for aurora-*, used" }).first();
  await used.waitFor({ state: "attached" });
  await page.getByRole("combobox", { name: "Quotas" }).selectOption({ label: "Own quotas" });
  await add(page, 1, { amount: "10", per: "hour" });
  await visitor.press("Save");
  await waitForText(page, "Saved.");
  expect((await ask(path))["quotas"]).toEqual([{ unit: "requests", amount: 10, per: "hour", window: "calendar" }]);
  for (let i = 0; i < 8; i++) expect(await chat(world.server.key)).toBe(200);
  await page.reload();
  await page.getByText("Nearly used up").first().waitFor();
  await look(visitor, "quotas-account");
  await visitor.go("/settings/limits");
  await page.getByText(/^\d of 10 left$/).waitFor();
  await page.getByText("Nearly used up").waitFor();
  await look(visitor, "quotas-limits");
  await visitor.go("/");
  await page.getByText("Nearly used up").waitFor();

  await visitor.go(`/admin/accounts/${world.accountId}`);
  await page.getByRole("combobox", { name: "Quotas" }).selectOption({ label: "Same as the tier" });
  await visitor.press("Save");
  await until(async () => (await ask(path))["quotas"] === null, "it is saved");
  await ask(path, "PATCH", { tier: "enterprise" });
  expect(visitor.trouble).toEqual([]);
}, 60_000);

test("creates a key with quotas, shows usage, remainder and reset, and changes and removes them", async () => {
  await using visitor = await arrive("/settings/api-keys");
  const { page } = visitor;
  await visitor.press("Create API key");
  await page.getByRole("dialog").getByRole("textbox", { name: "Name" }).fill("Nightly job");
  await unfold(page, "More settings", "Other limits");
  await add(page, 1, { amount: "2", per: "5h" });
  await add(page, 2, { amount: "1", of: "usd", per: "month", models: "aurora-*" });
  await look(visitor, "quotas-key-new");
  await visitor.press("Create key");
  await visitor.press("Copy the key");
  const key = await page.evaluate(() => navigator.clipboard.readText());
  await visitor.press("Done");
  expect([await chat(key), await chat(key), await chat(key)]).toEqual([200, 200, 403]);
  await page.getByRole("link", { name: "Nightly job" }).click();
  const quotas = page.getByRole("region", { name: "Quotas" });
  await quotas.getByText("Requests per 5 hours").waitFor();
  await quotas.getByText("Used up").waitFor();
  await quotas.getByText("0 of 2 left").waitFor();
  await quotas.getByText(/resets in 5 hours, on/).waitFor();
  await look(visitor, "quotas-key");

  await visitor.press("Edit");
  await unfold(page, "More settings", "Other limits");
  await page.getByRole("dialog").getByText("Used up").waitFor();
  await quotaOf(page, 1).getByRole("textbox", { name: "Amount" }).fill("3");
  await visitor.press("Remove quota 2");
  await look(visitor, "quotas-key-edit");
  await visitor.press("Save");
  await quotas.getByText("1 of 3 left").waitFor();
  expect(await quotas.getByText("Spend per month").count()).toBe(0);
  expect([await chat(key), await chat(key)]).toEqual([200, 403]);
  await visitor.press("Edit");
  await unfold(page, "More settings", "Other limits");
  await visitor.press("Remove quota 1");
  await visitor.press("Save");
  await quotas.waitFor({ state: "detached" });
  expect(await chat(key)).toBe(200);
  expect(visitor.trouble).toEqual([]);
}, 60_000);

test("lets an owner limit a member, who sees the remainder without changing it", async () => {
  const { email, name } = colleagues.member;
  await using ada = await arrive("/settings/members");
  const manage = () => ada.page.getByRole("button", { name: `Manage ${name}, ${email}` }).click();
  await manage();
  await add(ada.page, 1, { amount: "0.5", of: "usd", per: "day" });
  await look(ada, "quotas-member");
  await ada.press("Save quotas");
  await waitForText(ada.page, `The quotas of ${name} were saved`);
  await ada.page.getByRole("cell", { name: "$0.50 per day" }).waitFor();

  await using katherine = await arrive("/settings/members", email, phone);
  await waitForText(katherine.page, "Spend per day");
  await waitForText(katherine.page, "$0.50 of $0.50 left");
  await look(katherine, "quotas-own");
  await katherine.go("/settings/limits");
  await waitForText(katherine.page, "Spend per day, your quota");

  await using grace = await arrive("/settings/members", colleagues.admin.email);
  await grace.page.getByRole("button", { name: /^Manage Ada Lovelace/ }).click();
  await waitForText(grace.page, "Only owners can set quotas for owners and admins.");
  expect(await grace.page.getByRole("button", { name: "Add a quota" }).count()).toBe(0);

  await manage();
  await quotaOf(ada.page, 1).getByText("$0.50 of $0.50 left").waitFor();
  await ada.press("Remove quota 1");
  await ada.press("Save quotas");
  await ada.page.getByRole("cell", { name: "$0.50 per day" }).waitFor({ state: "detached" });
  expect([...ada.trouble, ...katherine.trouble, ...grace.trouble]).toEqual([]);
}, 60_000);

test("lets a member ask for more of a quota, and an owner raise it for a time and end that", async () => {
  const { email, name } = colleagues.member;
  await using ada = await arrive("/settings/members");
  await ada.page.getByRole("button", { name: `Manage ${name}, ${email}` }).click();
  await add(ada.page, 1, { amount: "0.5", of: "usd", per: "day" });
  await ada.press("Save quotas");
  await waitForText(ada.page, `The quotas of ${name} were saved`);

  await using katherine = await arrive("/settings/limits", email, phone);
  await katherine.press("Request more: Spend per day");
  await katherine.page.getByLabel("Additional amount, USD").fill("2");
  await katherine.page.getByLabel("Reason").fill("Evaluation of the new model, until Friday");
  await look(katherine, "limit-request-ask");
  await katherine.press("Send request");
  await waitForText(katherine.page, "Your request was sent.");
  await waitForText(katherine.page, `${email}: $2.00 more, Spend per day`);
  await look(katherine, "limit-request-own");

  await ada.go("/settings/members");
  await waitForText(ada.page, `${email}: $2.00 more, Spend per day`);
  await look(ada, "limit-requests");
  await ada.press(`Grant ${email} more`);
  await ada.page.getByRole("textbox", { name: "Additional amount, USD" }).fill("1.5");
  await look(ada, "limit-request-grant");
  await ada.page.getByRole("dialog").getByRole("button", { name: "Grant", exact: true }).click();
  await waitForText(ada.page, /Raised until/);
  await katherine.go("/settings/limits");
  await waitForText(katherine.page, "$2.00 of $2.00 left");

  await ada.press(`End the raise of ${email}`);
  await ada.page.getByRole("dialog").getByRole("button", { name: "End now", exact: true }).click();
  await ada.page.getByText("Requests for more").waitFor({ state: "detached" });
  await katherine.go("/settings/limits");
  await waitForText(katherine.page, "$0.50 of $0.50 left");
  const { data } = (await ask("/v1/members")) as { data: { id: string; email: string }[] };
  await ask(`/v1/members/${data.find((one) => one.email === email)?.id}`, "PATCH", { quotas: null });
  expect([...ada.trouble, ...katherine.trouble]).toEqual([]);
}, 60_000);

test("lets an owner set the budget of each end user and of single ones, and keeps it from members", async () => {
  await using visitor = await arrive("/settings/limits");
  const { page } = visitor;
  await visitor.press("Change default");
  await visitor.press("Add a quota");
  await write(quotaOf(page, 1), { amount: "0.5", of: "usd", per: "day" });
  await look(visitor, "end-users-default");
  await visitor.press("Save quotas");
  await waitForText(page, "The budget was saved");
  const name = "customer-4711-with-a-rather-long-name@example.test";
  await page.getByRole("textbox", { name: "End user" }).fill(name);
  await visitor.press("Set budget");
  await visitor.press("Add a quota");
  await write(quotaOf(page, 1), { amount: "5", of: "usd", per: "month" });
  await visitor.press("Save quotas");
  await page.getByRole("listitem").getByText(name, { exact: true }).waitFor();
  await look(visitor, "end-users");
  const budgets = await ask("/v1/account/end-users");
  expect(budgets).toMatchObject({
    default_quotas: [{ unit: "usd", amount: 0.5, per: "day", window: "calendar" }],
    data: [{ id: name, quotas: [{ unit: "usd", amount: 5, per: "month" }] }],
  });
  await visitor.press(`Remove ${name}`);
  await until(async () => JSON.stringify((await ask("/v1/account/end-users"))["data"]) === "[]", "it is removed");
  await ask("/v1/account/end-users", "PUT", { default_quotas: null });
  expect(visitor.trouble).toEqual([]);
  await using member = await arrive("/settings/limits", colleagues.member.email);
  await member.page.getByText("What the limits mean").waitFor();
  expect(await member.page.getByText("Budgets of end users").count()).toBe(0);
}, 120_000);

test("lets a person limit an app's use in their name, and shows usage beside the limit", async () => {
  await using visitor = await arrive("/apps?tab=allowed");
  const { page } = visitor;
  await visitor.press("Limit Desk Assistant for First account");
  await add(page, 1, { amount: "50", per: "day", models: "aurora-mini" });
  await look(visitor, "quotas-app");
  await visitor.press("Save quotas");
  await waitForText(page, "The limits of Desk Assistant were saved");
  const handler = page.getByRole("list", { name: "Apps I allowed" }).locator("> li", { hasText: "Desk Assistant" });
  await handler.getByText("Requests per day for aurora-mini").waitFor();
  await handler.getByText("50 of 50 left").waitFor();
  await look(visitor, "quotas-apps");
  await visitor.press("Limit Desk Assistant for First account");
  await visitor.press("Remove quota 1");
  await visitor.press("Save quotas");
  await handler.getByText("50 of 50 left").waitFor({ state: "detached" });
  expect(visitor.trouble).toEqual([]);
}, 60_000);
