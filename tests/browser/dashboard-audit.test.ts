// In a real browser: the audit log says who did what in sentences, is filtered by its address, and has each event as the API does.
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { desktop, leaveBrowser, openVisitor, phone, type Visitor } from "../support/chromium.ts";
import { colleagues, type DashboardWorld, openDashboardWorld } from "../support/dashboard-world.ts";
import { until } from "../support/headrace.ts";
import { look } from "../support/page-checks.ts";

let world: DashboardWorld;
let url: string;

beforeAll(async () => {
  world = await openDashboardWorld();
  await world.fill({ keys: 12, requests: 100, chats: 0, events: 2_000 });
  url = world.server.url;
}, 60_000);

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

const rows = (page: Page) => page.locator("tbody tr:has(button)");
const sentences = (page: Page) => rows(page).locator("button").allTextContents();

test("shows an admin actor, action and target in words, and filters all of them", async () => {
  await using visitor = await arrive("/settings/audit-log", colleagues.admin.email);
  const { page } = visitor;
  await rows(page).first().waitFor();
  for (const sentence of [
    "Ada Lovelace created the app Invoice Reader in Development",
    "Katherine Johnson joined First account as member",
  ])
    await until(async () => (await sentences(page)).includes(sentence), sentence);
  await look(visitor, "audit");

  await page.getByRole("combobox", { name: "Event" }).click();
  await page.getByRole("option", { name: "Credential refused" }).click();
  await until(() => visitor.path() === "/settings/audit-log?action=credential.refused", "the address");
  await until(
    async () => (await sentences(page)).every((sentence) => /^The key .+ was refused$/.test(sentence)),
    "those",
  );
  await page.reload();
  await rows(page).first().waitFor();
  expect(new Set(await rows(page).locator("p").allTextContents())).toContain("Expired");

  await visitor.go("/settings/audit-log?action=key.updated");
  await rows(page).first().waitFor();
  expect((await sentences(page))[0]).toMatch(/^Ada Lovelace changed the key .+$/);
  expect(await rows(page).first().textContent()).toContain("rate limit: none → 600");
  expect(visitor.trouble).toEqual([]);
});

test("opens an audit event by keyboard, shows the API's JSON, and links to the target's other events", async () => {
  await using visitor = await arrive("/settings/audit-log?action=key.created");
  const { page } = visitor;
  // The newest is the server's own first key.
  const second = rows(page).nth(1).locator("button");
  await second.focus();
  await page.keyboard.press("Enter");
  const drawer = page.getByRole("dialog", { name: "Key created" });
  await drawer.getByRole("button", { name: "The event as the API returns it" }).click();
  await drawer.getByRole("button", { name: "Copy the event" }).click();
  const event = JSON.parse(await page.evaluate(() => navigator.clipboard.readText()));
  expect(event).toMatchObject({ object: "audit_event", action: "key.created", actor: { type: "person" } });
  await page.keyboard.press("Escape");
  await drawer.waitFor({ state: "detached" });
  expect(await second.evaluate((element) => element === document.activeElement)).toBe(true);

  await second.click();
  await look(visitor, "audit-event");
  await drawer.getByRole("button", { name: "Show this object's history" }).click();
  await until(
    () => visitor.path() === `/settings/audit-log?action=key.created&target=${event.target_id}`,
    "the address",
  );
  // Once more, and it is chosen no more.
  await page.getByRole("combobox", { name: "Event" }).click();
  await page.getByRole("option", { name: "Key created" }).click();
  await until(() => visitor.path() === `/settings/audit-log?target=${event.target_id}`, "whatever happened to it");
  await until(async () => (await sentences(page)).some((sentence) => sentence.includes("revoked")), "other events");
  expect(visitor.trouble).toEqual([]);
});

test("scrolls thousands of audit events to the first, with a few dozen drawn at a time", async () => {
  await using visitor = await arrive("/settings/audit-log");
  const { page } = visitor;
  await rows(page).first().waitFor();
  const whole = page.getByText(/^2,\d\d\d in total/);
  let most = 0;
  await until(
    async () => {
      const drawn = await page.getByRole("region", { name: "Events" }).evaluate((element) => {
        element.scrollTop = element.scrollHeight;
        return element.querySelectorAll("tbody tr").length;
      });
      most = Math.max(most, drawn);
      return (await whole.count()) > 0;
    },
    "the first event",
    30_000,
  );
  expect(most).toBeLessThan(60);
  expect(visitor.trouble).toEqual([]);
});

test("continues an audit search through empty pages, and asks before searching on for long", async () => {
  await using visitor = await arrive("/settings/audit-log");
  const { page } = visitor;
  await rows(page).first().waitFor();
  const read = await visitor.context.request.get(`${url}/v1/audit?action=key.created&limit=1`);
  const [event] = (await read.json()).data;
  const asked: (string | null)[] = [];
  await page.route("**/v1/audit?*", (route) => {
    const after = new URL(route.request().url()).searchParams.get("after");
    asked.push(after);
    const place = `audit_${asked.length}`;
    const isFound = after === "audit_45";
    const found = { data: isFound ? [event] : [], first_id: null, last_id: isFound ? event.id : place };
    return route.fulfill({ json: { object: "list", ...found, has_more: !isFound } });
  });
  await page.getByRole("combobox", { name: "Event" }).click();
  await page.getByRole("option", { name: "Key created" }).click();
  await page.getByRole("heading", { name: "Nothing found yet" }).waitFor();
  expect(asked).toEqual([null, ...Array.from({ length: 39 }, (_, i) => `audit_${i + 1}`)]);
  await look(visitor, "audit-paused");
  await visitor.press("Search further back");
  await rows(page).first().waitFor();
  expect([asked.at(-1), await rows(page).count()]).toEqual(["audit_45", 1]);
  await page.getByText("1 in total").waitFor();
  expect(visitor.trouble).toEqual([]);
});

test("shows an operator the audit log of all accounts, and of one alone", async () => {
  await using visitor = await arrive("/admin/audit-log");
  const { page } = visitor;
  await rows(page).first().waitFor();
  await until(async () => (await sentences(page)).includes("Ada Lovelace signed in"), "sign-ins");
  await look(visitor, "audit-all");
  await page.getByRole("combobox", { name: "Account" }).click();
  await page.getByRole("option", { name: "Trial of Max" }).click();
  await until(async () => (await rows(page).count()) === 1, "that account");
  expect(await sentences(page)).toEqual(["Ada Lovelace created the account Trial of Max"]);
  expect(visitor.path()).toMatch(/^\/admin\/audit-log\?account=acct_/);
  await visitor.go("/admin/audit-log?target=nothing-has-this");
  await page.getByRole("heading", { name: "No matching event" }).waitFor();
  await visitor.press("Show all events");
  await rows(page).first().waitFor();
  expect(visitor.trouble).toEqual([]);
});

test("tells a member that the audit page is for admins, without a request to the server", async () => {
  await using visitor = await arrive("/settings/audit-log", colleagues.member.email, phone);
  await visitor.page.getByRole("heading", { name: "Only for owners and admins of the account" }).waitFor();
  await look(visitor, "audit-member");
  await visitor.go("/admin/audit-log");
  await visitor.page.getByRole("heading", { name: "Only for operators of this server" }).waitFor();
  expect(visitor.trouble).toEqual([]);
});
