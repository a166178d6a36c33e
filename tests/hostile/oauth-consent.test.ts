// The question whether an app is allowed, under forms, pages and apps that mean no good: hardening.md, OAuth.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { AuditAction } from "../../src/domain/audit.ts";
import type { App } from "../../src/domain/people/app.ts";
import { testEvent } from "../support/credentials.ts";
import {
  type AuthorizeServer,
  answered,
  authorizePath,
  expectErrorPage,
  expectPageHeaders,
  formOf,
  issuer,
  startAuthorizeServer,
} from "./authorize-server.ts";

type Browser = ReturnType<AuthorizeServer["browser"]>;

let server: AuthorizeServer;
let app: App;
let browser: Browser;

beforeAll(async () => {
  server = await startAuthorizeServer();
  app = await server.addApp();
  ({ browser } = await server.signIn("ada@example.com"));
});

afterAll(() => server.close());

const eventOf = (action: AuditAction) => ({ ...testEvent(), action });

describe("a consent decision counts only from its page", () => {
  const ask = async (changes: Record<string, string | undefined> = {}) =>
    formOf(await (await browser.get(authorizePath(app, changes))).text());
  let before: number;

  beforeAll(async () => {
    before = await server.countCodes();
  });
  const expectNoCode = async () => expect(await server.countCodes()).toBe(before);

  test.each<[string, Record<string, string>]>([
    ["another site's page", { "sec-fetch-site": "cross-site" }],
    ["a page of a neighbouring host", { "sec-fetch-site": "same-site" }],
    ["another origin", { origin: "https://evil.example" }],
  ])("refuses a consent decision from %s", async (_, headers) => {
    const { action, fields } = await ask();
    await expectErrorPage(await browser.post(action, { ...fields, decision: "allow" }, headers), 403);
    await expectNoCode();
  });

  test("refuses a consent decision without an origin", async () => {
    const { action, fields } = await ask();
    const response = await fetch(server.url + action, {
      method: "POST",
      redirect: "manual",
      headers: { cookie: browser.session?.cookie ?? "" },
      body: new URLSearchParams({ ...fields, decision: "allow" }),
    });
    await expectErrorPage(response, 403);
    await expectNoCode();
  });

  // hardening: A5
  test.each(["csrf", "ticket"])("refuses a consent decision with a missing or wrong %s", async (name) => {
    const { action, fields } = await ask();
    for (const value of ["", "x", (fields[name] ?? "").slice(1), `${fields[name]}x`, fields["request"] ?? ""]) {
      await expectErrorPage(await browser.post(action, { ...fields, decision: "allow", [name]: value }), 403);
    }
    await expectNoCode();
  });

  // hardening: A5
  test("refuses one request's consent ticket for other scopes, another app or another state", async () => {
    const little = await ask({ scope: "chat:read" });
    const other = await server.addApp({ name: "Other" });
    for (const path of [
      authorizePath(app),
      authorizePath(app, { scope: "chat:read", state: "s2" }),
      authorizePath(other, { scope: "chat:read" }),
    ]) {
      const request = path.slice(path.indexOf("?") + 1);
      await expectErrorPage(await browser.post(little.action, { ...little.fields, decision: "allow", request }), 403);
    }
    await expectNoCode();
  });

  // hardening: A5
  test("refuses a consent decision for another person or another session of the same person", async () => {
    const { action, fields } = await ask();
    const { person, browser: eve } = await server.signIn("eve@example.com");
    const again = server.browser(await server.startSession(person));
    const mine = formOf(await (await eve.get(authorizePath(app))).text());
    for (const [who, ticket] of [
      [eve, fields["ticket"]],
      [again, mine.fields["ticket"]],
    ] as const) {
      const csrf = who.session?.csrfToken ?? "";
      const sent = { ...mine.fields, csrf, ticket: ticket ?? "", decision: "allow" };
      await expectErrorPage(await who.post(action, sent), 403);
    }
    await expectNoCode();
  });

  // hardening: A14
  test("shows an older app named like this server as separate from it, and others unchanged", async () => {
    for (const [name, isWarned] of [
      ["Headrace", true],
      ["Неа\u0501r\u0430\u0441\u0435 Login", true],
      ["Notes", false],
    ] as const) {
      const named = await server.addApp({ name });
      const page = await (await browser.get(authorizePath(named))).text();
      expect([name, page.includes("not part of this server")]).toEqual([name, isWarned]);
    }
  });

  test("refuses a consent decision after the app got more scopes or another name", async () => {
    const changing = await server.addApp({ scopes: ["models:read"] });
    for (const changes of [{ scopes: ["models:read", "chat:read"] as const }, { name: "Your bank" }]) {
      const page = await browser.get(authorizePath(changing));
      await server.apps.updateApp(changing.id, changes, eventOf("app.updated"));
      await expectErrorPage(await browser.submit(page, { decision: "allow" }), 403);
    }
    await expectNoCode();
  });

  test("refuses a consent decision after the publisher took another name", async () => {
    const publisher = await server.addAccount({ name: "Notes and Sons" });
    const changing = await server.addApp({ accountId: publisher.id });
    const page = await browser.get(authorizePath(changing));
    await server.accounts.updateAccount(publisher.id, { name: "Your Bank" }, eventOf("account.updated"));
    await expectErrorPage(await browser.submit(page, { decision: "allow" }), 403);
    await expectNoCode();
  });

  test("refuses a consent decision without a redirect after its address was removed from the app", async () => {
    const moved = await server.addApp();
    const page = await browser.get(authorizePath(moved));
    await server.apps.updateApp(moved.id, { redirectUris: ["https://new.example/"] }, eventOf("app.updated"));
    await expectErrorPage(await browser.submit(page, { decision: "allow" }));
  });

  test("refuses an authorization request by POST", async () => {
    const query = authorizePath(app).split("?")[1] ?? "";
    const sent = { ...Object.fromEntries(new URLSearchParams(query)), csrf: browser.session?.csrfToken ?? "" };
    await expectErrorPage(await browser.post("/oauth/authorize", sent));
    await expectErrorPage(
      await browser.post(authorizePath(app), { csrf: browser.session?.csrfToken ?? "", decision: "allow" }),
    );
    await expectNoCode();
  });

  test.each(["", "yes", "Allow"])("refuses a consent decision of %j", async (decision) => {
    const { action, fields } = await ask();
    await expectErrorPage(await browser.post(action, { ...fields, decision }));
    await expectNoCode();
  });

  test("refuses a duplicate field of a consent decision", async () => {
    const { action, fields } = await ask();
    const body = `${new URLSearchParams({ ...fields, decision: "deny" })}&decision=allow`;
    const headers = { cookie: browser.session?.cookie ?? "", origin: "null", "sec-fetch-site": "same-origin" };
    const type = { "content-type": "application/x-www-form-urlencoded" };
    await expectErrorPage(
      await fetch(server.url + action, { method: "POST", redirect: "manual", headers: { ...headers, ...type }, body }),
    );
    await expectNoCode();
  });

  test.each(["", "acct_none", "the other's"])(
    "grants nothing for an account of %j that is not the person's",
    async (account) => {
      const { id } = await server.addAccount({ name: "Another" });
      const { action, fields } = await ask();
      const response = await browser.post(action, {
        ...fields,
        decision: "allow",
        account: account === "the other's" ? id : account,
      });
      expect(await expectErrorPage(response)).toContain("Choose one of your accounts");
      await expectNoCode();
    },
  );
});

describe("OAuth pages resist framing and reading by other sites", () => {
  test("sends the consent page's security headers", async () => {
    const response = await browser.get(authorizePath(app), { origin: "https://evil.example" });
    expectPageHeaders(response);
    expect(response.headers.get("content-security-policy")).toContain("script-src 'self'");
    expect(response.headers.get("content-security-policy")).toContain("form-action 'self' https:;");
  });

  test.each(["/oauth/authorize", "/device", "/device/decision"])("refuses a preflight to %s", async (path) => {
    const headers = { origin: "https://evil.example", "access-control-request-method": "POST" };
    const response = await fetch(server.url + path, { method: "OPTIONS", headers });
    expect([response.status, response.headers.get("access-control-allow-methods")]).toEqual([405, null]);
  });

  // hardening: A5
  test.each(["allow", "deny"])("answers a form posted to %s with 303", async (decision) => {
    const response = await browser.submit(await browser.get(authorizePath(app)), { decision });
    expect(response.status).toBe(303);
    expect(response.headers.get("cache-control")).toBe("no-store");
    expect(response.headers.get("referrer-policy")).toBe("no-referrer");
    expect(answered(response)).toMatchObject({ state: "s1", iss: issuer });
  });

  test("logs neither codes, states nor consent tickets", async () => {
    const page = await browser.get(authorizePath(app, { state: "marked-state" }));
    const { action, fields } = formOf(await page.text());
    const code = answered(await browser.post(action, { ...fields, decision: "allow" }))["code"] ?? "";
    expect(code).toHaveLength(43);
    for (const secret of ["marked-state", code, fields["ticket"] ?? "", fields["csrf"] ?? ""]) {
      expect(server.logText()).not.toContain(secret);
    }
  });
});

test("redirects nobody and names a retry time while the database is read-only", async () => {
  const { browser: one } = await server.signIn("outage@example.com");
  const page = formOf(await (await one.get(authorizePath(app))).text());
  const before = await server.countCodes();
  const allow = () => one.post(page.action, { ...page.fields, decision: "allow" });
  await server.db.unsafe("PRAGMA query_only = ON");
  const refused = await allow();
  await server.db.unsafe("PRAGMA query_only = OFF");
  await expectErrorPage(refused, 503);
  expect(refused.headers.get("retry-after")).toBe("1");
  expect(await server.countCodes()).toBe(before);
  expect((await allow()).status).toBe(303);
});

test("limits the codes issued for a person", async () => {
  const { browser: busy } = await server.signIn("busy@example.com");
  const page = formOf(await (await busy.get(authorizePath(app))).text());
  const answers = await Promise.all(
    Array.from({ length: 70 }, () => busy.post(page.action, { ...page.fields, decision: "allow" })),
  );
  expect(answers.filter(({ status }) => status === 303)).toHaveLength(60);
  const refused = answers.find(({ status }) => status === 429);
  expect(Number(refused?.headers.get("retry-after"))).toBeGreaterThan(0);
  expect((await browser.submit(await browser.get(authorizePath(app)), { decision: "allow" })).status).toBe(303);
});

describe("an app's name cannot imitate the server", () => {
  test.each<[string, string]>([
    ["<script>alert(1)</script>", "<script>alert"],
    ['"><form action="https://evil.example">', "<form action"],
    ["</bdi></h1><h1>Your bank", "<h1>Your bank"],
    ["a\u202egnp.exe", "\u202e"],
    ["a\u2066b\u2069", "\u2066"],
    ["a\u200bb\u200d", "\u200b"],
    ["a\nb\u0000c\u0085d\u2028e", "\u2028"],
  ])("defuses the app name %j", async (name, never) => {
    const hostile = await server.addApp({ name, homepageUrl: "javascript:alert(1)" });
    const text = await (await browser.get(authorizePath(hostile))).text();
    expect(text).not.toContain(never);
    expect(text).not.toContain("javascript:");
    expect(text).toContain("chat:write");
  });

  test("truncates a long app name, replaces an empty one by the id, and limits combining marks", async () => {
    const headingOf = async (name: string) => {
      const named = await server.addApp({ name });
      const text = await (await browser.get(authorizePath(named))).text();
      return { id: named.id, heading: /<h1>Allow <bdi>(.*)<\/bdi>/.exec(text)?.[1] };
    };
    expect((await headingOf("A".repeat(500))).heading).toBe(`${"A".repeat(59)}…`);
    for (const nothing of ["\u200b\u202e \n", "\u3164\u115f", "\u2800 \ufe0f"]) {
      const unseen = await headingOf(nothing);
      expect(unseen.heading).toBe(unseen.id);
    }
    expect((await headingOf(`Z${"\u0316".repeat(50)}algo`)).heading).toBe("Z\u0316\u0316algo");
  });

  test("shows the account's name as publisher under the same rules", async () => {
    const { id } = await server.addAccount({ name: "<b>Bank\u202e</b>" });
    const published = await server.addApp({ accountId: id });
    const text = await (await browser.get(authorizePath(published))).text();
    expect(text).toContain("Published by <bdi>&lt;b&gt;Bank &lt;/b&gt;</bdi>");
  });
});
