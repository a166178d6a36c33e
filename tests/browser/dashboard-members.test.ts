// In a real browser: owners and admins manage who belongs to the account, within their rights; members see their own place.
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Role } from "../../src/domain/people/role.ts";
import { Browser, invite, type Person } from "../support/browser.ts";
import { operator, pagesOf } from "../support/browser-world.ts";
import { desktop, leaveBrowser, openVisitor, phone, type Visitor } from "../support/chromium.ts";
import { type DashboardWorld, openDashboardWorld } from "../support/dashboard-world.ts";
import { until } from "../support/headrace.ts";
import { look } from "../support/page-checks.ts";

const place = "/settings/members";
let world: DashboardWorld;
let at: string;
let grace: Person;

beforeAll(async () => {
  world = await openDashboardWorld();
  at = pagesOf(world.server);
  grace = await somebody("Grace Hopper", "admin");
});

afterAll(async () => {
  leaveBrowser();
  await world[Symbol.asyncDispose]();
});

/** Somebody new in the account. */
async function somebody(name: string, role: Role = "member"): Promise<Person> {
  const person = { ...operator, email: `${Bun.randomUUIDv7()}@example.test`, name };
  await invite(world.browser, { person, role });
  return person;
}

async function arrive(person: Person = operator, path = place, size = desktop): Promise<Visitor> {
  const visitor = await openVisitor({ at, size });
  await visitor.context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await world.signIn(visitor.context, person.email);
  await visitor.go(path);
  return visitor;
}

const waitForText = ({ page }: Visitor, text: string) => page.getByText(text).waitFor();
const manage = ({ page }: Visitor, { name, email }: Person) =>
  page.getByRole("button", { name: `Manage ${name}, ${email}` }).click();
const button = ({ page }: Visitor, name: string) => page.getByRole("button", { name, exact: true });
const role = ({ page }: Visitor, name: string) => page.getByRole("dialog").getByRole("radio", { name });
const roles = ["Owner", "Admin", "Member"];
const enabledRoles = async (visitor: Visitor) => {
  const enabled = await Promise.all(roles.map(async (name) => (await role(visitor, name).isEnabled()) && name));
  return enabled.filter(Boolean);
};

test("lets an owner change a role at once, and explains why the own role stays", async () => {
  const alan = await somebody("Alan Turing");
  await using ada = await arrive();
  await manage(ada, operator);
  await waitForText(ada, "You cannot change your own role.");
  expect(await enabledRoles(ada)).toEqual([]);
  await waitForText(ada, "An account needs at least one owner.");
  expect(await button(ada, "Leave the account…").isDisabled()).toBe(true);
  await look(ada, "members-oneself");
  await ada.press("Close");

  await manage(ada, alan);
  expect(await enabledRoles(ada)).toEqual(roles);
  await role(ada, "Admin").check();
  await look(ada, "members-role");
  await ada.press("Change role");
  await waitForText(ada, "Alan Turing is admin now.");
  await using visitor = await arrive(alan, place, phone);
  await visitor.page.getByRole("button", { name: "Invite", exact: true }).waitFor();
  expect([...ada.trouble, ...visitor.trouble]).toEqual([]);
});

test("sorts members by name and by the spend of this month, which it shows for each", async () => {
  await somebody("Zora Neale");
  await using ada = await arrive();
  const { page } = ada;
  const names = () => page.locator("tbody tr td:first-child p:first-child").allInnerTexts();
  await page.getByRole("cell", { name: "$0.00" }).first().waitFor();
  await ada.press("Name");
  await until(async () => (await names()).at(-1) === "Zora Neale", "the names rise");
  await ada.press("Name");
  await until(async () => (await names())[0] === "Zora Neale", "the names fall");
  await ada.press("Spend, month");
  const head = page.getByRole("columnheader", { name: "Spend, month" });
  await until(async () => (await head.getAttribute("aria-sort")) === "descending", "the highest spend is first");
  expect(ada.trouble).toEqual([]);
});

test("sorts all people, and an account's members, by spend and last use for an operator", async () => {
  await using ada = await arrive(operator, "/admin/people");
  const { page } = ada;
  for (const [column, order] of [
    ["Spend, month", "descending"],
    ["Last used", "descending"],
    ["Name", "ascending"],
  ] as const) {
    await page.getByRole("button", { name: column, exact: true }).click();
    const head = page.getByRole("columnheader", { name: column });
    await until(async () => (await head.getAttribute("aria-sort")) === order, `${column} is sorted`);
  }
  await page.getByRole("cell", { name: "$0.00" }).first().waitFor();
  const { accountId } = world.server.firstKey.record;
  await ada.go(`/admin/accounts/${accountId}?tab=members`);
  await page.getByRole("button", { name: "Spend, month" }).click();
  const head = page.getByRole("columnheader", { name: "Spend, month" });
  await until(async () => (await head.getAttribute("aria-sort")) === "descending", "the highest spend is first");
  expect(ada.trouble).toEqual([]);
});

test("lets an owner show account usage to a member, whose pages then show it", async () => {
  const rosa = await somebody("Rosa Peter");
  const asked = { model: "no-such-model", messages: [{ role: "user", content: "Hello" }] };
  expect((await world.server.request("/v1/chat/completions", { body: asked })).status).toBe(404);
  await using visitor = await arrive(rosa, "/requests");
  await waitForText(visitor, "No requests");
  await using ada = await arrive();
  await manage(ada, rosa);
  await ada.page.getByRole("switch", { name: "Can view the account's usage and logs" }).click();
  await waitForText(ada, "Rosa Peter can now see the usage of the account.");
  const sight = ada.page.getByRole("switch", { name: "Can view the account's usage and logs" });
  await until(() => sight.isChecked(), "the switch says so");
  await look(ada, "members-sight");
  await sight.click();
  await waitForText(ada, "Rosa Peter can now see only their own usage.");
  await until(async () => !(await sight.isChecked()), "the switch says so again");
  await sight.click();
  await until(() => sight.isChecked(), "and once more");
  await visitor.go("/requests");
  await visitor.page.locator("tbody tr:has(a)").first().waitFor();
  expect([...ada.trouble, ...visitor.trouble]).toEqual([]);
});

test("lets an admin manage only members, and names those who may do the rest", async () => {
  const ruth = await somebody("Ruth Teitelbaum");
  await using visitor = await arrive(grace);
  await manage(visitor, operator);
  await waitForText(visitor, "Only owners can change roles.");
  await waitForText(visitor, "An account needs at least one owner.");
  expect(await button(visitor, "Remove from the account…").isDisabled()).toBe(true);
  await visitor.press("Close");
  await manage(visitor, ruth);
  expect(await button(visitor, "Remove from the account…").isEnabled()).toBe(true);
  await look(visitor, "members-as-admin");
  await visitor.press("Close");
  await visitor.press("Invite");
  await waitForText(visitor, "Only owners can invite owners and admins.");
  expect(await enabledRoles(visitor)).toEqual(["Member"]);
  expect(visitor.trouble).toEqual([]);
});

test("removes a member's keys with the member, and lists them in the dialog", async () => {
  const jean = await somebody("Jean Bartik");
  const browser = new Browser(world.server.url);
  await browser.open("/sign-in");
  await browser.press("Sign in", { email: jean.email, password: jean.password });
  const { key } = await browser.ask("/v1/keys", { method: "POST", body: { name: "of Jean" } });
  const status = async () =>
    (await fetch(`${world.server.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } })).status;
  expect(await status()).toBe(200);
  await using ada = await arrive();
  await manage(ada, jean);
  await ada.press("Remove from the account…");
  await waitForText(ada, "API keys that they created as a member");
  await look(ada, "members-remove");
  await ada.press("Remove from the account");
  await waitForText(ada, "Jean Bartik is no longer a member of First account.");
  await ada.page.getByRole("button", { name: `Manage ${jean.name}, ${jean.email}` }).waitFor({ state: "detached" });
  expect(await status()).toBe(401);
  expect(ada.trouble).toEqual([]);
});

test("shows an invitation's link once, and disables it when withdrawn", async () => {
  await using ada = await arrive(operator, place, phone);
  const link = async (email: string, wanted = "Member") => {
    await ada.press("Invite");
    await ada.page.getByRole("dialog").getByLabel("E-mail address").fill(email);
    await role(ada, wanted).check();
    await ada.page.getByRole("dialog").getByRole("button", { name: "Invite", exact: true }).click();
    await waitForText(ada, "No mail was sent");
    await ada.press("Copy the link");
    const copied = await ada.page.evaluate(() => navigator.clipboard.readText());
    if (wanted === "Owner") await look(ada, "members-link");
    await ada.press("Done");
    await ada.page.getByText(email).first().waitFor();
    return new URL(copied).pathname;
  };
  const [first, second] = [await link("betty@example.test", "Owner"), await link("marlyn@example.test")];
  await look(ada, "members");
  await ada.press("Revoke the invitation for marlyn@example.test");
  await ada.press("Revoke invitation");
  await waitForText(ada, "The invitation for marlyn@example.test was revoked.");
  await using guest = await openVisitor({ at });
  await guest.go(first);
  expect(guest.answer().status()).toBe(200);
  expect(await guest.text()).toContain("betty@example.test");
  await guest.go(second);
  expect(guest.answer().status()).toBe(404);
  expect(ada.trouble).toEqual([]);
});

test("refuses an invalid address beside its field", async () => {
  await using ada = await arrive(operator, `${place}?invite=1`);
  const dialog = ada.page.getByRole("dialog");
  await dialog.getByLabel("E-mail address").fill("ada@");
  await dialog.getByRole("button", { name: "Invite", exact: true }).click();
  await dialog.locator("[aria-invalid=true]:focus").waitFor();
  expect(await dialog.getByRole("alert").count()).toBe(0);
});

test("shows a member the own role without refused requests, and lets the member leave", async () => {
  const kay = await somebody("Kay McNulty");
  await using visitor = await arrive(kay, place, phone);
  await waitForText(visitor, "Your role: Member");
  await look(visitor, "members-as-member");
  await visitor.press("Leave the account…");
  await waitForText(visitor, "API keys that you created as a member");
  await visitor.press("Leave the account");
  await visitor.page.waitForURL("**/settings");
  expect(await visitor.text()).toContain("You are not a member of an account.");
  expect(visitor.trouble).toEqual([]);
});
