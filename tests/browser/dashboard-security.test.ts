// In a real browser: what people see and change of themselves in the dashboard; name, password, passkeys, browsers.
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Locator } from "playwright-core";
import { auditEvent } from "../../src/policy/records/audit.ts";
import { invite, type Person } from "../support/browser.ts";
import { operator, pagesOf } from "../support/browser-world.ts";
import { desktop, leaveBrowser, openVisitor, phone, type Visitor } from "../support/chromium.ts";
import { type DashboardWorld, openDashboardWorld } from "../support/dashboard-world.ts";
import { look } from "../support/page-checks.ts";

const place = "/settings/security";
let world: DashboardWorld;
let at: string;

beforeAll(async () => {
  world = await openDashboardWorld();
  at = pagesOf(world.server);
});

afterAll(async () => {
  leaveBrowser();
  await world[Symbol.asyncDispose]();
});

/** Somebody new in the account. */
async function somebody(): Promise<Person> {
  const person = { ...operator, email: `${Bun.randomUUIDv7()}@example.test` };
  await invite(world.browser, { person });
  return person;
}

async function signedIn({ email, password }: Person, size = desktop): Promise<Visitor> {
  const visitor = await openVisitor({ at, size });
  await visitor.go(`/sign-in?next=${encodeURIComponent(place)}`);
  await visitor.fill({ "E-mail address": email, Password: password });
  await visitor.press("Sign in");
  await visitor.page.waitForURL(`**${place}`);
  return visitor;
}

const section = ({ page }: Visitor, name: string) => page.getByRole("region", { name });
const waitForText = ({ page }: Visitor, text: string) => page.getByText(text).waitFor();
/** Waits for it: the keyboard goes there once the page is drawn. */
const focusIsIn = (field: Locator) => field.and(field.page().locator(":focus")).waitFor();
/** Forgets a refusal that the test asked for: the browser notes its status and nothing else is wrong. */
function forget(visitor: Visitor, status: number): void {
  expect(visitor.trouble.every((one) => one.includes(String(status)))).toBe(true);
  visitor.trouble.length = 0;
}

test("changes a name and shows it at once, and refuses an empty one", async () => {
  await using ada = await signedIn(await somebody());
  const save = section(ada, "Profile").getByRole("button", { name: "Save name" });
  expect(await save.isDisabled()).toBe(true);
  await ada.fill({ "Your name": "   " });
  expect(await save.isDisabled()).toBe(true);
  await ada.fill({ "Your name": "  Augusta Ada King  " });
  await save.click();
  await waitForText(ada, "Your name was changed.");
  await ada.page.getByRole("button", { name: "Augusta Ada King, menu" }).waitFor();
  expect(await ada.page.getByLabel("Your name").inputValue()).toBe("Augusta Ada King");
  expect(ada.trouble).toEqual([]);
});

test("shows password rules beforehand and at the field, and signs out all other browsers", async () => {
  const person = await somebody();
  await using here = await signedIn(person, phone);
  await using there = await signedIn(person);
  const password = section(here, "Password");
  await waitForText(here, "12 to 256 characters");
  const [current, next] = [password.getByLabel("Current password"), password.getByLabel("New password")];
  await next.fill("too short");
  await waitForText(here, "3 more characters");
  await here.press("Change password");
  await waitForText(here, "Enter your current password.");
  await focusIsIn(current);
  await look(here, "security-password");

  await current.fill("not the right one");
  await next.fill("a wholly new password");
  await here.press("Change password");
  await waitForText(here, "This is not your password.");
  await current.fill(person.password);
  await next.fill("aaaaaaaaaaaa");
  await here.press("Change password");
  await waitForText(here, "Repeats the same few characters");
  forget(here, 400);

  await next.fill("a wholly new password");
  await here.press("Change password");
  await waitForText(here, "Your password is changed.");
  expect(await next.inputValue()).toBe("");
  await there.page.reload();
  await there.page.waitForURL("**/sign-in?**");
  await using anew = await signedIn({ ...person, password: "a wholly new password" });
  expect([...here.trouble, ...anew.trouble]).toEqual([]);
});

test("does not ask a person without a password for the current one until one is set", async () => {
  const { email } = await somebody();
  const { people } = world.server.people;
  const found = await people.findByEmail(email);
  const origin = { nowSeconds: Math.floor(Date.now() / 1000), clientAddress: null, requestId: null };
  const about = { accountId: null, targetId: found?.id ?? null, detail: {} };
  const event = auditEvent("password.changed", { type: "system" }, origin, about);
  await people.apply({ setPassword: { personId: found?.id ?? "", passwordHash: null } }, event);
  const arrive = async () => {
    const visitor = await openVisitor({ at: world.server.url });
    await world.signIn(visitor.context, email);
    await visitor.go(place);
    await waitForText(visitor, "You have no password yet.");
    return visitor;
  };
  await using here = await arrive();
  await using there = await arrive();
  const current = (visitor: Visitor) => section(visitor, "Password").getByLabel("Current password");
  expect(await current(here).count()).toBe(0);
  await look(here, "security-no-password");
  await here.fill({ "New password": "a wholly new password" });
  await here.press("Set password");
  await waitForText(here, "Your password is set.");
  await current(here).waitFor();
  await here.page.getByRole("button", { name: "Change password" }).waitFor();
  expect(here.trouble).toEqual([]);

  // The other browser is signed out; signed in anew behind the page, it learns of the password as it is refused.
  await world.signIn(there.context, email);
  const { csrf_token: csrf } = await (await there.context.request.get(`${world.server.url}/v1/session`)).json();
  await there.page.route("**/v1/session/password", (route) =>
    route.continue({ headers: { ...route.request().headers(), "x-csrf-token": csrf } }),
  );
  await there.fill({ "New password": "another wholly new password" });
  await there.press("Set password");
  await waitForText(there, "This is not your password.");
  await current(there).fill("a wholly new password");
  await there.press("Change password");
  await waitForText(there, "Your password is changed.");
  forget(there, 400);
});

test("adds, renames, uses and removes a passkey, one per device", async () => {
  await using ada = await signedIn(await somebody());
  const devTools = await ada.context.newCDPSession(ada.page);
  await devTools.send("WebAuthn.enable");
  await devTools.send("WebAuthn.addVirtualAuthenticator", {
    options: {
      ...{ protocol: "ctap2", transport: "internal", hasResidentKey: true, hasUserVerification: true },
      ...{ isUserVerified: true, automaticPresenceSimulation: true },
    },
  });
  const passkeys = section(ada, "Passkeys");
  await waitForText(ada, "You have no passkeys yet.");
  await ada.press("Add a passkey");
  const name = ada.page.getByRole("dialog").getByLabel("Name");
  expect(await name.inputValue()).toBe("Chrome on Linux");
  await look(ada, "security-passkey-add");
  await name.press("Enter");
  await waitForText(ada, "The passkey “Chrome on Linux” was added.");

  await ada.press("Add a passkey");
  expect(await name.inputValue()).toBe("Chrome on Linux 2");
  await ada.press("Continue");
  await waitForText(ada, "This device already has a passkey for your account.");
  await ada.press("Cancel");

  await ada.press("Rename Chrome on Linux");
  await name.fill("Ada’s laptop");
  await name.press("Enter");
  await passkeys.getByText("Ada’s laptop").waitFor();
  await look(ada, "security-passkey");

  await ada.context.clearCookies();
  await ada.go(`/sign-in?next=${encodeURIComponent(place)}`);
  await ada.page.waitForURL(`**${place}`);
  await section(ada, "Where you are signed in").getByText("signed in with passkey").waitFor();
  await ada.press("Remove Ada’s laptop");
  await waitForText(ada, "This passkey can no longer be used to sign in.");
  await look(ada, "security-passkey-remove");
  await ada.press("Remove passkey");
  await waitForText(ada, "You have no passkeys yet.");
  expect(ada.trouble).toEqual([]);
});

test("explains at an IP address that passkeys need a name, and links to it", async () => {
  await using visitor = await openVisitor({ at: world.server.url, size: phone });
  await world.signIn(visitor.context);
  await visitor.go(place);
  const passkeys = section(visitor, "Passkeys");
  await passkeys.getByText("not an IP address").waitFor();
  expect(await passkeys.getByRole("button").count()).toBe(0);
  const link = passkeys.getByRole("link", { name: "Open this page with the server's name" });
  expect(await link.getAttribute("href")).toBe(`${at}${place}`);
  await look(visitor, "security-no-passkeys");
});

test("explains that passkeys need HTTPS on an insecure connection", async () => {
  await using visitor = await openVisitor({ at });
  await world.signIn(visitor.context);
  // The page believes that it is at `http://` and a name that is not of this machine.
  await visitor.page.addInitScript(() => Object.defineProperty(window, "isSecureContext", { value: false }));
  await visitor.go(place);
  const passkeys = section(visitor, "Passkeys");
  await passkeys.getByText("only at a host name with https. This page was opened over plain http").waitFor();
  expect(await passkeys.getByRole("button").count()).toBe(0);
  expect(visitor.trouble).toEqual([]);
});

test("marks and lists the current browser first, and signs out one other or all others", async () => {
  const person = await somebody();
  await using here = await signedIn(person);
  await using there = await signedIn(person, phone);
  await here.page.reload();
  const browsers = section(here, "Where you are signed in");
  const lines = browsers.locator("li:not([aria-hidden])");
  await lines.first().waitFor();
  expect(await lines.first().textContent()).toStartWith("Chrome on LinuxThis browser127.0.0.1");
  expect(await lines.first().getByRole("button").count()).toBe(0);
  await look(here, "security-sessions");
  const before = await lines.count();
  await lines.nth(1).getByRole("button", { name: "Sign out Chrome on Linux, 127.0.0.1" }).click();
  await waitForText(here, "Chrome on Linux was signed out.");
  expect(await lines.count()).toBe(before - 1);
  await there.page.reload();
  await there.page.waitForURL("**/sign-in?**");

  await using again = await signedIn(person);
  await here.press("Sign out everywhere else");
  await waitForText(here, "command line logins must sign in again");
  await look(here, "security-sign-out-others");
  await here.press("Sign out");
  await waitForText(here, "You are signed out everywhere else.");
  expect(await lines.count()).toBe(1);
  await again.page.reload();
  await again.page.waitForURL("**/sign-in?**");
  expect(here.trouble).toEqual([]);
});
