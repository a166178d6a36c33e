// Tests consent, on real stores and sockets: what is granted, to whom, for which account, and when no consent is
// needed.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  type AuthorizeServer,
  answered,
  authorizePath,
  challenge,
  issuer,
  startAuthorizeServer,
} from "../../../tests/hostile/authorize-server.ts";
import { testEvent } from "../../../tests/support/credentials.ts";
import { mcpServerFor } from "../../../tests/support/tool-uses.ts";
import type { App } from "../../domain/people/app.ts";
import { membershipCredentialId } from "../../domain/people/person.ts";

type Browser = ReturnType<AuthorizeServer["browser"]>;

let server: AuthorizeServer;
let made = 0;

beforeAll(async () => {
  server = await startAuthorizeServer();
});

afterAll(() => server.close());

const newcomer = (accounts?: readonly string[]) => server.signIn(`person-${++made}@example.com`, accounts);

async function allow(browser: Browser, path: string, fields: Record<string, string> = {}) {
  const response = await browser.submit(await browser.get(path), { decision: "allow", ...fields });
  return server.codeOf(response.headers.get("location"));
}

describe("the consent page", () => {
  test("shows the app, its scopes, the account and the redirect target on the consent page", async () => {
    const app = await server.addApp({ scopes: ["chat:read", "chat:write", "models:read", "usage:read"] });
    const { browser, person } = await newcomer();
    const text = await (await browser.get(authorizePath(app))).text();
    expect(text).toContain("<h1>Allow <bdi>Notes</bdi> to act on your behalf?</h1>");
    expect(text).toContain(
      '<a href="https://notes.example/" target="_blank" rel="noopener noreferrer">notes.example</a>',
    );
    for (const words of ["Read the chats", "Use models on your behalf", "See which models", "See usage and cost"]) {
      expect(text).toContain(words);
    }
    expect(text).toContain("you go to <strong>notes.example</strong>");
    expect(text).toContain(person.email);
    expect(text).toContain('<a href="/settings">');
    expect(text).not.toMatch(/<script|<style|style=|onclick/);
    expect(text.match(/<button name="decision" value="(?:allow|deny)"/g)).toHaveLength(2);
  });

  test("shows MCP servers on the consent page by title if the user may know them, else by requested name", async () => {
    const app = await server.addApp({ scopes: ["tools:use"] });
    const { browser } = await newcomer();
    const shared = mcpServerFor({ title: "GitHub <issues>" });
    server.tools.set("github", shared);
    server.tools.set("secret", { ...shared, name: "secret", title: "Secret project", accounts: ["acct_other"] });
    server.tools.set("off", { ...shared, name: "off", title: "Switched off", enabled: false });
    const shown = async (...paths: string[]) => {
      const query = paths.map((path) => `&resource=${encodeURIComponent(issuer + path)}`).join("");
      return (await browser.get(`${authorizePath(app)}${query}`)).text();
    };
    expect(await shown("/mcp/github")).toContain(
      "the tools of <strong>github</strong> (<bdi>GitHub &lt;issues&gt;</bdi>)",
    );
    for (const name of ["secret", "off", "nobody"]) {
      expect(await shown(`/mcp/${name}`)).toContain(`only the tools of <strong>${name}</strong>.`);
    }
    const ofAll = await shown("/mcp/github", "/mcp");
    expect(ofAll).toContain('value="all" checked');
    expect(ofAll).toContain('name="server:github" value="on"');
    expect(ofAll).not.toMatch(/secret|off/i);
    const ofTwo = await shown("/mcp/github", "/mcp/secret");
    expect(ofTwo).toContain('name="server:secret" value="on" checked');
    expect(ofTwo).not.toContain('value="all"');
    server.tools.clear();
    expect(await shown("/mcp")).toContain("the tools of <strong>every server</strong> that you may use");
  });

  test("issues a code for the MCP servers that the user chose", async () => {
    const app = await server.addApp({ scopes: ["tools:use"] });
    const { browser } = await newcomer();
    for (const name of ["crm", "github"]) server.tools.set(name, mcpServerFor({ name }));
    const at = (...paths: string[]) =>
      `${authorizePath(app)}${paths.map((path) => `&resource=${encodeURIComponent(issuer + path)}`).join("")}`;
    const chosen = async (path: string, fields: Record<string, string>) => {
      const response = await browser.submit(await browser.get(path), { decision: "allow", ...fields });
      return (await server.codeOf(response.headers.get("location")))?.tools;
    };
    expect(await chosen(at("/mcp"), { tools: "all", "server:crm": "on" })).toBeNull();
    expect(await chosen(at("/mcp"), { tools: "some", "server:crm": "on", "server:nobody": "on" })).toEqual(["crm"]);
    expect(await chosen(at("/mcp/github"), {})).toEqual(["github"]);
    expect(await chosen(at("/mcp/crm", "/mcp/github"), { "server:github": "on" })).toEqual(["github"]);
    const nothing = await browser.submit(await browser.get(at("/mcp")), { decision: "allow", tools: "some" });
    expect([nothing.status, await nothing.text()]).toEqual([
      400,
      expect.stringContaining("Choose at least one server"),
    ]);
    server.tools.clear();
  });

  test("issues a code with the spending cap of the consent page, and none for an invalid amount", async () => {
    const app = await server.addApp();
    const { browser } = await newcomer();
    const page = () => browser.get(authorizePath(app));
    const decide = async (cap: string) => browser.submit(await page(), { decision: "allow", spend_cap: cap });
    expect(await (await page()).text()).toContain("Spending cap in USD per month");
    for (const [cap, amount] of [
      ["2.50", 2.5],
      [" $5 ", 5],
    ] as const) {
      const { headers } = await decide(cap);
      const code = await server.codeOf(headers.get("location"));
      expect(code?.quotas).toEqual([{ unit: "usd", amount, per: "month", window: "calendar" }]);
    }
    expect((await server.codeOf((await decide("")).headers.get("location")))?.quotas).toBeNull();
    for (const wrong of ["0", "-1", "five", "1e3", "9000001"]) {
      const refused = await decide(wrong);
      expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining("Enter an amount in USD")]);
    }
  });

  test("keeps each choice on the consent page when another one has to be corrected", async () => {
    const app = await server.addApp({ scopes: ["tools:use"] });
    const second = await server.addAccount({ name: "Second" });
    const { person } = await newcomer([second.id]);
    const membership = await server.membershipOf(person);
    await server.addMember(person, "member", server.accountId);
    const browser = server.browser(await server.startSession(person, server.accountId));
    for (const name of ["crm", "github"]) server.tools.set(name, mcpServerFor({ name }));
    const page = await browser.get(`${authorizePath(app)}&resource=${encodeURIComponent(`${issuer}/mcp`)}`);
    const allowed = { decision: "allow", tools: "some", account: second.id };
    const nothing = await browser.submit(page.clone(), allowed);
    expect(await nothing.text()).toContain(`value="${second.id}" required checked`);
    const ended = { expiresAt: server.clock.nowSeconds() };
    await server.keys.updateKey(membershipCredentialId(membership.id, "live"), ended, testEvent());
    const again = await browser.submit(page, { ...allowed, "server:crm": "on" });
    expect(again.status).toBe(400);
    const text = await again.text();
    expect(text).toContain("Choose one of your accounts.");
    expect(text).toContain('name="tools" value="some" checked');
    expect(text).toContain('name="server:crm" value="on" checked');
    expect(text).not.toContain('name="server:github" value="on" checked');
    server.tools.clear();
  });

  test.each<[string, string]>([
    ["http://127.0.0.1:5000/", "a program on this computer (127.0.0.1)"],
    ["http://[::1]:5000/", "a program on this computer ([::1])"],
    ["com.example.notes:/callback", "the app on this device that opens com.example.notes: links"],
    ["https://xn--pple-43d.example/callback", "xn--pple-43d.example"],
  ])("shows %s as %s on the consent page", async (uri, words) => {
    const app = await server.addApp({ redirectUris: [uri] });
    const { browser } = await newcomer();
    expect(await (await browser.get(authorizePath(app, { redirect_uri: uri }))).text()).toContain(words);
  });

  test.each<[string, string]>([
    ["https://notes.example/callback", "form-action 'self' https:;"],
    ["http://127.0.0.1:5000/", "form-action 'self' http://127.0.0.1:5000 https:;"],
    ["http://[::1]:5000/", "form-action 'self' http: https:;"],
    ["com.example.notes:/callback", "form-action 'self' com.example.notes:;"],
  ])("lets a browser follow the consent page's redirect to %s", async (uri, policy) => {
    const app = await server.addApp({ redirectUris: [uri] });
    const { browser } = await newcomer();
    const page = await browser.get(authorizePath(app, { redirect_uri: uri }));
    expect(page.headers.get("content-security-policy")).toContain(policy);
  });

  test.each<[App["environment"], string | undefined]>([
    ["live", undefined],
    ["test", "in testing"],
    ["dev", "in development"],
  ])("warns on the consent page of an app in %s: %s", async (environment, warning) => {
    const { browser } = await newcomer();
    const text = await (await browser.get(authorizePath(await server.addApp({ environment })))).text();
    expect(text.includes('role="note"')).toBe(warning !== undefined);
    if (warning !== undefined) expect(text).toContain(warning);
  });
});

test("issues no code if the session ends before the consent form arrives", async () => {
  const app = await server.addApp();
  const { browser, person } = await newcomer();
  const page = await browser.get(authorizePath(app));
  const before = await server.countCodes();
  server.meanwhile(() => server.sessionStore.endAll(person.id, null, testEvent()));
  const refused = await browser.submit(page, { decision: "allow" });
  expect([refused.status, refused.headers.get("location")]).toEqual([401, null]);
  expect(await server.countCodes()).toBe(before);
  expect(server.logText()).toContain('"detail":"ended_meanwhile"');
});

describe("an authorization code", () => {
  test("issues a code for exactly what the consent page showed, for a minute, and stores only its digest", async () => {
    const app = await server.addApp({ environment: "test" });
    const { browser, person } = await newcomer();
    const response = await browser.submit(await browser.get(authorizePath(app, { scope: "chat:write" })), {
      decision: "allow",
    });
    const { code, ...rest } = answered(response);
    expect(code).toMatch(/^[\w-]{43}$/);
    expect(rest).toEqual({ state: "s1", iss: issuer });
    const now = server.clock.nowSeconds();
    expect(await server.codeOf(response.headers.get("location"))).toEqual({
      ...{ digest: expect.stringMatching(/^[0-9a-f]{64}$/), appId: app.id, personId: person.id },
      ...{ accountId: server.accountId, membershipId: (await server.membershipOf(person)).id, environment: "test" },
      resources: ["/v1"],
      ...{
        scopes: ["chat:write"],
        tools: null,
        quotas: null,
        redirectUri: "https://notes.example/callback",
        codeChallenge: challenge,
      },
      ...{ createdAt: now, expiresAt: now + 60, grantId: null },
    });
  });

  test("records that an authorization request had neither redirect address nor challenge", async () => {
    const app = await server.addApp({ type: "confidential", requirePkce: false });
    const { browser } = await newcomer();
    const left = { redirect_uri: undefined, code_challenge: undefined, code_challenge_method: undefined };
    expect(await allow(browser, authorizePath(app, left))).toMatchObject({ redirectUri: null, codeChallenge: null });
  });

  test("issues a different code each time", async () => {
    const app = await server.addApp();
    const { browser } = await newcomer();
    const codes = await Promise.all(Array.from({ length: 5 }, () => allow(browser, authorizePath(app))));
    expect(new Set(codes.map((code) => code?.digest)).size).toBe(5);
  });
});

describe("the account on the consent page", () => {
  test("offers several accounts, the current one first, and no suspended one", async () => {
    const second = await server.addAccount({ name: "Second & Sons" });
    const suspended = await server.addAccount({ name: "Suspended", status: "suspended" });
    const { person } = await newcomer([server.accountId, second.id, suspended.id]);
    const browser = server.browser(await server.startSession(person, second.id));
    const app = await server.addApp();
    const text = await (await browser.get(authorizePath(app))).text();
    expect(text.match(/type="radio"/g)).toHaveLength(2);
    expect(text).toContain(`value="${second.id}" required checked> <bdi>Second &amp; Sons</bdi>`);
    expect(text).not.toContain("Suspended");
    expect(await allow(browser, authorizePath(app), { account: second.id })).toMatchObject({ accountId: second.id });
    const before = await server.countCodes();
    const page = await browser.get(authorizePath(app));
    const refused = await browser.submit(page, { decision: "allow", account: suspended.id });
    expect(refused.status).toBe(400);
    expect(await refused.text()).toContain('role="alert">Choose one of your accounts.');
    expect(await server.countCodes()).toBe(before);
  });

  test("issues no code for an account that was suspended or left after the page was shown", async () => {
    const app = await server.addApp();
    const own = await server.addAccount();
    const { browser } = await newcomer([own.id]);
    const page = await browser.get(authorizePath(app));
    await server.accounts.updateAccount(own.id, { status: "suspended" }, testEvent());
    expect((await browser.submit(page, { decision: "allow" })).status).toBe(403);

    const { browser: leaver, person } = await newcomer();
    const second = await leaver.get(authorizePath(app));
    const { id } = await server.membershipOf(person);
    await server.addMember(person, "member", (await server.addAccount()).id);
    await server.people.removeMembership(id, { ...testEvent(), action: "member.removed" });
    expect((await leaver.submit(second, { decision: "allow" })).status).toBe(400);
  });

  test("issues no code for a membership that has ended, with or without asking", async () => {
    const app = await server.addApp({ type: "confidential", requirePkce: false });
    const { browser, person } = await newcomer();
    const allowed = await allow(browser, authorizePath(app));
    if (!allowed) throw new Error("There is no code.");
    await server.redeem(allowed);
    const page = await browser.get(authorizePath(app, { prompt: "consent" }));
    const before = await server.countCodes();
    const credential = membershipCredentialId((await server.membershipOf(person)).id, "live");
    await server.keys.updateKey(credential, { expiresAt: server.clock.nowSeconds() }, testEvent());
    expect((await browser.submit(page, { decision: "allow" })).status).toBe(400);
    expect((await browser.get(authorizePath(app))).status).toBe(200);
    expect(await server.countCodes()).toBe(before);
  });

  test("shows a user without accounts a page from which the app can be answered", async () => {
    const app = await server.addApp();
    const { browser } = await newcomer([]);
    const page = await browser.get(authorizePath(app));
    expect(page.status).toBe(403);
    expect(await page.clone().text()).toContain("not a member of an active account");
    expect(answered(await browser.submit(page, { decision: "deny" }))).toMatchObject({
      error: "access_denied",
      state: "s1",
    });
    expect(answered(await browser.get(authorizePath(app, { prompt: "none" })))).toMatchObject({
      error: "interaction_required",
    });
  });
});

describe("consent that was given before", () => {
  const confidential = { type: "confidential", requirePkce: false } as const;

  /** Creates an app and a user who allowed it `scope`; the app has redeemed its code. */
  async function allowedOnce(changes: Partial<App>, scope: string, uri?: string) {
    const app = await server.addApp(changes);
    const { browser, person } = await newcomer();
    const path = authorizePath(app, { scope, ...(uri === undefined ? {} : { redirect_uri: uri }) });
    const code = await allow(browser, path);
    if (!code) throw new Error("No code.");
    await server.redeem(code);
    return { app, browser, person, path };
  }

  test("skips consent for a confidential app that the user fully allowed for the only account", async () => {
    const { app, browser, path } = await allowedOnce(confidential, "chat:read chat:write");
    const response = await browser.get(path);
    expect(await server.codeOf(response.headers.get("location"))).toMatchObject({
      scopes: ["chat:read", "chat:write"],
    });
    const less = await browser.get(authorizePath(app, { scope: "chat:read", prompt: "none" }));
    expect(await server.codeOf(less.headers.get("location"))).toMatchObject({ scopes: ["chat:read"] });
  });

  test.each<[string, Partial<App>, string, string | undefined]>([
    ["a public app, which anybody can pass for", { type: "public" }, "chat:read", undefined],
    [
      "a program of one's own computer",
      { ...confidential, redirectUris: ["http://127.0.0.1/"] },
      "chat:read",
      "http://127.0.0.1/",
    ],
    ["a scheme of an app", { ...confidential, redirectUris: ["com.example:/cb"] }, "chat:read", "com.example:/cb"],
  ])("asks for consent again for %s", async (_, changes, scope, uri) => {
    const { browser, path } = await allowedOnce(changes, scope, uri);
    expect((await browser.get(path)).status).toBe(200);
  });

  test("asks for consent again for more scopes, on the app's demand, for HEAD and for another user", async () => {
    const { app, browser, path } = await allowedOnce(confidential, "chat:read");
    expect((await browser.get(authorizePath(app, { scope: "chat:read chat:write" }))).status).toBe(200);
    for (const prompt of ["consent", "login", "select_account"])
      expect((await browser.get(`${path}&prompt=${prompt}`)).status).toBe(200);
    const before = await server.countCodes();
    expect((await browser.get(path, {}, "HEAD")).status).toBe(200);
    expect(await server.countCodes()).toBe(before);
    const { browser: another } = await newcomer();
    expect((await another.get(path)).status).toBe(200);
  });

  test("asks for consent again after the user removed the app", async () => {
    const { app, browser, person, path } = await allowedOnce(confidential, "chat:read");
    await server.oauth.revokeAllowedApp(person.id, app.id, undefined, { ...testEvent(), action: "grant.revoked" });
    expect((await browser.get(path)).status).toBe(200);
    expect(answered(await browser.get(`${path}&prompt=none`))).toMatchObject({ error: "consent_required" });
  });

  test("asks for consent again if the user has a second account to choose", async () => {
    const { browser, person, path } = await allowedOnce(confidential, "chat:read");
    await server.addMember(person, "member", (await server.addAccount()).id);
    expect((await browser.get(path)).status).toBe(200);
    expect(answered(await browser.get(`${path}&prompt=none`))).toMatchObject({ error: "consent_required" });
  });
});
