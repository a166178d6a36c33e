// In a real browser: what stands around every page of the dashboard, and how much is loaded for the first.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { operator } from "../support/browser-world.ts";
import { desktop, leaveBrowser, openVisitor, phone, type Visitor } from "../support/chromium.ts";
import { colleagues, type DashboardWorld, openDashboardWorld } from "../support/dashboard-world.ts";
import { until } from "../support/headrace.ts";
import { expectVisibleFocus, look } from "../support/page-checks.ts";

let world: DashboardWorld;

beforeAll(async () => {
  world = await openDashboardWorld();
  await world.fill();
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

test("loads the first page with less than 250 kB of compressed script, none inline or from elsewhere", async () => {
  const visitor = await openVisitor({ at: world.server.url });
  await using _ = visitor;
  await world.signIn(visitor.context);
  const sizes = new Map<string, Promise<number>>();
  visitor.page.on("response", (response) => {
    if (response.request().resourceType() !== "script") return;
    expect(response.headers()["content-encoding"]).toMatch(/^(br|gzip)$/);
    sizes.set(
      response.url(),
      response
        .request()
        .sizes()
        .then(({ responseBodySize }) => responseBodySize),
    );
  });
  await visitor.go("/");
  await visitor.page.getByRole("heading", { name: "Overview" }).waitFor();
  // The charts load the last part of the script.
  await visitor.page.locator("main canvas").first().waitFor();
  await visitor.page.waitForLoadState("networkidle");
  const bytes = (await Promise.all(sizes.values())).reduce((sum, size) => sum + size, 0);
  expect(sizes.size).toBeGreaterThan(0);
  expect(bytes).toBeGreaterThan(50_000);
  expect(bytes).toBeLessThan(250_000);
  // By plain http to another machine browsers take no Brotli.
  const asGzip = await Promise.all(
    [...sizes.keys()].map(async (url) => {
      const answer = await fetch(url, { headers: { "accept-encoding": "gzip" }, decompress: false });
      expect(answer.headers.get("content-encoding")).toBe("gzip");
      return (await answer.arrayBuffer()).byteLength;
    }),
  );
  expect(asGzip.reduce((sum, size) => sum + size, 0)).toBeLessThan(250_000);
  const policy = visitor.answer().headers()["content-security-policy"] ?? "";
  expect(policy).toContain("script-src 'self';");
  expect(policy).not.toContain("unsafe");
  expect(await visitor.page.locator("script:not([src])").count()).toBe(0);
  expect(visitor.trouble).toEqual([]);
});

test("asks an unauthenticated visitor to sign in, and returns to the page with its filters", async () => {
  await using visitor = await openVisitor({ at: world.server.url });
  await visitor.go("/settings/api-keys?status=active");
  expect(visitor.path()).toBe(`/sign-in?next=${encodeURIComponent("/settings/api-keys?status=active")}`);
});

test("leads to sign-in and back after the session ended elsewhere", async () => {
  await using visitor = await arrive("/catalog");
  await visitor.page.getByRole("heading", { level: 1, name: "Models" }).waitFor();
  // What the page asks for by itself would find out first, and lead back to it: it has no answer any more.
  await visitor.page.route(
    ({ pathname }) => pathname.startsWith("/v1/") && !pathname.startsWith("/v1/usage"),
    () => undefined,
  );
  await visitor.context.clearCookies();
  await visitor.page.getByRole("link", { name: "Usage", exact: true }).click();
  // Each question that is refused leads there, and the next one in place of the one before.
  await until(() => visitor.path().startsWith("/sign-in?next="), "the sign-in");
  expect(new URL(visitor.page.url()).searchParams.get("next")).toStartWith("/usage");
});

test("reaches past the menu, through it, and the account's menu by keyboard alone", async () => {
  await using visitor = await arrive("/catalog");
  const { page } = visitor;
  await page.getByRole("heading", { level: 1, name: "Models" }).waitFor();
  await page.keyboard.press("Tab");
  expect(await page.evaluate(() => document.activeElement?.textContent)).toBe("Skip to content");
  await page.keyboard.press("Enter");
  expect(await page.evaluate(() => document.activeElement?.id)).toBe("content");
  await page.getByRole("link", { name: "Usage", exact: true }).focus();
  await expectVisibleFocus(page);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "Usage" }).waitFor();
  await page.getByRole("button", { name: /menu/ }).last().focus();
  await page.keyboard.press("Enter");
  await page.getByRole("menuitem", { name: "Sign out" }).waitFor();
  await page.keyboard.press("Escape");
  expect(visitor.trouble).toEqual([]);
});

test("finds pages, models, keys and requests by Ctrl+K and the keyboard alone", async () => {
  await using visitor = await arrive("/usage");
  const { page } = visitor;
  const field = page.getByRole("combobox", { name: "Find pages, keys, models and requests" });
  const open = async (text: string, result: string, path: string) => {
    await page.keyboard.press("Control+k");
    await field.fill(text);
    await page.getByRole("option", { name: result }).first().waitFor();
    await page.keyboard.press("Enter");
    await page.waitForURL(`**${path}`);
    await field.waitFor({ state: "detached" });
  };
  await page.getByRole("button", { name: /^Find/ }).click();
  await field.fill("zzz");
  await page.getByText("Nothing found.").waitFor();
  await look(visitor, "find-nothing");
  await page.keyboard.press("Escape");
  await open("tiers", "Tiers", "/admin/tiers");
  await open("aurora-mini", "aurora-mini", "/catalog?model=aurora-mini");
  // A form may be open beside the list, so the shortcut waits until the model is closed.
  await page.getByRole("dialog").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await open("production web", "Production website", "/settings/api-keys/key_*");
  // Keys pressed right after the shortcut reach the search.
  await page.keyboard.press("Control+k");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  const results = page.getByRole("listbox", { name: "Results" });
  expect(await results.getByRole("option", { selected: true }).textContent()).toContain("Models");
  await look(visitor, "find");
  await page.keyboard.press("Escape");
  await field.waitFor({ state: "detached" });
  const id = "req_01a229c8-9000-7000-8000-000000000000";
  await open(`x-request-id: ${id}`, id, `/requests/${id}`);
});

test("opens and closes the menu on a phone, and leaves the width to the page", async () => {
  await using visitor = await arrive("/catalog", undefined, phone);
  const { page } = visitor;
  const usage = page.getByRole("link", { name: "Usage", exact: true });
  await page.getByRole("heading", { level: 1, name: "Models" }).waitFor();
  const isOut = () =>
    usage.evaluate((link) => link.closest("[inert]") !== null && link.getBoundingClientRect().right <= 0);
  expect(await isOut()).toBe(true);
  await visitor.press("Menu");
  await usage.click();
  await page.getByRole("heading", { level: 1, name: "Usage" }).waitFor();
  await until(isOut, "the menu is out of sight");
  expect(visitor.trouble).toEqual([]);
});

test("follows the device's colour scheme until the person chooses, and keeps the choice", async () => {
  await using visitor = await arrive("/catalog");
  const { page } = visitor;
  const becomes = (scheme: string) => page.locator(`html[data-mantine-color-scheme=${scheme}]`).waitFor();
  await page.getByRole("heading", { level: 1, name: "Models" }).waitFor();
  await page.emulateMedia({ colorScheme: "dark" });
  await becomes("dark");
  await page.getByRole("button", { name: /menu/ }).last().click();
  await page.getByRole("menuitem", { name: "Light" }).click();
  await becomes("light");
  await visitor.go("/catalog");
  await page.getByRole("heading", { level: 1, name: "Models" }).waitFor();
  await becomes("light");
});

test("separates environments, and keeps the choice of one", async () => {
  await using visitor = await arrive("/settings/api-keys");
  const { page } = visitor;
  const firstKey = page.getByRole("link", { name: "First key", exact: true });
  await firstKey.waitFor();
  await page.getByRole("combobox", { name: "Environment" }).selectOption({ label: "Test" });
  await firstKey.waitFor({ state: "detached" });
  await visitor.go("/settings/api-keys");
  await page.getByRole("heading", { level: 1 }).waitFor();
  await page.waitForLoadState("networkidle");
  expect(await firstKey.count()).toBe(0);
  expect(visitor.trouble).toEqual([]);
});

test("hides the audit log and operator pages from a member's menu", async () => {
  await using visitor = await arrive("/catalog", colleagues.member.email);
  await visitor.page.getByRole("heading", { level: 1, name: "Models" }).waitFor();
  expect(await visitor.page.getByRole("link", { name: "API Keys" }).count()).toBe(1);
  for (const name of ["Audit log", "Upstreams", "Accounts", "System"]) {
    expect(await visitor.page.getByRole("link", { name, exact: true }).count()).toBe(0);
  }
});

test("shows the way from an address without a page", async () => {
  await using visitor = await arrive("/settings/nothing-here");
  await visitor.page.getByRole("link", { name: "Go to Overview" }).waitFor();
  await look(visitor, "dashboard-no-page");
});

test("keeps each tab's account, whatever account another tab chose since", async () => {
  const { browser } = world;
  const made = await browser.ask("/v1/admin/accounts", {
    method: "POST",
    body: { name: "Second House", tier: "free" },
  });
  const invited = await browser.ask(`/v1/admin/accounts/${made["id"]}/invitations`, {
    method: "POST",
    body: { email: operator.email, role: "member" },
  });
  await using visitor = await arrive(new URL(String(invited["link"])).pathname);
  const { page, context } = visitor;
  await visitor.press("Join");
  await page.waitForURL((url) => !url.pathname.startsWith("/invitations"));
  const choose = async (tab: typeof page, name: string) => {
    await tab.getByRole("button", { name: /menu/ }).last().click();
    await tab.getByRole("menuitem", { name }).click();
    await tab.getByRole("banner").getByText(name).waitFor();
  };
  await visitor.go("/settings/api-keys");
  await choose(page, "First account");
  await page.getByRole("link", { name: "First key", exact: true }).waitFor();

  const other = await context.newPage();
  await other.goto(page.url());
  await choose(other, "Second House");
  await other.getByRole("heading", { name: "Create the first API key" }).waitFor();
  // What somebody may do is told as it is there.
  expect(await other.getByRole("link", { name: "Audit log", exact: true }).count()).toBe(0);

  await page.getByRole("combobox", { name: "State" }).selectOption("active");
  await page.getByRole("link", { name: "First key", exact: true }).waitFor();
  expect(visitor.trouble).toEqual([]);

  await other.route("**/v1/session", (route) =>
    route.request().method() === "PATCH" ? route.abort() : route.continue(),
  );
  await other.getByRole("button", { name: /menu/ }).last().click();
  await other.getByRole("menuitem", { name: "First account" }).click();
  await other.getByRole("alert").getByText("The account was not switched").waitFor();
});

test("marks a live page as outdated while the server does not respond, and resumes afterwards", async () => {
  await using visitor = await arrive("/settings/limits");
  const { page } = visitor;
  await page.getByRole("heading", { name: "Rate limits" }).waitFor();
  await page.route("**/v1/**", (route) => route.abort());
  const notice = page.getByText("The server does not answer");
  await notice.waitFor({ timeout: 20_000 });
  expect(await page.getByRole("heading", { name: "Rate limits" }).isVisible()).toBe(true);
  await page.unroute("**/v1/**");
  await page.getByRole("alert", { name: "The server does not answer" }).getByRole("button").click();
  await notice.waitFor({ state: "detached" });
});

test("offers to reload if a page's script belongs to an older build", async () => {
  await using visitor = await arrive("/catalog");
  const { page } = visitor;
  await page.getByRole("heading", { level: 1, name: "Models" }).waitFor();
  await page.route("**/assets/app/*.js", (route) => route.fulfill({ status: 404, body: "" }));
  await page.getByRole("link", { name: "Members", exact: true }).click();
  await page.getByRole("heading", { level: 1, name: "This page failed" }).waitFor();
  await page.unroute("**/assets/app/*.js");
  await visitor.press("Reload the page");
  await page.getByRole("heading", { level: 1, name: "Members" }).waitFor();
});

test("announces an opened page to screen readers and moves the focus to it", async () => {
  await using visitor = await arrive("/settings/api-keys");
  const { page } = visitor;
  await page.getByRole("link", { name: "First key", exact: true }).press("Enter");
  await page.getByRole("status").getByText("First key", { exact: true }).waitFor({ state: "attached" });
  await until(() => page.evaluate(() => document.activeElement?.id === "content"), "the page has the keyboard");
  expect(await page.title()).toBe("First key · Headrace");
  expect(visitor.trouble).toEqual([]);
});

test("shows a hint on hover and focus as a description, and hides it on Escape or with its element", async () => {
  await using visitor = await arrive("/catalog");
  const { page } = visitor;
  const hint = page.getByRole("tooltip");
  const state = page.locator("[data-hint]").filter({ hasText: "Working" }).first();
  await state.hover();
  await hint.getByText("The last health check succeeded.").waitFor();
  await page.mouse.move(0, 0);
  await hint.waitFor({ state: "detached" });

  const copy = page.getByRole("button", { name: "Copy the id aurora-mini" });
  await page.getByRole("textbox", { name: "Search" }).focus();
  await until(async () => {
    await page.keyboard.press("Tab");
    return copy.evaluate((element) => element === document.activeElement);
  }, "the keyboard is at it");
  await hint.getByText("Copy the id aurora-mini").waitFor();
  const described = await copy.getAttribute("aria-describedby");
  expect(await page.locator(`[id="${described}"]`).textContent()).toBe("Copy the id aurora-mini");
  await page.keyboard.press("Enter");
  await hint.getByText("Copied").waitFor();
  await page.keyboard.press("Escape");
  await hint.waitFor({ state: "detached" });
  expect(await copy.getAttribute("aria-describedby")).toBeNull();

  await copy.hover();
  await hint.waitFor();
  await copy.evaluate((element) => element.remove());
  await hint.waitFor({ state: "detached" });
  expect(visitor.trouble).toEqual([]);
});

test("shows the server's time if the reader's clock is hours behind", async () => {
  await using visitor = await openVisitor({ at: world.server.url });
  await world.signIn(visitor.context);
  const { page } = visitor;
  const lateMs = 5 * 3_600_000;
  await page.clock.install({ time: Date.now() - lateMs });
  await visitor.go("/settings/members?invite=1");
  await page.getByLabel("E-mail address", { exact: true }).fill("late@example.test");
  await page.getByRole("dialog").getByRole("button", { name: "Invite", exact: true }).click();
  await visitor.press("Done");
  await page
    .getByRole("row", { name: /late@example.test/ })
    .getByText("just now")
    .waitFor();
  expect(visitor.trouble).toEqual([]);
});
