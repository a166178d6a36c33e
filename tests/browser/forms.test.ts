// In a real browser: the forms work by https behind a proxy, by plain http at a name, and without scripts.
import { afterAll, expect, test } from "bun:test";
import { setUp } from "../support/browser.ts";
import { deviceAnswer, operator, pagesOf, startCallback, startDevice, testApp } from "../support/browser-world.ts";
import { certificate, cookiesOf, leaveBrowser, openVisitor, phone, type Visitor } from "../support/chromium.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { expectHeaders, look } from "../support/page-checks.ts";

const callback = startCallback();

afterAll(async () => {
  leaveBrowser();
  await callback.stop();
});

/** What a form's request says of where it comes from, by its path. */
function originsIn({ page }: Visitor): Map<string, string | undefined> {
  const origins = new Map<string, string | undefined>();
  page.on("request", async (request) => {
    if (request.method() === "POST")
      origins.set(new URL(request.url()).pathname, (await request.allHeaders())["origin"]);
  });
  return origins;
}

/** A server in production, reached by its public URL alone: a proxy in front that may end TLS. */
async function startBehindProxy(origin: string) {
  const { key, cert } = certificate;
  let target = "";
  const proxy = Bun.serve({
    ...{ port: 0, hostname: "127.0.0.1" },
    ...(origin.startsWith("https:") ? { tls: { key, cert } } : {}),
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const headers = new Headers(request.headers);
      headers.set("x-forwarded-for", "203.0.113.9");
      const { method } = request;
      const body = method === "POST" ? await request.arrayBuffer() : null;
      return fetch(target + pathname + search, { method, headers, body, redirect: "manual", decompress: false });
    },
  });
  const at = `${origin}:${proxy.port}`;
  const env = { HEADRACE_PUBLIC_URL: at, HEADRACE_MODE: "production", HEADRACE_TRUSTED_PROXIES: "127.0.0.1/32" };
  const server = await startHeadrace({ env });
  target = server.url;
  return {
    ...{ server, at },
    async [Symbol.asyncDispose]() {
      await proxy.stop(true);
      await server[Symbol.asyncDispose]();
    },
  };
}

async function setUpBy(visitor: Visitor, server: TestServer): Promise<void> {
  await visitor.go(new URL(server.setupLink ?? "").pathname);
  await visitor.fill({ "E-mail address": operator.email, "Your name": operator.name, Password: operator.password });
  await visitor.press("Create my sign-in");
  await visitor.page.waitForURL("**/");
  await visitor.go("/settings");
}

/** Signs in, lets an app in, connects a device, changes something, signs out: every kind of form there is. */
async function throughForms(server: TestServer, visitor: Visitor, referrerPolicy: "no-referrer" | "same-origin") {
  const app = await testApp(server, { redirect_uris: [callback.redirectUri], type: "public" });
  await visitor.go(app.authorize());
  expectHeaders(visitor, { referrerPolicy });
  await visitor.fill({ "E-mail address": operator.email, Password: operator.password });
  await visitor.press("Sign in");
  await visitor.page.getByRole("heading", { name: "Allow Notes" }).waitFor();
  expectHeaders(visitor, { referrerPolicy: "no-referrer" });
  await visitor.press("Allow");
  await visitor.page.waitForURL(`${callback.redirectUri}?**`);
  expect(await app.redeem(callback.seen.at(-1)?.searchParams.get("code") ?? "")).toMatchObject({
    token_type: "Bearer",
  });

  const device = await startDevice(server);
  await visitor.go(device.complete);
  await visitor.press("Continue");
  expectHeaders(visitor, { referrerPolicy: "no-referrer" });
  await visitor.press("Allow");
  await visitor.page.waitForURL("**/device/approved");
  expect(await deviceAnswer(server, device)).toMatchObject({ token_type: "Bearer" });

  await visitor.go("/settings");
  await visitor.fill({ "Your name": "Augusta Ada King" });
  await visitor.press("Save name");
  await visitor.page.waitForURL("**/settings?done=name");
  await visitor.press("Sign out");
  await visitor.page.waitForURL("**/sign-in");
  await visitor.page.getByRole("link", { name: "Forgot your password?" }).click();
  await visitor.fill({ "E-mail address": "nobody@example.test" });
  await visitor.press("Ask for a link");
  await visitor.page.getByRole("heading", { name: "Now ask for your link" }).waitFor();
}

test("submits every form without scripts, and offers nothing that needs them", async () => {
  await using server = await startHeadrace();
  await setUp(server, { person: operator });
  const at = pagesOf(server);
  await using visitor = await openVisitor({ at, size: phone, scripts: false, others: callback.hosts });
  await visitor.go("/sign-in");
  await look(visitor, "sign-in-without-scripts");
  for (const text of ["Sign in with a passkey", "or"]) {
    expect(await visitor.page.getByText(text, { exact: true }).isVisible()).toBe(false);
  }
  await throughForms(server, visitor, "no-referrer");
  expect(visitor.trouble).toEqual([]);
});

test("sends no referrer over HTTPS behind a proxy, and keeps forms, passkeys and host-only cookies working", async () => {
  await using site = await startBehindProxy("https://localhost");
  const { server, at } = site;
  await using visitor = await openVisitor({ at, others: callback.hosts });
  const origins = originsIn(visitor);
  await setUpBy(visitor, server);
  const cookies = await cookiesOf(visitor);
  expect([...cookies.keys()]).toEqual(["__Host-headrace_session"]);
  expect(cookies.get("__Host-headrace_session")).toMatchObject({
    ...{ httpOnly: true, secure: true, sameSite: "Lax", path: "/", domain: "localhost" },
  });
  expect(await visitor.text()).toContain("203.0.113.9");

  const devTools = await visitor.context.newCDPSession(visitor.page);
  await devTools.send("WebAuthn.enable");
  await devTools.send("WebAuthn.addVirtualAuthenticator", {
    options: {
      ...{ protocol: "ctap2", transport: "internal", hasResidentKey: true, hasUserVerification: true },
      ...{ isUserVerified: true, automaticPresenceSimulation: true },
    },
  });
  await visitor.press("Add a passkey");
  await visitor.page.waitForURL("**/settings?done=passkey");
  await visitor.press("Sign out");
  // The browser offers it in the field for the address, and this authenticator takes every offer.
  await visitor.page.waitForURL("**/");
  await visitor.go("/settings");
  await devTools.send("WebAuthn.disable");
  await visitor.press("Sign out");
  await visitor.page.waitForURL("**/sign-in");

  await throughForms(server, visitor, "no-referrer");
  expect(visitor.trouble).toEqual([]);
  // A script's request tells its origin; a form's does not.
  expect(Object.fromEntries(origins)).toMatchObject({
    ...{ "/sign-in": "null", "/reset": "null", "/oauth/authorize": "null", "/device/decision": "null" },
    ...{ "/v1/passkeys": at, "/sign-in/passkey": at },
  });
});

test("submits forms over plain HTTP at a host name, where browsers hide a form's origin", async () => {
  await using site = await startBehindProxy("http://headrace.test");
  const { server, at } = site;
  await using visitor = await openVisitor({ at, others: callback.hosts });
  const origins = originsIn(visitor);
  await setUpBy(visitor, server);
  await visitor.press("Sign out");
  await visitor.page.waitForURL("**/sign-in");
  await throughForms(server, visitor, "same-origin");
  expect(visitor.trouble).toEqual([]);
  expect(Object.fromEntries(origins)).toMatchObject({
    ...{ "/sign-in": at, "/reset": at },
    ...{ "/oauth/authorize": "null", "/device/decision": "null", "/settings/name": "null", "/sign-out": "null" },
  });
});
