// In a real browser: how people get in and out again; set-up, sign-in, invitations and forgotten passwords.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { Browser, invitation } from "../support/browser.ts";
import { operator, pagesOf } from "../support/browser-world.ts";
import { cookiesOf, leaveBrowser, openVisitor, phone, type Visitor } from "../support/chromium.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { expectVisibleFocus, look } from "../support/page-checks.ts";

let server: TestServer;
let at: string;
/** The operator's browser, without a screen. */
let handler: Browser;

beforeAll(async () => {
  server = await startHeadrace();
  at = pagesOf(server);
  await using ada = await openVisitor({ at, size: phone });
  const { pathname } = new URL(server.setupLink ?? "");
  await ada.go(pathname);
  await look(ada, "setup");
  await ada.fill({ "E-mail address": operator.email, "Your name": operator.name, Password: "correct horse" });
  // A browser of its own accord keeps short passwords back; one that does not is told by the server.
  await ada.page.locator("form").evaluate((form) => form.setAttribute("novalidate", ""));
  await ada.fill({ Password: "short" });
  await ada.press("Create my sign-in");
  await look(ada, "setup-refused", { status: 400 });
  await ada.fill({ Password: operator.password });
  await ada.press("Create my sign-in");
  expect(ada.path()).toBe("/");
  await look(ada, "setup-done");
  const session = (await cookiesOf(ada)).get("headrace_session");
  handler = new Browser(server.url);
  handler.cookies.set("headrace_session", session?.value ?? "");
  await ada.go(pathname);
  expect(await ada.heading()).toBe("This link does not work");
  await look(ada, "dead-link", { status: 404 });
});

afterAll(async () => {
  leaveBrowser();
  await server[Symbol.asyncDispose]();
});

async function signIn(visitor: Visitor, { email, password } = operator): Promise<void> {
  await visitor.go("/sign-in");
  await visitor.fill({ "E-mail address": email, Password: password });
  await visitor.press("Sign in");
  await visitor.page.waitForURL("**/");
  await visitor.go("/settings");
}

test("shows a wrong password beside the form, signs in with the right one, and hides the cookie from scripts", async () => {
  await using ada = await openVisitor({ at, size: phone });
  await ada.go("/settings");
  expect(ada.path()).toBe("/sign-in?next=%2Fsettings");
  await look(ada, "sign-in", { referrerPolicy: "no-referrer" });
  await ada.fill({ "E-mail address": operator.email, Password: "not the right one" });
  await ada.press("Sign in");
  await look(ada, "sign-in-wrong", { status: 400 });
  expect(await ada.page.getByLabel("E-mail address").inputValue()).toBe(operator.email);
  expect(await ada.page.getByLabel("Password").inputValue()).toBe("");
  await ada.fill({ Password: operator.password });
  await ada.press("Sign in");
  await ada.page.waitForURL("**/settings");
  expect((await cookiesOf(ada)).get("headrace_session")).toMatchObject({
    ...{ httpOnly: true, secure: false, sameSite: "Lax", path: "/", domain: "localhost" },
  });
  expect(ada.trouble).toEqual([]);
});

test("signs in and out by keyboard alone with visible focus", async () => {
  await using ada = await openVisitor({ at });
  const { keyboard } = ada.page;
  await ada.go("/sign-in");
  // The page gives it the focus with its first picture, which may come behind its load.
  await ada.page.waitForFunction(() => document.activeElement?.matches("input[type=email]"));
  await keyboard.type(operator.email);
  await keyboard.press("Tab");
  await expectVisibleFocus(ada.page);
  await keyboard.type(operator.password);
  await keyboard.press("Tab");
  await expectVisibleFocus(ada.page);
  await keyboard.press("Enter");
  await ada.page.waitForURL("**/");
  await ada.go("/settings");
  for (const stop of ["Headrace", operator.name, "Sign out"]) {
    await keyboard.press("Tab");
    await expectVisibleFocus(ada.page);
    expect(await ada.page.evaluate(() => document.activeElement?.textContent)).toBe(stop);
  }
  await keyboard.press("Enter");
  await ada.page.waitForURL("**/sign-in");
  expect(ada.trouble).toEqual([]);
});

test("shows nothing private after signing out and going back", async () => {
  await using ada = await openVisitor({ at });
  await signIn(ada);
  await ada.press("Sign out");
  await ada.page.waitForURL("**/sign-in");
  expect(await cookiesOf(ada)).toEqual(new Map());
  await ada.page.goBack();
  expect(ada.path()).toBe("/sign-in?next=%2Fsettings");
  expect(await ada.text()).not.toContain(operator.email);
  await ada.go("/settings");
  expect(await ada.heading()).toBe("Sign in");
  expect(ada.trouble).toEqual([]);
});

test("resets a forgotten password by an operator's link", async () => {
  await using guest = await openVisitor({ at, size: phone });
  await guest.go("/sign-in");
  await guest.page.getByRole("link", { name: "Forgot your password?" }).click();
  await look(guest, "reset");
  await guest.fill({ "E-mail address": "grace@example.test" });
  await guest.press("Ask for a link");
  await guest.page.getByRole("heading", { name: "Now ask for your link" }).waitFor();
  await look(guest, "reset-asked");

  await guest.go((await invitation(handler, { email: "grace@example.test" })).pathname);
  await look(guest, "invitation");
  await guest.fill({ "Your name": "Grace Hopper", Password: "the first password" });
  await guest.press("Join");
  await guest.page.waitForURL("**/");

  const { data } = (await handler.ask("/v1/admin/people")) as { data: { id: string; email: string }[] };
  const grace = data.find(({ email }) => email === "grace@example.test");
  const { link } = await handler.ask(`/v1/admin/people/${grace?.id}/reset-link`, { method: "POST" });
  await guest.go(new URL(String(link)).pathname);
  await look(guest, "reset-link");
  await guest.fill({ "New password": "a wholly new password" });
  await guest.press("Set password and sign in");
  await guest.page.waitForURL("**/settings?done=password");
  expect(guest.trouble).toEqual([]);
});

test("joins an invitation with one press if signed in, and tells another person whose it is", async () => {
  const body = { name: "Analytical Engines", tier: "pro" };
  const { id: account } = await handler.ask("/v1/admin/accounts", { method: "POST", body });
  const { pathname } = await invitation(handler, { email: operator.email, role: "owner", account: String(account) });
  await using ada = await openVisitor({ at, size: phone });
  await ada.go(pathname);
  await look(ada, "invitation-known");
  await ada.page.getByRole("link", { name: "Sign in to join" }).click();
  await ada.fill({ "E-mail address": operator.email, Password: operator.password });
  await ada.press("Sign in");
  await ada.page.waitForURL(`**${pathname}`);
  await look(ada, "invitation-invited");
  await ada.press("Join");
  await ada.page.waitForURL("**/");
  await ada.go("/settings");
  await look(ada, "settings-two-accounts");

  const { pathname: other } = await invitation(handler, { email: "somebody-else@example.test", role: "admin" });
  await ada.go(other);
  await look(ada, "invitation-somebody-else");
  await ada.page.locator("main").getByRole("button", { name: "Sign out" }).click();
  await ada.page.waitForURL(`**${other}`);
  expect(await ada.page.getByLabel("Your name").count()).toBe(1);
  expect(ada.trouble).toEqual([]);
});
