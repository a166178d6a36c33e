// In a real browser: an app asks for access, a person allows or refuses it, and a wrong app gets nobody to leave.
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { appScopes } from "../../src/domain/people/app.ts";
import { type Browser, invitation, setUp } from "../support/browser.ts";
import { operator, pagesOf, startCallback, type TestApp, testApp } from "../support/browser-world.ts";
import { leaveBrowser, openVisitor, phone, type Visitor, type VisitorOptions } from "../support/chromium.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { look } from "../support/page-checks.ts";

let server: TestServer;
let at: string;
/** The operator's browser, without a screen. */
let handler: Browser;
let callback: ReturnType<typeof startCallback>;
let notes: TestApp;

beforeAll(async () => {
  server = await startHeadrace();
  at = pagesOf(server);
  callback = startCallback();
  handler = await setUp(server, { person: operator });
  const homepage_url = "https://notes.example/about";
  notes = await testApp(server, { redirect_uris: [callback.redirectUri], name: "Notes", homepage_url });
});

beforeEach(() => {
  callback.seen.length = 0;
});

afterAll(async () => {
  leaveBrowser();
  await callback.stop();
  await server[Symbol.asyncDispose]();
});

async function ada(options: Partial<VisitorOptions> = {}): Promise<Visitor> {
  const visitor = await openVisitor({ at, others: callback.hosts, ...options });
  const cookies = [...handler.cookies].map(([name, value]) => ({ name, value, url: at }));
  await visitor.context.addCookies(cookies.map((cookie) => ({ ...cookie, httpOnly: true, sameSite: "Lax" })));
  return visitor;
}

const arrived = async ({ page }: Visitor) => {
  await page.waitForURL(`${callback.redirectUri}?**`);
  return Object.fromEntries(callback.seen.at(-1)?.searchParams ?? []);
};

test("asks for consent each time for a program on the person's own machine, since another could take its place", async () => {
  const program = await testApp(server, { redirect_uris: [callback.loopbackUri], name: "Terminal", type: "public" });
  await using visitor = await ada();
  for (const state of ["s-1", "s-2"]) {
    await visitor.go(program.authorize({ state }));
    await visitor.press("Allow");
    await visitor.page.waitForURL(`${callback.loopbackUri}?**`);
    const url = callback.seen.at(-1);
    expect(url?.searchParams.get("state")).toBe(state);
    expect(await program.redeem(url?.searchParams.get("code") ?? "")).toMatchObject({ token_type: "Bearer" });
  }
  expect(visitor.trouble).toEqual([]);
});

test("returns a denial to the app with its state and issuer", async () => {
  await using visitor = await ada();
  await visitor.go(notes.authorize());
  expect(await visitor.heading()).toBe("Allow Notes to act on your behalf?");
  await look(visitor, "consent", { referrerPolicy: "no-referrer" });
  await visitor.press("Deny");
  expect(await arrived(visitor)).toMatchObject({ error: "access_denied", state: "s-1", iss: server.url });
  expect(visitor.trouble).toEqual([]);
});

test("returns to an authorization after sign-in, delivers the code, and skips consent the next time", async () => {
  await using visitor = await openVisitor({ at, size: phone, others: callback.hosts });
  await visitor.go(notes.authorize({ state: "s 2&x=y" }));
  expect(visitor.path()).toStartWith("/sign-in?next=");
  await visitor.fill({ "E-mail address": operator.email, Password: operator.password });
  await visitor.press("Sign in");
  await visitor.page.getByRole("heading", { name: "Allow Notes" }).waitFor();
  await visitor.press("Allow");
  const answer = await arrived(visitor);
  expect(answer).toEqual({ code: expect.any(String), state: "s 2&x=y", iss: server.url });
  expect(await notes.redeem(answer["code"] ?? "")).toMatchObject({
    token_type: "Bearer",
    scope: "chat:write models:read",
  });

  callback.seen.length = 0;
  await visitor.go(notes.authorize({ state: "s-3" }));
  expect(await arrived(visitor)).toEqual({ code: expect.any(String), state: "s-3", iss: server.url });
  expect(visitor.trouble).toEqual([]);
});

test("lets a person choose among several accounts, and keeps long names within the layout", async () => {
  const body = { name: `Departement ${"voor ".repeat(10)}zaken`, tier: "pro" };
  const { id: account } = await handler.ask("/v1/admin/accounts", { method: "POST", body });
  const { pathname } = await invitation(handler, { email: operator.email, account: String(account) });
  await using visitor = await ada();
  await visitor.go(pathname);
  await visitor.press("Join");
  await visitor.page.waitForURL("**/");
  const scopes = [...appScopes];
  const name = `Donaudampfschifffahrtselektrizitätenhauptbetriebswerk ${"W".repeat(30)}`;
  const long = await testApp(server, { redirect_uris: [callback.redirectUri], name, scopes });
  await visitor.go(long.authorize({ scope: scopes.join(" ") }));
  expect(await visitor.page.getByRole("radio").count()).toBe(2);
  await look(visitor, "consent-long");
  await visitor.page.getByLabel("Departement").check();
  await visitor.press("Allow");
  const { code } = await arrived(visitor);
  expect(await long.redeem(code ?? "")).toMatchObject({ token_type: "Bearer" });
  expect(visitor.trouble).toEqual([]);
});

test("shows an error page without a redirect for a wrong redirect URI or an unknown app", async () => {
  await using visitor = await ada();
  await visitor.go(notes.authorize({ redirect_uri: `${callback.redirectUri}/` }));
  await look(visitor, "error-redirect-uri", { status: 400 });
  await visitor.go(notes.authorize({ client_id: "app_nobody" }));
  await look(visitor, "error-unknown-app", { status: 400 });
  expect(new URL(visitor.page.url()).host).toBe(new URL(at).host);
  expect(callback.seen).toEqual([]);
});

test("says what to do on error pages for an expired form, a missing page and a dead link", async () => {
  await using visitor = await ada();
  await visitor.go("/settings");
  await visitor.page
    .locator("main input[name=csrf]")
    .first()
    .evaluate((input) => input.setAttribute("value", "old"));
  await visitor.press("Save name");
  await look(visitor, "error-form", { status: 403 });
  await visitor.go("/assets/nothing.css");
  await look(visitor, "error-not-found", { status: 404 });
  await visitor.go("/invitations/unknown");
  await look(visitor, "error-dead-invitation", { status: 404 });
});
