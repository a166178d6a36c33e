// The authorization endpoint under requests, forms and apps that mean no good: hardening.md, OAuth.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { App } from "../../src/domain/app.ts";
import type { AuditAction } from "../../src/domain/audit.ts";
import { testEvent } from "../support/credentials.ts";
import {
  type AuthorizeServer,
  answered,
  authorizePath,
  challenge,
  formOf,
  issuer,
  startAuthorizeServer,
} from "./authorize-server.ts";

type Browser = ReturnType<AuthorizeServer["browser"]>;

let server: AuthorizeServer;
let app: App;
let native: App;
let browser: Browser;
let nobody: Browser;

beforeAll(async () => {
  server = await startAuthorizeServer();
  app = await server.addApp();
  native = await server.addApp({
    redirectUris: ["http://127.0.0.1/callback", "http://[::1]:7777/callback?from=cli", "com.example.notes:/callback"],
  });
  ({ browser } = await server.signIn("ada@example.com"));
  nobody = server.browser();
});

afterAll(() => server.close());

const eventOf = (action: AuditAction) => ({ ...testEvent(), action });

/** A page of ours that leads nowhere. */
async function expectErrorPage(response: Response, status = 400): Promise<string> {
  expect([response.status, response.headers.get("location")]).toEqual([status, null]);
  expect(response.headers.get("content-type")).toBe("text/html; charset=utf-8");
  expectPageHeaders(response);
  return response.text();
}

function expectPageHeaders({ headers }: Response): void {
  expect(headers.get("referrer-policy")).toBe("no-referrer");
  expect(headers.get("cache-control")).toBe("no-store");
  expect(headers.get("x-frame-options")).toBe("DENY");
  expect(headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
  expect(headers.get("access-control-allow-origin")).toBeNull();
}

describe("nothing is sent to an address that is not registered to the letter", () => {
  test.each([
    ["https://notes.example/callback/", "a slash more"],
    ["https://notes.example/Callback", "another case in the path"],
    ["https://Notes.example/callback", "another case in the host"],
    ["HTTPS://notes.example/callback", "another case in the scheme"],
    ["https://notes.example/callback?", "an empty query"],
    ["https://notes.example/callback?a=1", "a query"],
    ["https://notes.example/callback#", "an empty fragment"],
    ["https://notes.example/callback#a", "a fragment"],
    ["https://user@notes.example/callback", "user information"],
    ["https://notes.example@evil.example/callback", "another host behind it"],
    ["https://notes.example.evil.example/callback", "another host that begins with it"],
    ["https://notes.example:443/callback", "the port that is meant anyway"],
    ["https://notes.example:8443/callback", "another port"],
    ["https://notes.example/../callback", "a dot segment"],
    ["https://notes.example/x/../callback", "a dot segment that leads to it"],
    ["https://notes.example/%63allback", "a letter percent-encoded"],
    ["https://notes.example\\callback", "a backslash"],
    ["https://notes.example/callback\t", "a tab"],
    [" https://notes.example/callback", "a blank"],
    ["http://notes.example/callback", "plain http"],
    ["//notes.example/callback", "no scheme"],
    ["/callback", "a path"],
    ["javascript:alert(1)", "a script"],
    ["data:text/html,x", "data"],
    ["https://evil.example/", "anything else"],
  ])("%j: %s", async (uri) => {
    for (const asking of [nobody, browser]) {
      const text = await expectErrorPage(await asking.get(authorizePath(app, { redirect_uri: uri })));
      expect(text).toContain("redirect_uri");
      expect(text).not.toContain("evil.example");
    }
  });

  test("nor to plain http beyond this machine, were it registered", async () => {
    const exposed = await server.addApp({ redirectUris: ["http://notes.example/callback"] });
    for (const uri of ["http://notes.example/callback", undefined]) {
      await expectErrorPage(await browser.get(authorizePath(exposed, { redirect_uri: uri })));
    }
  });

  test.each([
    ["client_id=%s&client_id=%s&redirect_uri=https://notes.example/callback", "the client twice"],
    [
      "client_id=%s&redirect_uri=https://notes.example/callback&redirect_uri=https://notes.example/callback",
      "the address twice",
    ],
    ["client_id=%s&redirect_uri=&redirect_uri=https://notes.example/callback", "the address twice, once empty"],
    ["client_id=app_none&redirect_uri=https://notes.example/callback", "an unknown client"],
    ["client_id=headrace-cli&redirect_uri=http://127.0.0.1/", "the command line tool, which has no address"],
    ["client_id=&redirect_uri=https://notes.example/callback", "an empty client"],
    ["redirect_uri=https://notes.example/callback", "no client"],
    [`client_id=${"x".repeat(3_000)}&redirect_uri=https://notes.example/callback`, "a client of 3,000 letters"],
    [`client_id=%s&redirect_uri=https://notes.example/callback&state=${"x".repeat(4_000)}`, "more than a request is"],
    ["", "nothing at all"],
  ])("%s: %s", async (query) => {
    for (const asking of [nobody, browser]) {
      const path = `/oauth/authorize?${query.replaceAll("%s", app.id)}&response_type=code`;
      await expectErrorPage(await asking.get(path));
    }
  });

  test("an app that was deleted is unknown", async () => {
    const gone = await server.addApp();
    await server.apps.deleteApp(gone.id, eventOf("app.deleted"));
    await expectErrorPage(await browser.get(authorizePath(gone)));
  });

  test("left out, it is the only one that is registered; of several, none", async () => {
    expect((await browser.get(authorizePath(app, { redirect_uri: undefined }))).status).toBe(200);
    await expectErrorPage(await browser.get(authorizePath(native, { redirect_uri: undefined })));
    await expectErrorPage(await browser.get(authorizePath(native, { redirect_uri: "" })));
  });
});

describe("of a program on this machine, only the port may vary", () => {
  test.each([
    "http://127.0.0.1/callback",
    "http://127.0.0.1:1/callback",
    "http://127.0.0.1:65535/callback",
    "http://[::1]:49152/callback?from=cli",
    "http://[::1]/callback?from=cli",
    "com.example.notes:/callback",
  ])("%s is taken", async (uri) => {
    const page = await browser.get(authorizePath(native, { redirect_uri: uri }));
    const answer = await browser.submit(page, { decision: "deny" });
    expect(answer.headers.get("location")).toStartWith(`${uri}${uri.includes("?") ? "&" : "?"}error=access_denied&`);
  });

  test.each([
    "http://127.0.0.1:65536/callback",
    "http://127.0.0.1:/callback",
    "http://127.0.0.1:80x/callback",
    "http://127.0.0.1:8080@evil.example/callback",
    "http://127.0.0.1:8080/callback/",
    "http://127.0.0.1:8080/callback?x=1",
    "http://127.0.0.1:8080/",
    "http://127.0.0.2:8080/callback",
    "http://127.1:8080/callback",
    "http://2130706433/callback",
    "http://localhost:8080/callback",
    "http://[::1]:7777/callback",
    "http://[::1]:7777/callback?from=cli&x=1",
    "https://127.0.0.1:8080/callback",
    "com.example.notes:8080/callback",
    "com.example.notes://callback",
    "com.example.notes:/callback/",
  ])("%s is not", async (uri) => {
    await expectErrorPage(await browser.get(authorizePath(native, { redirect_uri: uri })));
  });
});

describe("whatever is wrong with the rest of a request, the app is told, with state and issuer", () => {
  test.each<[string, string, Record<string, string | undefined>]>([
    ["no response type", "invalid_request", { response_type: undefined }],
    ["an empty one", "invalid_request", { response_type: "" }],
    ["tokens", "unsupported_response_type", { response_type: "token" }],
    ["a code and more", "unsupported_response_type", { response_type: "code id_token" }],
    ["the answer in the fragment", "invalid_request", { response_mode: "fragment" }],
    ["the answer as a form", "invalid_request", { response_mode: "form_post" }],
    ["a request object", "request_not_supported", { request: "e30.e30." }],
    ["one elsewhere", "request_uri_not_supported", { request_uri: "http://169.254.169.254/" }],
    [
      "no challenge of a public app",
      "invalid_request",
      { code_challenge: undefined, code_challenge_method: undefined },
    ],
    ["a method without one", "invalid_request", { code_challenge: undefined }],
    ["a challenge without method, which means plain", "invalid_request", { code_challenge_method: undefined }],
    ["plain", "invalid_request", { code_challenge_method: "plain" }],
    ["another case", "invalid_request", { code_challenge_method: "s256" }],
    ["42 characters", "invalid_request", { code_challenge: challenge.slice(1) }],
    ["44 characters", "invalid_request", { code_challenge: `${challenge}A` }],
    ["a padded challenge", "invalid_request", { code_challenge: `${challenge.slice(1)}=` }],
    ["base64 that is not for addresses", "invalid_request", { code_challenge: `${challenge.slice(1)}+` }],
    ["an unknown scope", "invalid_scope", { scope: "everything" }],
    ["one that the app does not have", "invalid_scope", { scope: "chat:read usage:read" }],
    ["keys", "invalid_scope", { scope: "chat:read keys:manage" }],
    ["operation", "invalid_scope", { scope: "admin:manage" }],
    ["a prompt that contradicts itself", "invalid_request", { prompt: "none login" }],
    ["asking nobody", "consent_required", { prompt: "none" }],
  ])("%s: %s", async (_, error, changes) => {
    const response = await browser.get(authorizePath(app, changes));
    const answer = answered(response);
    expect(answer).toEqual({ error, error_description: expect.any(String), state: "s1", iss: issuer });
    expect(answer["error_description"]).toMatch(/^[\x20\x21\x23-\x5b\x5d-\x7e]{10,200}$/);
    expect(response.headers.get("location")).toStartWith("https://notes.example/callback?");
    expect(response.headers.get("cache-control")).toBe("no-store");
    expect(response.headers.get("referrer-policy")).toBe("no-referrer");
    expect(response.headers.get("access-control-allow-origin")).toBeNull();
  });

  test.each([
    "response_type",
    "response_mode",
    "scope",
    "code_challenge",
    "code_challenge_method",
    "prompt",
    "request",
  ])("%s twice", async (name) => {
    const path = `${authorizePath(app, { [name]: undefined })}&${name}=&${name}=query`;
    expect(answered(await browser.get(path))).toMatchObject({ error: "invalid_request", state: "s1", iss: issuer });
  });

  test("of two states none comes back", async () => {
    const answer = answered(await browser.get(`${authorizePath(app)}&state=s2`));
    expect(answer).toEqual({ error: "invalid_request", error_description: expect.any(String), iss: issuer });
  });

  test("a state of 2,048 characters is taken, a longer one is not", async () => {
    expect((await browser.get(authorizePath(app, { state: "x".repeat(2_048) }))).status).toBe(200);
    const state = "x".repeat(2_049);
    expect(answered(await browser.get(authorizePath(app, { state })))).toMatchObject({
      error: "invalid_request",
      state,
    });
  });

  test("without a state there is none in the answer", async () => {
    for (const state of [undefined, ""]) {
      const answer = answered(await browser.get(authorizePath(app, { state, response_type: "token" })));
      expect(Object.keys(answer).sort()).toEqual(["error", "error_description", "iss"]);
    }
  });

  test.each(["a b+c&d=e#f%20", 'ä"<>\\', "a\r\nset-cookie: x=1", "&iss=https://evil.example"])(
    "a state of %j comes back as it is",
    async (state) => {
      const response = await browser.get(authorizePath(app, { state, response_type: "token" }));
      expect(answered(response)).toMatchObject({ state, iss: issuer });
      expect(response.headers.get("set-cookie")).toBeNull();
      expect(response.headers.get("location")).not.toMatch(/[\s#]/);
    },
  );

  test("an address with a query of its own keeps it, to the letter", async () => {
    const redirectUri = "https://notes.example/cb?tenant=a%20b&x=%2f";
    const queried = await server.addApp({ redirectUris: [redirectUri] });
    const response = await browser.get(authorizePath(queried, { redirect_uri: redirectUri, response_type: "x" }));
    expect(response.headers.get("location")).toStartWith(`${redirectUri}&error=unsupported_response_type&`);
  });

  test("a record that has scopes no app may have gives none of them", async () => {
    const greedy = await server.addApp({ scopes: ["chat:read", "keys:manage", "admin:manage"] });
    expect(answered(await browser.get(authorizePath(greedy, { scope: "keys:manage" })))["error"]).toBe("invalid_scope");
    const page = await (await browser.get(authorizePath(greedy))).text();
    expect(page).toContain("chat:read");
    expect(page).not.toMatch(/keys:manage|admin:manage/);
  });
});

describe("nobody is led away who is not signed in", () => {
  test.each<[string, Record<string, string | undefined>]>([
    ["a valid request", {}],
    ["one that is in error", { response_type: "token" }],
    ["one that forbids asking", { prompt: "none" }],
    ["one with a scope that is not", { scope: "x", prompt: "none" }],
  ])("%s leads to the sign-in, and back to itself", async (_, changes) => {
    const path = authorizePath(app, changes);
    const response = await nobody.get(path);
    expect(response.status).toBe(303);
    expect(response.headers.get("location")).toBe(`/sign-in?next=${encodeURIComponent(path)}`);
  });

  test("a session that has ended counts for nothing", async () => {
    const { person, browser: left } = await server.signIn("left@example.com");
    const page = await left.get(authorizePath(app));
    await server.sessionStore.endAll(person.id, null, eventOf("session.ended"));
    const response = await left.submit(page, { decision: "allow" });
    expect(response.headers.get("location")).toBe(`/sign-in?next=${encodeURIComponent(authorizePath(app))}`);
  });
});

describe("a decision counts only from the page that asked for it", () => {
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
  ])("%s is refused", async (_, headers) => {
    const { action, fields } = await ask();
    await expectErrorPage(await browser.post(action, { ...fields, decision: "allow" }, headers), 403);
    await expectNoCode();
  });

  test("no origin at all is refused", async () => {
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

  test.each(["csrf", "ticket"])("without its %s, or with another, it is refused", async (name) => {
    const { action, fields } = await ask();
    for (const value of ["", "x", (fields[name] ?? "").slice(1), `${fields[name]}x`, fields["request"] ?? ""]) {
      await expectErrorPage(await browser.post(action, { ...fields, decision: "allow", [name]: value }), 403);
    }
    await expectNoCode();
  });

  test("the ticket of one request is none for another: not for more scopes, another app or another state", async () => {
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

  test("nor for another person, nor another session of the same", async () => {
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

  test("nor after the app was given more scopes or another name", async () => {
    const changing = await server.addApp({ scopes: ["models:read"] });
    for (const changes of [{ scopes: ["models:read", "chat:read"] as const }, { name: "Your bank" }]) {
      const page = await browser.get(authorizePath(changing));
      await server.apps.updateApp(changing.id, changes, eventOf("app.updated"));
      await expectErrorPage(await browser.submit(page, { decision: "allow" }), 403);
    }
    await expectNoCode();
  });

  test("nor after its publisher took another name", async () => {
    const publisher = await server.addAccount({ name: "Notes and Sons" });
    const changing = await server.addApp({ accountId: publisher.id });
    const page = await browser.get(authorizePath(changing));
    await server.accounts.updateAccount(publisher.id, { name: "Your Bank" }, eventOf("account.updated"));
    await expectErrorPage(await browser.submit(page, { decision: "allow" }), 403);
    await expectNoCode();
  });

  test("nor after its address was taken from the app: then nothing is sent there", async () => {
    const moved = await server.addApp();
    const page = await browser.get(authorizePath(moved));
    await server.apps.updateApp(moved.id, { redirectUris: ["https://new.example/"] }, eventOf("app.updated"));
    await expectErrorPage(await browser.submit(page, { decision: "allow" }));
  });

  test("an authorization request that is posted is none", async () => {
    const query = authorizePath(app).split("?")[1] ?? "";
    const sent = { ...Object.fromEntries(new URLSearchParams(query)), csrf: browser.session?.csrfToken ?? "" };
    await expectErrorPage(await browser.post("/oauth/authorize", sent));
    await expectErrorPage(
      await browser.post(authorizePath(app), { csrf: browser.session?.csrfToken ?? "", decision: "allow" }),
    );
    await expectNoCode();
  });

  test.each(["", "yes", "Allow"])("a decision of %j is none", async (decision) => {
    const { action, fields } = await ask();
    await expectErrorPage(await browser.post(action, { ...fields, decision }));
    await expectNoCode();
  });

  test("a field that is sent twice is refused", async () => {
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
    "an account of %j, which is not the person's, gets nothing",
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

describe("no page can be read or framed by another site, and no redirect repeats a form", () => {
  test("the consent page's headers", async () => {
    const response = await browser.get(authorizePath(app), { origin: "https://evil.example" });
    expectPageHeaders(response);
    expect(response.headers.get("content-security-policy")).toContain("script-src 'self'");
    expect(response.headers.get("content-security-policy")).toContain("form-action 'self' https:;");
  });

  test.each(["/oauth/authorize", "/device", "/device/decision"])("a preflight to %s is refused", async (path) => {
    const headers = { origin: "https://evil.example", "access-control-request-method": "POST" };
    const response = await fetch(server.url + path, { method: "OPTIONS", headers });
    expect([response.status, response.headers.get("access-control-allow-methods")]).toEqual([405, null]);
  });

  test.each(["allow", "deny"])("to %s is answered by 303", async (decision) => {
    const response = await browser.submit(await browser.get(authorizePath(app)), { decision });
    expect(response.status).toBe(303);
    expect(response.headers.get("cache-control")).toBe("no-store");
    expect(response.headers.get("referrer-policy")).toBe("no-referrer");
    expect(answered(response)).toMatchObject({ state: "s1", iss: issuer });
  });

  test("neither codes, states nor tickets are in the log", async () => {
    const page = await browser.get(authorizePath(app, { state: "marked-state" }));
    const { action, fields } = formOf(await page.text());
    const code = answered(await browser.post(action, { ...fields, decision: "allow" }))["code"] ?? "";
    expect(code).toHaveLength(43);
    for (const secret of ["marked-state", code, fields["ticket"] ?? "", fields["csrf"] ?? ""]) {
      expect(server.logText()).not.toContain(secret);
    }
  });
});

test("while the database takes no writes nobody is sent back, and it is said when to try again", async () => {
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

test("nobody is given codes without end, whoever asks", async () => {
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

describe("an app cannot make itself out to be more than an app", () => {
  test.each<[string, string]>([
    ["<script>alert(1)</script>", "<script>alert"],
    ['"><form action="https://evil.example">', "<form action"],
    ["</bdi></h1><h1>Your bank", "<h1>Your bank"],
    ["a\u202egnp.exe", "\u202e"],
    ["a\u2066b\u2069", "\u2066"],
    ["a\u200bb\u200d", "\u200b"],
    ["a\nb\u0000c\u0085d\u2028e", "\u2028"],
  ])("the name %j", async (name, never) => {
    const hostile = await server.addApp({ name, homepageUrl: "javascript:alert(1)" });
    const text = await (await browser.get(authorizePath(hostile))).text();
    expect(text).not.toContain(never);
    expect(text).not.toContain("javascript:");
    expect(text).toContain("chat:write");
  });

  test("a long name is cut, a name of nothing is the id, and marks do not pile up", async () => {
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

  test("the publisher is the account's name, under the same rules", async () => {
    const { id } = await server.addAccount({ name: "<b>Bank\u202e</b>" });
    const published = await server.addApp({ accountId: id });
    const text = await (await browser.get(authorizePath(published))).text();
    expect(text).toContain("Published by <bdi>&lt;b&gt;Bank &lt;/b&gt;</bdi>");
  });
});
