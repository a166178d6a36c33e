// In a real browser: a number that is typed, corrected or left unfinished is sent as it stands in its field, or not at all.
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Locator } from "playwright-core";
import { pagesOf } from "../support/browser-world.ts";
import { leaveBrowser, openVisitor, type Visitor } from "../support/chromium.ts";
import { type DashboardWorld, openDashboardWorld } from "../support/dashboard-world.ts";

let world: DashboardWorld;

beforeAll(async () => {
  world = await openDashboardWorld();
  await world.browser.ask("/v1/admin/models", {
    ...{ method: "POST", body: { id: "team/corrected", price: { input: 1.5, output: 2 } } },
  });
  await world.browser.ask("/v1/admin/tiers/corrected", {
    ...{ method: "PUT", body: { requests_per_minute: 100, tokens_per_minute: null, monthly_spend: 1.5 } },
  });
});

afterAll(async () => {
  leaveBrowser();
  await world[Symbol.asyncDispose]();
});

async function arrive(path: string): Promise<Visitor> {
  const visitor = await openVisitor({ at: pagesOf(world.server) });
  await world.signIn(visitor.context);
  await visitor.go(path);
  return visitor;
}

const last = ({ page }: Visitor) => page.getByRole("dialog").last();
const press = (visitor: Visitor, name: string) => last(visitor).getByRole("button", { name, exact: true }).click();
const field = (visitor: Visitor, name: string) => last(visitor).getByRole("textbox", { name, exact: true });

/** Key by key, from the end of what stands there. */
async function type(into: Locator, ...keys: readonly string[]): Promise<void> {
  await into.focus();
  await into.press("End");
  for (const key of keys) await into.press(key);
}

test("keeps the decimal point of a price while its last digit is corrected", async () => {
  await using visitor = await arrive("/catalog?model=team%2Fcorrected");
  const model = () => world.browser.ask("/v1/admin/models/team%2Fcorrected");
  await press(visitor, "Edit");
  await type(field(visitor, "Price of input"), "Backspace", "2");
  expect(await field(visitor, "Price of input").inputValue()).toBe("1.2");
  await type(field(visitor, "Price of output"), "Backspace", "0", ".", "0", "5");
  await press(visitor, "Save");
  await last(visitor).getByText("$1.20 in, $0.05 out per million tokens").waitFor();
  expect(await model()).toMatchObject({ price: { input: 1.2, output: 0.05 } });
  expect(visitor.trouble).toEqual([]);
});

test("refuses an incomplete price at its field without a request", async () => {
  await using visitor = await arrive("/catalog?model=team%2Fcorrected");
  const { page } = visitor;
  const sent: string[] = [];
  page.on("request", (request) => {
    if (request.method() !== "GET") sent.push(request.url());
  });
  await press(visitor, "Edit");
  await field(visitor, "Price of input").fill("");
  await type(field(visitor, "Price of input"), ".", "Enter");
  await last(visitor).getByText("Is not a number.").waitFor();
  expect(sent).toEqual([]);
  expect(visitor.trouble).toEqual([]);
});

test("keeps decimal points and zeros of a tier's limits while typing, and does not take a lone point as no limit", async () => {
  await using visitor = await arrive("/admin/tiers");
  const { page } = visitor;
  const tier = async () => {
    const tiers = (await world.browser.ask("/v1/admin/tiers"))["data"] as Record<string, unknown>[];
    return tiers.find((one) => one["name"] === "corrected");
  };
  await page.getByRole("button", { name: "corrected", exact: true }).click();
  await type(field(visitor, "USD"), "Backspace", "2");
  expect(await field(visitor, "USD").inputValue()).toBe("1.2");
  await type(field(visitor, "Requests"), "Home", "Delete", "2");
  await press(visitor, "Save");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  expect(await tier()).toMatchObject({ requests_per_minute: 200, monthly_spend: 1.2 });

  await page.getByRole("button", { name: "corrected", exact: true }).click();
  await field(visitor, "USD").fill("");
  await type(field(visitor, "USD"), ".", "Enter");
  await last(visitor).getByText("Is not a number.").waitFor();
  expect(await tier()).toMatchObject({ monthly_spend: 1.2 });
  expect(visitor.trouble).toEqual([]);
});

test("keeps the decimal point of an account's limit while typing", async () => {
  const accounts = (await world.browser.ask("/v1/admin/accounts?limit=100"))["data"] as Record<string, unknown>[];
  const path = `/v1/admin/accounts/${accounts[0]?.["id"]}`;
  await world.browser.ask(path, { method: "PATCH", body: { monthly_spend: 1.5 } });
  await using visitor = await arrive(`/admin/accounts/${accounts[0]?.["id"]}`);
  const { page } = visitor;
  await type(page.getByRole("textbox", { name: "USD" }), "Backspace", "2");
  await visitor.press("Save");
  await page.getByRole("alert").filter({ hasText: "Saved." }).waitFor();
  expect(await world.browser.ask(path)).toMatchObject({ monthly_spend: 1.2 });
  // At once: what is typed stays, though the account is read again meanwhile.
  const usd = page.getByRole("textbox", { name: "USD" });
  await usd.fill("");
  await type(usd, ".", "Enter");
  await page.getByText("Is not a number.").waitFor();
  expect(await world.browser.ask(path)).toMatchObject({ monthly_spend: 1.2 });
  expect(visitor.trouble).toEqual([]);
});

test("refuses a new key whose spend limit is a lone point instead of creating one without a limit", async () => {
  await using visitor = await arrive("/settings/api-keys");
  await visitor.press("Create API key");
  await field(visitor, "Name").fill("Unfinished");
  await type(field(visitor, "Spend per month"), ".", "Enter");
  await last(visitor).getByText("Is not a number.").waitFor();
  const keys = (await world.browser.ask("/v1/keys"))["data"] as Record<string, unknown>[];
  expect(keys.filter((key) => key["name"] === "Unfinished")).toEqual([]);
  expect(visitor.trouble).toEqual([]);
});

test("types a temperature key by key in the playground, and sends it as shown", async () => {
  await using visitor = await arrive("/playground?model=ember-code");
  const { page } = visitor;
  const temperature = page.getByLabel("Temperature", { exact: true });
  await type(temperature, "0", ".", "7");
  expect(await temperature.inputValue()).toBe("0.7");
  await type(temperature, "Backspace", "5");
  expect(await temperature.inputValue()).toBe("0.5");
  expect(visitor.trouble).toEqual([]);
});
