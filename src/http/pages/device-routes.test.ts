// Tests the device page, on real stores and sockets: codes that users type, or are tricked into typing, and the
// outcomes.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { type AuthorizeServer, formOf, startAuthorizeServer } from "../../../tests/hostile/authorize-server.ts";
import { testEvent } from "../../../tests/support/credentials.ts";
import { mcpServerFor } from "../../../tests/support/tool-uses.ts";
import { GatewayError } from "../../base/errors.ts";
import { type App, commandLineAppId } from "../../domain/people/app.ts";
import { membershipCredentialId } from "../../domain/people/person.ts";
import { accountScopes } from "../../domain/scope.ts";

type Browser = ReturnType<AuthorizeServer["browser"]>;

let server: AuthorizeServer;
let app: App;
let made = 0;

beforeAll(async () => {
  server = await startAuthorizeServer();
  app = await server.addApp({ name: "Television" });
});

afterAll(() => server.close());

/** Each test begins ten minutes later, when no wrong code of an earlier test counts any more. */
beforeEach(() => server.clock.advance(600_000));

const newcomer = (accounts?: readonly string[]) => server.signIn(`person-${++made}@example.com`, accounts);
const alphabet = "BCDFGHJKLMNPQRSTVWXZ";

/** Returns eight letters, different ones at every call. */
function nextCode(): string {
  made++;
  return `BCDFGH${alphabet[Math.floor(made / 20)]}${alphabet[made % 20]}`;
}

async function enter(browser: Browser, userCode: string): Promise<Response> {
  return browser.submit(await browser.get("/device"), { user_code: userCode });
}

async function stateOf(userCode: string) {
  const [row] = await server.db`SELECT state, person_id, account_id FROM device_codes WHERE user_code = ${userCode}`;
  return row as { state: string; person_id: string | null; account_id: string | null };
}

describe("a device code", () => {
  test("redirects to sign-in before the device page and keeps the entered code", async () => {
    const nobody = server.browser();
    expect((await nobody.get("/device")).headers.get("location")).toBe("/sign-in?next=%2Fdevice");
    expect((await nobody.get("/device?user_code=bcdfghjk&x=1")).headers.get("location")).toBe(
      "/sign-in?next=%2Fdevice%3Fuser_code%3DBCDF-GHJK",
    );
    expect((await nobody.get("/device?user_code=//evil.example")).headers.get("location")).toBe(
      "/sign-in?next=%2Fdevice",
    );
  });

  test("only fills in a device code from a link, without showing or connecting anything", async () => {
    const { browser } = await newcomer();
    const code = nextCode();
    await server.addDeviceCode(code, app);
    const page = await browser.get(`/device?user_code=${code.toLowerCase()}`);
    const text = await page.text();
    expect(text).toContain(`value="${code.slice(0, 4)}-${code.slice(4)}"`);
    expect(text).not.toContain("Television");
    expect(text).not.toContain("<script");
    expect(await (await browser.get('/device?user_code="><b>')).text()).not.toContain("<b>");
    expect((await stateOf(code)).state).toBe("pending");
  });

  test.each(["%s", "%l", "%h-%t", " %h %t ", "%h – %t", "%l\t"])("finds a device code entered as %p", async (form) => {
    const code = nextCode();
    await server.addDeviceCode(code, app);
    const { browser } = await newcomer();
    const typed = form
      .replace("%s", code)
      .replace("%l", code.toLowerCase())
      .replace("%h", code.slice(0, 4))
      .replace("%t", code.slice(4));
    const page = await enter(browser, typed);
    expect([page.status, (await page.text()).includes("<bdi>Television</bdi>")]).toEqual([200, true]);
  });

  test.each(["", "BCDF", "AAAA-AAAA", "ZZZZ-ZZZZ", "x".repeat(1_000), "'; DROP TABLE device_codes; --"])(
    "refuses %j as a device code beside the field",
    async (typed) => {
      const { browser } = await newcomer();
      const page = await enter(browser, typed);
      const text = await page.text();
      expect(page.status).toBe(400);
      expect(text).toContain('aria-invalid="true"');
      expect(text).toContain("does not match a waiting device.");
    },
  );

  test("refuses a device code that expired, was decided, or whose app is gone or lost scopes", async () => {
    const { browser } = await newcomer();
    const now = server.clock.nowSeconds();
    const lost = await server.addApp();
    const lesser = await server.addApp({ scopes: ["chat:read"] });
    const codes = [nextCode(), nextCode(), nextCode(), nextCode(), nextCode()] as const;
    await server.addDeviceCode(codes[0], app, { expiresAt: now });
    await server.addDeviceCode(codes[1], app, { state: "denied" });
    await server.addDeviceCode(codes[2], lost);
    await server.apps.deleteApp(lost.id, { ...testEvent(), action: "app.deleted" });
    await server.addDeviceCode(codes[3], lesser, { scopes: ["chat:read", "chat:write"] });
    const greedy = await server.addApp({ scopes: ["chat:read", "keys:manage"] });
    await server.addDeviceCode(codes[4], greedy, { scopes: ["keys:manage"] });
    // A code of the command line tool, from before the server was restarted in another mode.
    const elsewhere = nextCode();
    await server.addDeviceCode(elsewhere, { id: commandLineAppId }, { environment: "live" });
    for (const code of [...codes, elsewhere]) expect((await enter(browser, code)).status).toBe(400);
  });
});

test("logs why a device form was refused", async () => {
  const { browser } = await newcomer();
  const find = server.oauth.findByUserCode;
  const detail = "database: SQLITE_BUSY";
  server.oauth.findByUserCode = () =>
    Promise.reject(new GatewayError("service_unavailable", "Later.", { detail, retryAfterSeconds: 0.5 }));
  const answer = await enter(browser, nextCode());
  server.oauth.findByUserCode = find;
  expect([answer.status, answer.headers.get("retry-after")]).toEqual([503, "1"]);
  const line = server.logText().split("\n").at(-1) ?? "";
  expect(JSON.parse(line)).toMatchObject({
    event: "request",
    fields: { id: answer.headers.get("x-request-id"), status: 503, code: "service_unavailable", detail },
  });
});

describe("wrong device codes", () => {
  // hardening: A12
  test("limits wrong device codes to ten in ten minutes for a user, without counting right ones", async () => {
    const { browser } = await newcomer();
    const csrf = browser.session?.csrfToken ?? "";
    const right = nextCode();
    await server.addDeviceCode(right, app);
    for (let i = 0; i < 15; i++) expect((await enter(browser, right)).status).toBe(200);
    const tries = Array.from({ length: 40 }, () => browser.post("/device", { csrf, user_code: "ZZZZ-ZZZZ" }));
    const statuses = (await Promise.all(tries)).map(({ status }) => status).sort();
    expect(statuses.filter((status) => status === 400)).toHaveLength(10);
    expect(statuses.filter((status) => status === 429)).toHaveLength(30);
    const refused = await enter(browser, right);
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "60"]);
    expect(await refused.text()).toContain("At most 10 wrong codes in 10 minutes.");

    // A second user at the same address has no attempts left, either.
    const { browser: other } = await newcomer();
    expect((await enter(other, right)).status).toBe(429);
    server.clock.advance(60_000);
    expect((await enter(browser, right)).status).toBe(200);
  });
});

test("counts wrong device codes across a user's sessions and both forms", async () => {
  const { browser, person } = await newcomer();
  const again = server.browser(await server.startSession(person));
  const tries = Array.from({ length: 18 }, (_, i) => {
    const from = i % 2 === 0 ? browser : again;
    const fields = { csrf: from.session?.csrfToken ?? "", user_code: "ZZZZ-ZZZZ", ticket: "x", decision: "allow" };
    const path = i % 3 === 0 ? "/device/decision" : "/device";
    return from.post(path, fields, { "x-forwarded-for": `192.0.2.${i}` });
  });
  const statuses = (await Promise.all(tries)).map(({ status }) => status);
  expect(statuses.filter((status) => status === 400)).toHaveLength(10);
  expect(statuses.filter((status) => status === 429)).toHaveLength(8);
});

// hardening: A12
test("counts wrong device codes of many users in one IPv6 network together", async () => {
  const newcomers = await Promise.all(Array.from({ length: 12 }, () => newcomer()));
  const tries = newcomers.map(({ browser }, i) => {
    const fields = { csrf: browser.session?.csrfToken ?? "", user_code: "ZZZZ-ZZZZ" };
    return browser.post("/device", fields, { "x-forwarded-for": `2001:db8:0:1::${i + 1}` });
  });
  const statuses = (await Promise.all(tries)).map(({ status }) => status);
  expect(statuses.filter((status) => status === 400)).toHaveLength(10);
});

describe("the decision about a device", () => {
  test("shows the app, its code, its scopes and a warning before the decision", async () => {
    const code = nextCode();
    await server.addDeviceCode(code, app, { scopes: ["chat:read"] });
    const { browser } = await newcomer();
    const page = await enter(browser, code);
    const text = await page.text();
    for (const words of [
      "Connect <bdi>Television</bdi>?",
      "Published by",
      "Read the chats",
      `${code.slice(0, 4)}-${code.slice(4)}`,
    ]) {
      expect(text).toContain(words);
    }
    expect(text).toContain("only if you started this yourself");
    expect(page.headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
    expect(page.headers.get("referrer-policy")).toBe("no-referrer");
    expect(page.headers.get("access-control-allow-origin")).toBeNull();
  });

  test("explains the command-line tool and offers it key scopes", async () => {
    const code = nextCode();
    await server.addDeviceCode(code, { id: commandLineAppId }, { environment: "dev", scopes: accountScopes });
    const { browser } = await newcomer();
    const page = await enter(browser, code);
    const text = await page.clone().text();
    expect(text).toContain(
      "<h1>Connect <bdi>the headrace command line tool</bdi>?</h1>\n<p>This app is part of this server",
    );
    expect(text).toContain("Create, change and revoke API keys");
    expect(text).not.toContain("in development");
    expect((await browser.submit(page, { decision: "allow" })).headers.get("location")).toBe("/device/approved");
  });

  test("records an approval with its audit event for the chosen account", async () => {
    const code = nextCode();
    await server.addDeviceCode(code, app);
    const second = await server.addAccount({ name: "Second" });
    const { browser, person } = await newcomer([server.accountId, second.id]);
    const response = await browser.submit(await enter(browser, code), { decision: "allow", account: second.id });
    expect([response.status, response.headers.get("location")]).toEqual([303, "/device/approved"]);
    expect(await stateOf(code)).toEqual({ state: "approved", person_id: person.id, account_id: second.id });
    const [event] = await server.audit.list({ action: "device.approved" }, { after: undefined, limit: 1 });
    expect(event).toMatchObject({
      ...{ actor: { type: "person", id: person.id }, accountId: second.id, targetId: app.id },
      detail: { environment: "live", scopes: ["chat:write"] },
    });
    expect(await (await browser.get("/device/approved")).text()).toContain("Device connected");
  });

  test("approves a device for the chosen MCP servers, and the command-line tool for the user's own account", async () => {
    for (const name of ["crm", "github"]) server.tools.set(name, mcpServerFor({ name }));
    const television = await server.addApp({ scopes: ["tools:use"] });
    const { browser } = await newcomer();
    const code = nextCode();
    await server.addDeviceCode(code, television, { scopes: ["tools:use"], resources: ["/mcp"] });
    const page = await enter(browser, code);
    const none = await browser.submit(page.clone(), { decision: "allow", tools: "some" });
    expect([none.status, await none.clone().text()]).toEqual([400, expect.stringContaining("Choose at least one")]);
    await browser.submit(none, { decision: "allow", tools: "some", "server:github": "on" });
    const [row] = await server.db`SELECT state, tools FROM device_codes WHERE user_code = ${code}`;
    expect(row).toMatchObject({ state: "approved", tools: '["github"]' });
    const own = nextCode();
    await server.addDeviceCode(own, { id: commandLineAppId }, { environment: "dev", scopes: accountScopes });
    expect(await (await enter(browser, own)).text()).not.toContain("server:crm");
    server.tools.clear();
  });

  test("makes a denial final", async () => {
    const code = nextCode();
    await server.addDeviceCode(code, app);
    const { browser } = await newcomer();
    const page = await enter(browser, code);
    const { action, fields } = formOf(await page.text());
    const response = await browser.post(action, { ...fields, decision: "deny" });
    expect(response.headers.get("location")).toBe("/device/denied");
    expect(await stateOf(code)).toMatchObject({ state: "denied", person_id: null });
    const again = await browser.post(action, { ...fields, decision: "allow" });
    expect([again.status, (await again.text()).includes("has expired or was already used")]).toEqual([400, true]);
    expect(await stateOf(code)).toMatchObject({ state: "denied" });
  });

  test("accepts a decision only from the page and session that asked for it", async () => {
    const [code, other] = [nextCode(), nextCode()];
    await server.addDeviceCode(code, app);
    await server.addDeviceCode(other, app);
    const { browser } = await newcomer();
    const { browser: eve } = await newcomer();
    const { action, fields } = formOf(await (await enter(browser, code)).text());
    const allow = { ...fields, decision: "allow" };
    const foreign = [
      browser.post(action, { ...allow, csrf: "" }),
      browser.post(action, allow, { "sec-fetch-site": "cross-site" }),
      browser.post(action, allow, { origin: "https://evil.example" }),
    ];
    expect((await Promise.all(foreign)).map(({ status }) => status)).toEqual([403, 403, 403]);
    const unshown = [
      browser.post(action, { ...allow, user_code: other }),
      browser.post(action, { ...allow, ticket: "" }),
      eve.post(action, { ...allow, csrf: eve.session?.csrfToken ?? "" }),
      // No request waits under this code; the answers to the forged forms above must equal its answer.
      browser.post(action, { ...allow, user_code: "ZZZZZZZZ" }),
    ];
    const answers = await Promise.all(unshown);
    expect(answers.map(({ status }) => status)).toEqual([400, 400, 400, 400]);
    const texts = await Promise.all(answers.map((answer) => answer.text()));
    expect(new Set(texts.map((text) => text.replace(/req_[\w-]+/, ""))).size).toBe(1);
    for (const one of [code, other]) expect((await stateOf(one)).state).toBe("pending");
    expect((await server.browser().post(action, allow)).headers.get("location")).toBe("/sign-in?next=%2Fdevice");
  });

  test("does not apply a decision to a later device with the same code", async () => {
    const code = nextCode();
    await server.addDeviceCode(code, app, { expiresAt: server.clock.nowSeconds() + 5 });
    const { browser } = await newcomer();
    const page = await enter(browser, code);
    server.clock.advance(10_000);
    await server.db`UPDATE device_codes SET state = 'denied' WHERE user_code = ${code}`;
    await server.addDeviceCode(code, app);
    expect((await browser.submit(page, { decision: "allow" })).status).toBe(400);
    expect(await server.db`SELECT state FROM device_codes WHERE user_code = ${code} AND state = 'approved'`).toEqual(
      [],
    );
  });

  test("applies one of fifty concurrent decisions", async () => {
    const code = nextCode();
    await server.addDeviceCode(code, app);
    const { browser } = await newcomer();
    const { action, fields } = formOf(await (await enter(browser, code)).text());
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        browser.post(action, { ...fields, decision: i % 2 === 0 ? "allow" : "deny" }),
      ),
    );
    expect(answers.filter(({ status }) => status === 303)).toHaveLength(1);
  });

  test("refuses a decision for an account in which the user cannot act", async () => {
    const code = nextCode();
    await server.addDeviceCode(code, app);
    const { browser } = await newcomer([]);
    expect((await enter(browser, code)).status).toBe(403);
    const { browser: member } = await newcomer();
    const page = await enter(member, code);
    const foreign = await server.addAccount();
    const refused = await member.submit(page, { decision: "allow", account: foreign.id });
    expect([refused.status, (await refused.text()).includes("Choose one of your accounts.")]).toEqual([400, true]);
    expect((await stateOf(code)).state).toBe("pending");
  });

  test("refuses a decision of a user whose membership has ended", async () => {
    const code = nextCode();
    await server.addDeviceCode(code, app);
    const { browser, person } = await newcomer();
    const page = await enter(browser, code);
    const credential = membershipCredentialId((await server.membershipOf(person)).id, "live");
    await server.keys.updateKey(credential, { expiresAt: server.clock.nowSeconds() }, testEvent());
    expect((await browser.submit(page, { decision: "allow" })).status).toBe(400);
    expect((await stateOf(code)).state).toBe("pending");
  });

  test("refuses a decision if the session ends before it arrives", async () => {
    const code = nextCode();
    await server.addDeviceCode(code, app);
    const { browser, person } = await newcomer();
    const page = await enter(browser, code);
    server.meanwhile(() => server.sessionStore.endAll(person.id, null, testEvent()));
    expect((await browser.submit(page, { decision: "allow" })).status).toBe(401);
    expect((await stateOf(code)).state).toBe("pending");
  });
});
