// In a real browser: what people see and change of themselves; their name, password, passkeys, browsers and apps.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Browser, invite, type Person, setUp } from "../support/browser.ts";
import { operator, pagesOf, startCallback, testApp } from "../support/browser-world.ts";
import { leaveBrowser, openVisitor, phone, type Visitor, type VisitorOptions } from "../support/chromium.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { look } from "../support/page-checks.ts";

const longName =
  "Wolfeschlegelsteinhausenbergerdorff-Featherstonehaugh von und zu Hohenlohe-Waldenburg-Schillingsfürst";

let server: TestServer;
let at: string;
/** The operator's browser, without a screen. */
let handler: Browser;
let app: ReturnType<typeof startCallback>;

beforeAll(async () => {
  server = await startHeadrace();
  at = pagesOf(server);
  app = startCallback();
  handler = await setUp(server, { person: operator });
});

afterAll(async () => {
  leaveBrowser();
  await app.stop();
  await server[Symbol.asyncDispose]();
});

/** Somebody new in the account. */
async function somebody(): Promise<Person> {
  const person = { ...operator, email: `${Bun.randomUUIDv7()}@example.test` };
  await invite(handler, { person });
  return person;
}

async function signedIn({ email, password }: Person, options: Partial<VisitorOptions> = {}): Promise<Visitor> {
  const visitor = await openVisitor({ at, ...options });
  await visitor.go("/sign-in");
  await visitor.fill({ "E-mail address": email, Password: password });
  await visitor.press("Sign in");
  await visitor.page.waitForURL("**/");
  await visitor.go("/settings");
  return visitor;
}

/** The section of the settings page under a heading. */
const section = ({ page }: Visitor, heading: string) => page.getByRole("region", { name: heading });

test("shows a long name in full, and refuses an empty one beside its field", async () => {
  await using ada = await signedIn(await somebody());
  await ada.fill({ "Your name": longName.slice(0, 100) });
  await ada.press("Save name");
  await ada.page.waitForURL("**/settings?done=name");
  await look(ada, "settings-long-name");
  await ada.fill({ "Your name": "   " });
  await ada.press("Save name");
  await look(ada, "settings-name-refused", { status: 400 });
  await ada.fill({ "Your name": operator.name });
  await ada.press("Save name");
  await ada.page.waitForURL("**/settings?done=name");
});

test("leads a remotely signed-out browser to sign-in at the next click", async () => {
  const person = await somebody();
  await using here = await signedIn(person);
  await here.go("/settings");
  await here.press("Sign out everywhere else");
  await using there = await signedIn(person, { size: phone });
  await here.go("/settings");
  const browsers = section(here, "Where you are signed in");
  const others = browsers.getByRole("button", { name: /^Sign out Chrome on Linux/ });
  expect(await others.count()).toBe(1);
  await others.click();
  await here.page.waitForURL("**/settings?done=session");
  expect(await browsers.textContent()).toContain("You are not signed in anywhere else.");
  await there.fill({ "Your name": "Mallory" });
  await there.press("Save name");
  expect(there.path()).toBe("/sign-in?next=%2Fsettings");
  await here.go("/settings");
  expect(await here.page.getByLabel("Your name").inputValue()).toBe(operator.name);
  expect([...here.trouble, ...there.trouble]).toEqual([]);
});

test("lists many browsers in a column, and signs out all others with one press", async () => {
  const person = await somebody();
  await using here = await signedIn(person);
  await here.press("Sign out everywhere else");
  await Promise.all(
    [1, 2, 3, 4, 5, 6, 7, 8].map(() =>
      fetch(`${server.url}/sign-in`, {
        ...{ method: "POST", redirect: "manual", body: new URLSearchParams({ ...person }) },
        headers: {
          origin: server.url,
          "user-agent": "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0) Version/19.0 Safari/604.1",
        },
      }),
    ),
  );
  await here.go("/settings");
  const browsers = section(here, "Where you are signed in");
  expect(await browsers.getByRole("listitem").count()).toBe(9);
  await look(here, "settings-many-sessions");
  await here.press("Sign out everywhere else");
  await here.page.waitForURL("**/settings?done=sessions");
  expect(await browsers.getByRole("listitem").count()).toBe(1);
});

test("adds a passkey, signs in without a password, and removes it", async () => {
  await using ada = await signedIn(await somebody(), { size: phone });
  const devTools = await ada.context.newCDPSession(ada.page);
  await devTools.send("WebAuthn.enable");
  await devTools.send("WebAuthn.addVirtualAuthenticator", {
    options: {
      ...{ protocol: "ctap2", transport: "internal", hasResidentKey: true, hasUserVerification: true },
      ...{ isUserVerified: true, automaticPresenceSimulation: true },
    },
  });
  await ada.fill({ "Name of a new passkey": "Ada’s telephone" });
  await ada.press("Add a passkey");
  await ada.page.waitForURL("**/settings?done=passkey");
  await look(ada, "settings-passkey");
  const isSignedIn = async () => {
    await ada.page.waitForURL("**/");
    await ada.go("/settings");
  };
  // The browser offers it in the field for the address, and this authenticator takes every offer.
  await ada.press("Sign out");
  await isSignedIn();
  // One without such offers.
  await ada.page.addInitScript(() => {
    PublicKeyCredential.isConditionalMediationAvailable = async () => false;
  });
  await ada.press("Sign out");
  await ada.page.waitForURL("**/sign-in");
  await ada.press("Sign in with a passkey");
  await isSignedIn();
  expect(await section(ada, "Passkeys").textContent()).toContain("Ada’s telephone");
  await ada.press("Remove Ada’s telephone");
  await ada.page.waitForURL("**/settings?done=passkey_removed");
  expect(await section(ada, "Passkeys").textContent()).toContain("You have no passkeys yet.");
  expect(ada.trouble).toEqual([]);
});

test("lists an allowed app with its rights, and refuses its token once access is removed", async () => {
  const name = `The ${"extraordinarily ".repeat(5)}long app`;
  const registered = await testApp(server, { redirect_uris: [app.redirectUri], name });
  await using ada = await signedIn(await somebody(), { others: app.hosts });
  await ada.go(registered.authorize());
  await ada.press("Allow");
  await ada.page.waitForURL(`${app.redirectUri}**`);
  const { access_token } = await registered.redeem(new URL(ada.page.url()).searchParams.get("code") ?? "");
  const models = () => fetch(`${server.url}/v1/models`, { headers: { authorization: `Bearer ${access_token}` } });
  expect((await models()).status).toBe(200);

  await ada.go("/settings");
  await section(ada, "Apps you allowed").locator("summary").click();
  await look(ada, "settings-app");
  await ada.press("Yes, remove access");
  await ada.page.waitForURL("**/settings?done=app");
  expect(await section(ada, "Apps you allowed").getByRole("listitem").count()).toBe(0);
  expect((await models()).status).toBe(401);
  expect(ada.trouble).toEqual([]);
});

test("requires the old password for a new one, and signs out every other browser", async () => {
  const person = await somebody();
  await using here = await signedIn(person, { size: phone });
  await using there = await signedIn(person);
  await here.fill({ "Current password": "not the right one", "New password": "a wholly new password" });
  await here.press("Change password");
  await look(here, "settings-password-wrong", { status: 400 });
  await here.fill({ "Current password": person.password, "New password": "a wholly new password" });
  await here.press("Change password");
  await here.page.waitForURL("**/settings?done=password");
  await there.page.reload();
  expect(there.path()).toBe("/sign-in?next=%2Fsettings");
  await using anew = await signedIn({ ...person, password: "a wholly new password" });
  expect([...here.trouble, ...there.trouble, ...anew.trouble]).toEqual([]);
});
