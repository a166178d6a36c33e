// In a real browser: operators manage accounts, people, tiers and signing keys, and nobody else does.
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { invite, type Person } from "../support/browser.ts";
import { operator } from "../support/browser-world.ts";
import { desktop, leaveBrowser, openVisitor, type Visitor } from "../support/chromium.ts";
import { colleagues, type DashboardWorld, openDashboardWorld } from "../support/dashboard-world.ts";
import { until } from "../support/headrace.ts";
import { look } from "../support/page-checks.ts";

const leaver: Person = { ...operator, email: "joan@example.test", name: "Joan Clarke" };
let world: DashboardWorld;
let url: string;

beforeAll(async () => {
  const yaml = "tiers:\n  - { name: campus, requests_per_minute: 500, tokens_per_minute: 200000 }\n";
  world = await openDashboardWorld({ yaml });
  await world.fill({ keys: 4, requests: 100, chats: 0, events: 0 });
  await invite(world.browser, { role: "member", person: leaver });
  url = world.server.url;
});

afterAll(async () => {
  leaveBrowser();
  await world[Symbol.asyncDispose]();
});

async function arrive(path: string, email?: string): Promise<Visitor> {
  const visitor = await openVisitor({ at: url, size: desktop });
  await visitor.context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await visitor.page.emulateMedia({ reducedMotion: "reduce" });
  await world.signIn(visitor.context, email);
  await visitor.go(path);
  return visitor;
}

const dialog = (page: Page) => page.getByRole("dialog").last();
const copied = (page: Page) => page.evaluate(() => navigator.clipboard.readText());
const press = (page: Page, name: string) => dialog(page).getByRole("button", { name, exact: true }).click();
/** Presses a button of the question with this title. */
const answer = (page: Page, title: string | RegExp, action: string) =>
  page.getByRole("dialog", { name: title }).getByRole("button", { name: action, exact: true }).click();
const waitForText = (page: Page, text: string | RegExp) => page.getByRole("alert").filter({ hasText: text }).waitFor();

async function accountOf(name: string): Promise<Record<string, unknown>> {
  const accounts = (await world.browser.ask("/v1/admin/accounts?limit=100"))["data"] as Record<string, unknown>[];
  const account = accounts.find((one) => one["name"] === name);
  if (!account) throw new Error(`There is no account ${name}.`);
  return account;
}

test("creates an account whose owner gets a link shown once, and whose first key works", async () => {
  await using visitor = await arrive("/admin/accounts");
  const { page } = visitor;
  await page.getByRole("link", { name: "Blue Harbour Ltd" }).waitFor();
  await look(visitor, "accounts");
  await visitor.press("Create account");
  await dialog(page).getByRole("textbox", { name: "Name" }).fill("Otter Books");
  await dialog(page).getByRole("combobox", { name: "Tier" }).selectOption("campus");
  await look(visitor, "accounts-new");
  await press(page, "Create account");
  await page.getByRole("heading", { level: 1, name: "Otter Books" }).waitFor();

  await visitor.press("Invite");
  await dialog(page).getByRole("textbox", { name: "E-mail address" }).fill("otto@example.test");
  await press(page, "Invite");
  await press(page, "Copy the link");
  expect(await copied(page)).toStartWith(`${url}/invitations/`);
  await look(visitor, "accounts-invited");
  await press(page, "Done");
  await page.getByRole("cell", { name: "otto@example.test", exact: true }).waitFor();
  await page.getByRole("button", { name: "Revoke the invitation for otto@example.test" }).click();
  await answer(page, "Revoke the invitation?", "Revoke invitation");
  await page.getByText("Invite the owner").waitFor();
  await look(visitor, "accounts-members-empty");

  await page.getByRole("tab", { name: "API keys" }).click();
  await page.getByRole("button", { name: "Create API key" }).first().click();
  await dialog(page).getByRole("textbox", { name: "Name" }).fill("First");
  await press(page, "Create API key");
  await press(page, "Copy the key");
  const key = await copied(page);
  const status = async () => (await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${key}` } })).status;
  expect(await status()).toBe(200);
  await press(page, "Done");
  await page.getByRole("button", { name: "Revoke First" }).click();
  await look(visitor, "accounts-key-revoke");
  await answer(page, "Revoke “First”?", "Revoke key");
  await page.getByText("Revoked", { exact: true }).waitFor();
  expect(await status()).toBe(401);
  expect(visitor.trouble).toEqual([]);
});

test("applies an account's own limits over its tier's, and refuses a suspended one until resumed", async () => {
  const account = await accountOf("Blue Harbour Ltd");
  const path = `/v1/admin/accounts/${account["id"]}`;
  const created = await world.browser.ask(`${path}/keys`, {
    method: "POST",
    body: { name: "Shop", environment: "dev" },
  });
  const status = async () =>
    (await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${created["key"]}` } })).status;
  await using visitor = await arrive(`/admin/accounts/${account["id"]}`);
  const { page } = visitor;
  await page.getByRole("combobox", { name: "Tier" }).selectOption("enterprise");
  await page.getByRole("combobox", { name: "Tokens per month" }).selectOption({ label: "Own limit" });
  await page.getByRole("textbox", { name: "Tokens" }).fill("5000000");
  await page.getByRole("combobox", { name: "Spend per month" }).selectOption({ label: "No limit" });
  await page.getByRole("switch", { name: "Store chats" }).check();
  await visitor.press("Save");
  await waitForText(page, "Saved.");
  expect(await world.browser.ask(path)).toMatchObject({
    ...{ tier: "enterprise", monthly_tokens: 5_000_000, monthly_spend: "unlimited", store_chats: true },
  });
  await page.getByText("0 of 5,000,000").first().waitFor();
  await look(visitor, "account");
  await page.getByRole("combobox", { name: "Spend per month" }).selectOption({ label: "Same as the tier" });
  await visitor.press("Save");
  // The button rests while it is saved, and after it.
  await until(async () => (await world.browser.ask(path))["monthly_spend"] === null, "it is saved");
  expect(await world.browser.ask(path)).toMatchObject({ monthly_tokens: 5_000_000, monthly_spend: null });

  await visitor.press("Suspend");
  await look(visitor, "account-suspend");
  await answer(page, "Suspend Blue Harbour Ltd?", "Suspend account");
  await page.getByText("Suspended", { exact: true }).waitFor();
  expect(await status()).toBe(401);
  await visitor.press("Resume");
  await answer(page, "Resume Blue Harbour Ltd?", "Resume account");
  await page.getByText("Active", { exact: true }).waitFor();
  expect(await status()).toBe(200);
  expect(visitor.trouble).toEqual([]);
});

test("gives accounts one budget: creates an organization, moves an account into it and out, and deletes it", async () => {
  const account = await accountOf("Blue Harbour Ltd");
  await using visitor = await arrive("/admin/accounts?tab=organizations");
  const { page } = visitor;
  await page.getByText("No organizations").waitFor();
  await look(visitor, "organizations-empty");
  await visitor.press("Create organization");
  await dialog(page).getByRole("textbox", { name: "Name" }).fill("Harbour Group");
  await dialog(page).getByRole("combobox", { name: "Spend per month" }).selectOption({ label: "Limit" });
  await dialog(page).getByRole("textbox", { name: "USD" }).fill("5000");
  await press(page, "Create organization");
  await dialog(page).getByText("No account yet.").waitFor();

  await visitor.go(`/admin/accounts/${account["id"]}`);
  await page.getByRole("combobox", { name: "Organization" }).selectOption("Harbour Group");
  await waitForText(page, "was moved");
  await look(visitor, "account-organization");
  await visitor.go("/admin/accounts?tab=organizations");
  await page.getByText("$5,000.00 a month").waitFor();
  await look(visitor, "organizations");
  await page.getByRole("button", { name: "Harbour Group" }).click();
  await dialog(page).getByRole("link", { name: "Blue Harbour Ltd" }).waitFor();
  await look(visitor, "organization");
  await dialog(page).getByRole("link", { name: "Statement of these accounts" }).click();
  await page.getByRole("region", { name: "Statement" }).getByText("Harbour Group").waitFor();

  await visitor.go(`/admin/accounts/${account["id"]}`);
  await page.getByRole("combobox", { name: "Organization" }).selectOption("None");
  await waitForText(page, "belongs to no organization");
  await visitor.go("/admin/accounts?tab=organizations");
  await page.getByRole("button", { name: "Harbour Group" }).click();
  await press(page, "Delete organization");
  await answer(page, "Delete the organization Harbour Group?", "Delete organization");
  await page.getByText("No organizations").waitFor();
  expect(visitor.trouble).toEqual([]);
}, 120_000);

test("reports an unknown account, and does not let operators suspend their own", async () => {
  await using visitor = await arrive("/admin/accounts/acct_none");
  const { page } = visitor;
  await waitForText(page, "There is no account acct_none");
  visitor.trouble.length = 0;
  await page.getByRole("link", { name: "All accounts" }).click();
  await page.getByRole("link", { name: "First account" }).click();
  await page.getByRole("textbox", { name: "Name" }).waitFor();
  expect(await page.getByRole("button", { name: "Suspend" }).count()).toBe(0);
  expect(visitor.trouble).toEqual([]);
});

test("finds a person, grants and withdraws the operator role, sends a recovery link, and deletes after typing the address", async () => {
  await using visitor = await arrive("/admin/people");
  const { page } = visitor;
  await page.getByRole("button", { name: "Grace Hopper" }).waitFor();
  await look(visitor, "people");
  await page.getByRole("searchbox", { name: "Find by e-mail address" }).fill("JOAN@example.test");
  await visitor.press("Find");
  await page.getByRole("button", { name: leaver.name }).click();
  expect(visitor.path()).toContain("person=usr_");
  await page.getByRole("link", { name: "First account" }).waitFor();
  await look(visitor, "person");
  await press(page, "Make an operator");
  await answer(page, "Make Joan Clarke an operator?", "Make an operator");
  await waitForText(page, "is now an operator");
  await press(page, "Remove operator role");
  await answer(page, "Remove the operator role from Joan Clarke?", "Remove role");
  await waitForText(page, "is no longer an operator");

  await press(page, "Create reset link");
  await answer(page, "Create a reset link for Joan Clarke?", "Create link");
  await press(page, "Copy the link");
  expect(await copied(page)).toStartWith(`${url}/reset/`);
  await press(page, "Done");

  await press(page, "Delete person");
  const question = page.getByRole("dialog", { name: "Delete Joan Clarke?" });
  const remove = question.getByRole("button", { name: "Delete person" });
  expect(await remove.isDisabled()).toBe(true);
  await question.getByRole("textbox").fill(leaver.email);
  await look(visitor, "person-delete");
  await remove.click();
  await page.getByText("No person with this e-mail address").waitFor();
  await look(visitor, "people-none");
  await visitor.press("Show all people");
  await page.getByRole("button", { name: "Grace Hopper" }).waitFor();
  await page.getByText(leaver.email).waitFor({ state: "detached" });
  expect(visitor.trouble).toEqual([]);
});

test("creates, changes and deletes a tier, shows those of the file, and resets built-in ones", async () => {
  await using visitor = await arrive("/admin/tiers");
  const { page } = visitor;
  const tiers = async () => (await world.browser.ask("/v1/admin/tiers"))["data"] as Record<string, unknown>[];
  const named = async (name: string) => (await tiers()).find((tier) => tier["name"] === name);
  await page.getByRole("button", { name: "enterprise" }).waitFor();
  await look(visitor, "tiers");
  await visitor.press("Create tier");
  const name = dialog(page).getByRole("textbox", { name: "Name" });
  await name.fill("pro");
  await dialog(page).getByText("A tier with this name exists").waitFor();
  await name.fill("start-up");
  await dialog(page).getByRole("textbox", { name: "Requests" }).fill("300");
  await dialog(page).getByRole("combobox", { name: "Spend per month" }).selectOption({ label: "Limit" });
  await dialog(page).getByRole("textbox", { name: "USD" }).fill("250.5");
  await look(visitor, "tiers-new");
  await press(page, "Create tier");
  await waitForText(page, "The tier start-up was saved");
  expect(await named("start-up")).toMatchObject({ requests_per_minute: 300, monthly_spend: 250.5, source: "database" });

  await page.getByRole("button", { name: "start-up" }).click();
  await dialog(page).getByRole("combobox", { name: "Requests per minute" }).selectOption({ label: "No limit" });
  await press(page, "Save");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  expect(await named("start-up")).toMatchObject({ requests_per_minute: null });
  await page.getByRole("button", { name: "start-up" }).click();
  await press(page, "Delete tier");
  await answer(page, /^Delete the tier/, "Delete tier");
  await page.getByRole("button", { name: "start-up" }).waitFor({ state: "detached" });

  await page.getByRole("button", { name: "campus" }).click();
  await dialog(page).getByText("read-only here").waitFor();
  expect(await dialog(page).getByRole("textbox").count()).toBe(0);
  await look(visitor, "tiers-file");
  await press(page, "Close");

  await page.getByRole("button", { name: "pro", exact: true }).click();
  await dialog(page).getByRole("textbox", { name: "Requests" }).fill("150");
  await press(page, "Save");
  await page.getByRole("cell", { name: "Set in the dashboard" }).waitFor();
  expect(await named("pro")).toMatchObject({ requests_per_minute: 150, source: "database" });
  await page.getByRole("button", { name: "pro", exact: true }).click();
  await press(page, "Delete tier");
  await answer(page, /^Delete the tier/, "Delete tier");
  await page.getByRole("cell", { name: "Set in the dashboard" }).waitFor({ state: "detached" });
  expect(await named("pro")).toMatchObject({ requests_per_minute: 100, source: "built-in" });
  expect(visitor.trouble).toEqual([]);
});

test("says before a signing key rotation that no token ends, and offers no second rotation", async () => {
  await using visitor = await arrive("/admin/signing-keys");
  const { page } = visitor;
  await visitor.press("Rotate");
  await dialog(page).getByText("Existing tokens stay valid").waitFor();
  await look(visitor, "signing-keys-rotate");
  await answer(page, "Rotate the signing key?", "Rotate key");
  await page.getByText("Upcoming", { exact: true }).waitFor();
  await page.getByText("Signing", { exact: true }).waitFor();
  expect(await page.getByRole("button", { name: "Rotate" }).isDisabled()).toBe(true);
  await look(visitor, "signing-keys");
});

test("shows non-operators who may use an operator page, without failed requests", async () => {
  await using visitor = await arrive("/admin/accounts", colleagues.admin.email);
  const { page } = visitor;
  for (const place of ["accounts", "people", "tiers", "signing-keys", "upstreams", "nodes", "system"]) {
    await visitor.go(`/admin/${place}`);
    await page.getByRole("heading", { name: "Only for operators of this server" }).waitFor();
  }
  await look(visitor, "operators-only");
  expect(await page.getByRole("navigation", { name: "Administration" }).count()).toBe(0);
  expect(visitor.trouble).toEqual([]);
});
