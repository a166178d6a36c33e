// In a real browser: a session that ends in the middle of a form costs a sign-in and nothing else, and nobody else sees what was written.
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { operator } from "../support/browser-world.ts";
import { leaveBrowser, openVisitor, type Visitor } from "../support/chromium.ts";
import { colleagues, type DashboardWorld, openDashboardWorld } from "../support/dashboard-world.ts";
import { until } from "../support/headrace.ts";
import { look } from "../support/page-checks.ts";

let world: DashboardWorld;

beforeAll(async () => {
  world = await openDashboardWorld();
  await world.fill();
});

afterAll(async () => {
  leaveBrowser();
  await world[Symbol.asyncDispose]();
});

/** With a form that is filled in, a secret included, whose session is over. */
async function writing(): Promise<Visitor> {
  const visitor = await openVisitor({ at: world.server.url });
  await world.signIn(visitor.context);
  await visitor.go("/admin/tool-servers");
  await visitor.press("Add a server");
  const form = visitor.page.getByRole("dialog").last();
  await form.getByRole("textbox", { name: "Address" }).fill("https://tools.example.com/mcp");
  await form.getByRole("textbox", { name: "Name", exact: true }).fill("weather");
  await form.getByRole("radio", { name: "Shared credential" }).check();
  await form.getByRole("textbox", { name: "Header 1", exact: true }).fill("x-token");
  await form.getByRole("textbox", { name: "Value of header 1" }).fill("precious-0123456789");
  await visitor.context.clearCookies();
  return visitor;
}

const over = (page: Page) => page.getByRole("dialog", { name: "Your session has ended" });

/** In the tab that the page opens for it; as a person does. */
async function signInAgain({ page, context }: Visitor, { email, password } = operator): Promise<void> {
  const [tab] = await Promise.all([
    context.waitForEvent("page"),
    over(page).getByRole("link", { name: "Sign in" }).click(),
  ]);
  await tab.getByLabel("E-mail address").fill(email);
  await tab.getByLabel("Password", { exact: true }).fill(password);
  await tab.getByRole("button", { name: "Sign in", exact: true }).click();
  await tab.getByRole("heading", { name: "You are signed in" }).waitFor();
  await tab.close();
}

/** Whether somebody in front of the screen, or who moves about in it, comes upon this text. */
const isSeen = (page: Page, name: string) =>
  page.evaluate(
    (text) =>
      [...document.querySelectorAll("input")]
        .filter(({ value }) => value === text)
        .some((input) => {
          const { left, top } = input.getBoundingClientRect();
          input.focus();
          return document.activeElement === input || document.elementFromPoint(left + 2, top + 2) === input;
        }),
    name,
  );

test("keeps a form through a sign-in in another tab after the session ended, and then sends it", async () => {
  await using visitor = await writing();
  const { page } = visitor;
  expect(await isSeen(page, "weather")).toBe(true);
  await page.getByRole("button", { name: "Add server", exact: true }).click();
  await over(page).waitFor();
  expect(visitor.trouble.splice(0).filter((line) => !line.includes("401"))).toEqual([]);
  expect(await isSeen(page, "weather")).toBe(false);
  await look(visitor, "session-over");
  for (let presses = 0; presses < 3; presses++) await page.keyboard.press("Escape");
  await over(page).getByRole("button", { name: "I am signed in" }).click();
  await over(page).getByText("You are not signed in yet.").waitFor();
  visitor.trouble.splice(0);
  await signInAgain(visitor);
  await over(page).getByRole("button", { name: "I am signed in" }).click();
  await over(page).waitFor({ state: "detached" });
  await page.getByRole("dialog").getByRole("heading", { name: "weather" }).waitFor();
  expect(await world.browser.ask("/v1/admin/tool-servers/weather")).toMatchObject({
    url: "https://tools.example.com/mcp",
    header_names: ["x-token"],
  });
  expect(visitor.trouble).toEqual([]);
  await world.browser.ask("/v1/admin/tool-servers/weather", { method: "DELETE" });
});

test("recognizes a sign-in on return to the tab, and keeps the unsent form", async () => {
  await using visitor = await writing();
  const { page } = visitor;
  await page.clock.install({ time: Date.now() + 10_000 });
  const comeBack = () => page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
  await comeBack();
  await over(page).waitFor();
  await signInAgain(visitor);
  await comeBack();
  await over(page).waitFor({ state: "detached" });
  const form = page.getByRole("dialog").last();
  expect(await form.getByRole("textbox", { name: "Value of header 1" }).inputValue()).toBe("precious-0123456789");
  expect(await page.evaluate(() => JSON.stringify([{ ...sessionStorage }, { ...localStorage }]))).not.toMatch(
    /precious|weather/,
  );
  visitor.trouble.splice(0);
  await form.getByRole("button", { name: "Test", exact: true }).click();
  await form.getByText("The test failed").waitFor();
  expect(visitor.trouble).toEqual([]);
});

test.each([
  ["/settings/api-keys", "Create API key", "Name"],
  ["/settings/members", "Invite", "E-mail address"],
  ["/settings/webhooks", "Add a webhook", "Address"],
  ["/admin/tiers", "Create tier", "Name"],
  ["/admin/upstreams", "Add upstream", "API key"],
])("keeps a form of %s after the session ended", async (path, opener, field) => {
  await using visitor = await openVisitor({ at: world.server.url });
  const { page, context } = visitor;
  await world.signIn(context);
  await visitor.go(path);
  await page.getByRole("button", { name: opener }).first().click();
  const written = page.getByRole("dialog").last().getByLabel(field).first();
  await written.fill("precious");
  await context.clearCookies();
  await page.clock.install({ time: Date.now() + 10_000 });
  await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
  await over(page).waitFor();
  await world.signIn(context);
  await over(page).getByRole("button", { name: "I am signed in" }).click();
  await over(page).waitFor({ state: "detached" });
  expect(await written.inputValue()).toBe("precious");
});

test("shows a fresh page without the earlier input to another person who signs in", async () => {
  await using visitor = await writing();
  const { page } = visitor;
  await page.getByRole("button", { name: "Add server", exact: true }).click();
  await over(page).waitFor();
  await signInAgain(visitor, colleagues.member);
  await over(page).getByRole("button", { name: "I am signed in" }).click();
  await page.getByRole("button", { name: `${colleagues.member.name}, menu` }).waitFor();
  expect(await page.getByRole("dialog").count()).toBe(0);
  expect(
    await page.evaluate(() => document.documentElement.outerHTML + JSON.stringify({ ...sessionStorage })),
  ).not.toMatch(/precious|tools\.example\.com/);
  const { data } = await world.browser.ask("/v1/admin/tool-servers");
  expect(data).toEqual([]);
});

test("leaves no form in other tabs after signing out", async () => {
  await using visitor = await openVisitor({ at: world.server.url });
  const { page, context } = visitor;
  await world.signIn(context);
  await visitor.go("/settings/api-keys");
  await visitor.press("Create API key");
  await page.getByRole("dialog").getByRole("textbox", { name: "Name", exact: true }).fill("precious");
  const other = await context.newPage();
  await other.goto(new URL("/usage", world.server.url).href);
  await other.getByRole("button", { name: `${operator.name}, menu` }).click();
  await other.getByRole("menuitem", { name: "Sign out" }).click();
  await other.getByRole("heading", { name: "Sign in" }).waitFor();
  await until(async () => (await page.getByRole("dialog").count()) === 0, "the form is gone");
  expect(await page.content()).not.toContain("precious");
});
