// In a real browser: what models here cost comes first, the list of vendors' prices is searched, and a model takes a price of it.
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { priceList } from "../../src/prices/price-list.ts";
import { desktop, leaveBrowser, openVisitor, phone, type Visitor } from "../support/chromium.ts";
import { colleagues, type DashboardWorld, openDashboardWorld } from "../support/dashboard-world.ts";
import { until } from "../support/headrace.ts";
import { look } from "../support/page-checks.ts";

let world: DashboardWorld;
let url: string;

beforeAll(async () => {
  world = await openDashboardWorld();
  await world.fill({ keys: 2, requests: 50, chats: 0, events: 0 });
  url = world.server.url;
  const deployments = [{ upstream: "north", model: "aurora-mini" }];
  await world.browser.ask("/v1/admin/models", { method: "POST", body: { id: "assistant", deployments } });
});

afterAll(async () => {
  leaveBrowser();
  await world[Symbol.asyncDispose]();
});

async function arrive(path: string, email?: string, size = desktop): Promise<Visitor> {
  const visitor = await openVisitor({ at: url, size });
  await world.signIn(visitor.context, email);
  await visitor.go(path);
  return visitor;
}

const own = (page: Page) => page.getByRole("region", { name: "Prices of this server" });
const listed = (page: Page) => page.getByRole("region", { name: "The price list" });
const model = () => world.browser.ask("/v1/admin/models/assistant");

test("lists this server's models first, unpriced ones before others, with the price list's date and package", async () => {
  await using visitor = await arrive("/prices");
  const { page } = visitor;
  const { date, source, prices } = priceList();
  await own(page).getByRole("link", { name: "assistant" }).waitFor();
  await own(page).getByRole("link", { name: "aurora-large" }).waitFor();
  const names = await own(page).locator("tbody tr td:first-child").allTextContents();
  expect(names.indexOf("assistant")).toBeLessThan(names.indexOf("aurora-large"));
  const row = own(page).locator("tr", { hasText: "ember-code" });
  await row.getByText("No price").waitFor();
  await page.getByText(`${prices.length.toLocaleString("en")} prices of`).waitFor();
  await page.getByText(`as of ${date}, from ${source}`).waitFor();
  await listed(page).getByRole("button").first().waitFor();
  await look(visitor, "prices");
  expect(visitor.trouble).toEqual([]);
});

test("finds a price by parts of name and vendor, with a shareable address and all rates", async () => {
  await using visitor = await arrive("/prices");
  const { page } = visitor;
  await page.getByLabel("Search", { exact: true }).fill("haiku-5-5");
  // It is searched for once somebody pauses.
  await until(() => visitor.path() === "/prices?search=haiku-5-5", "the search is in the address");
  await page.getByRole("combobox", { name: "Vendor" }).click();
  await page.getByRole("option", { name: /^Anthropic/ }).click();
  await listed(page).getByRole("button", { name: "claude-haiku-5-5", exact: true }).click();
  const drawer = page.getByRole("dialog");
  await drawer.getByText("Prompts of more than 100,000 tokens").first().waitFor();
  await drawer.getByText("Cached input", { exact: true }).waitFor();
  expect(visitor.path()).toBe("/prices?search=haiku-5-5&vendor=anthropic&price=anthropic%2Fclaude-haiku-5-5");
  await look(visitor, "prices-one");
  await visitor.press("Close");
  await page.getByLabel("Search", { exact: true }).fill("no such model at all");
  await page.getByRole("heading", { name: "No matching price" }).waitFor();
  await visitor.press("Show all prices");
  await listed(page).getByRole("button").first().waitFor();
  expect(visitor.path()).toBe("/prices");
  await visitor.go("/prices?price=openai%2Fgpt-6.1-sol");
  await drawer.getByRole("heading", { name: "openai/gpt-6.1-sol" }).waitFor();
  expect(visitor.trouble).toEqual([]);
});

test("gives a model a listed price by name, and then its own rates", async () => {
  await using visitor = await arrive("/prices?price=openai%2Fgpt-6.1-sol");
  const { page } = visitor;
  const drawer = page.getByRole("dialog").last();
  await drawer.getByRole("combobox", { name: "Use this price for" }).fill("assist");
  await page.getByRole("option", { name: "assistant" }).click();
  await drawer.getByText("Current price: no price").waitFor();
  await look(visitor, "prices-take");
  await visitor.press("Use this price");
  await drawer.getByText("This model has this price.").waitFor();
  expect(await model()).toMatchObject({
    ...{ price: { input: 2, cached_input: 0.1, output: 10 } },
    settings: { price: null, price_of: "openai/gpt-6.1-sol" },
  });
  await visitor.press("Close");
  await own(page).getByRole("button", { name: "openai/gpt-6.1-sol" }).waitFor();

  await own(page).getByRole("link", { name: "assistant" }).click();
  await drawer.getByText("Prompts of more than 272,000 tokens").first().waitFor();
  await look(visitor, "prices-model");
  await visitor.press("Edit");
  await drawer.getByRole("combobox", { name: "Model in the price list" }).waitFor();
  await look(visitor, "prices-model-list");
  await visitor.press("Customize these rates");
  expect(await drawer.getByRole("textbox", { name: "Price of output" }).inputValue()).toBe("10");
  await drawer.getByRole("textbox", { name: "Price of output" }).fill("12");
  await look(visitor, "prices-model-own");
  await visitor.press("Save");
  await drawer.getByText("$2.00 in ($0.10 cached), $12.00 out per million tokens").waitFor();
  const changed = await model();
  expect(changed).toMatchObject({ settings: { price: { input: 2, output: 12 }, price_of: null } });
  expect((changed["price"] as { variants: unknown[] }).variants.length).toBeGreaterThan(0);

  await visitor.press("Edit");
  await drawer.getByText("From the price list", { exact: true }).click();
  await drawer.getByRole("combobox", { name: "Model in the price list" }).fill("haiku-5-5");
  await page.getByRole("option", { name: "anthropic/claude-haiku-5-5", exact: true }).click();
  await visitor.press("Save");
  await drawer.getByText("in the price list.").waitFor();
  expect(await model()).toMatchObject({ settings: { price: null, price_of: "anthropic/claude-haiku-5-5" } });
  expect(visitor.trouble).toEqual([]);
}, 60_000);

test("lets a member look up prices without offering a change", async () => {
  await using visitor = await arrive("/prices?price=openai%2Fgpt-6.1-sol", colleagues.member.email, phone);
  const { page } = visitor;
  await page.getByRole("dialog").getByRole("heading", { name: "openai/gpt-6.1-sol" }).waitFor();
  expect(await page.getByRole("dialog").getByRole("button", { name: "Use this price" }).count()).toBe(0);
  await visitor.press("Close");
  await own(page).getByText("No price").first().waitFor();
  expect(await own(page).getByRole("link").count()).toBe(0);
  await look(visitor, "prices-member");
  expect(visitor.trouble).toEqual([]);
});
