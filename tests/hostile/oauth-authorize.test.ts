// The authorization endpoint under requests that mean no good: where nobody is sent, and what apps are told instead: hardening.md, OAuth.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { AuditAction } from "../../src/domain/audit.ts";
import type { App } from "../../src/domain/people/app.ts";
import { testEvent } from "../support/credentials.ts";
import {
  type AuthorizeServer,
  answered,
  authorizePath,
  challenge,
  expectErrorPage,
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

describe("redirects only to exactly registered addresses", () => {
  // hardening: A1
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

  // hardening: A1
  test("sends nothing to plain HTTP beyond this machine, even if it is registered", async () => {
    const exposed = await server.addApp({ redirectUris: ["http://notes.example/callback"] });
    for (const uri of ["http://notes.example/callback", undefined]) {
      await expectErrorPage(await browser.get(authorizePath(exposed, { redirect_uri: uri })));
    }
  });

  // hardening: A1
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

  test("treats a deleted app as unknown", async () => {
    const gone = await server.addApp();
    await server.apps.deleteApp(gone.id, eventOf("app.deleted"));
    await expectErrorPage(await browser.get(authorizePath(gone)));
  });

  // hardening: A1
  test("uses the only registered redirect URI if none is given, and refuses to choose among several", async () => {
    expect((await browser.get(authorizePath(app, { redirect_uri: undefined }))).status).toBe(200);
    await expectErrorPage(await browser.get(authorizePath(native, { redirect_uri: undefined })));
    await expectErrorPage(await browser.get(authorizePath(native, { redirect_uri: "" })));
  });
});

describe("a loopback redirect URI may differ only in its port", () => {
  // hardening: A1
  test.each([
    "http://127.0.0.1/callback",
    "http://127.0.0.1:1/callback",
    "http://127.0.0.1:65535/callback",
    "http://[::1]:49152/callback?from=cli",
    "http://[::1]/callback?from=cli",
    "com.example.notes:/callback",
  ])("accepts the loopback redirect URI %s", async (uri) => {
    const page = await browser.get(authorizePath(native, { redirect_uri: uri }));
    const answer = await browser.submit(page, { decision: "deny" });
    expect(answer.headers.get("location")).toStartWith(`${uri}${uri.includes("?") ? "&" : "?"}error=access_denied&`);
  });

  // hardening: A1
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
  ])("refuses the loopback redirect URI %s", async (uri) => {
    await expectErrorPage(await browser.get(authorizePath(native, { redirect_uri: uri })));
  });
});

describe("errors of a valid client are redirected with state and issuer", () => {
  // hardening: A2
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

  // hardening: A2
  test.each([
    "response_type",
    "response_mode",
    "scope",
    "code_challenge",
    "code_challenge_method",
    "prompt",
    "request",
  ])("refuses a duplicate %s with a redirect", async (name) => {
    const path = `${authorizePath(app, { [name]: undefined })}&${name}=&${name}=query`;
    expect(answered(await browser.get(path))).toMatchObject({ error: "invalid_request", state: "s1", iss: issuer });
  });

  // hardening: A2
  test("returns neither of two states in a request", async () => {
    const answer = answered(await browser.get(`${authorizePath(app)}&state=s2`));
    expect(answer).toEqual({ error: "invalid_request", error_description: expect.any(String), iss: issuer });
  });

  test("accepts a state of 2,048 characters and refuses a longer one", async () => {
    expect((await browser.get(authorizePath(app, { state: "x".repeat(2_048) }))).status).toBe(200);
    const state = "x".repeat(2_049);
    expect(answered(await browser.get(authorizePath(app, { state })))).toMatchObject({
      error: "invalid_request",
      state,
    });
  });

  test("returns no state if the request has none", async () => {
    for (const state of [undefined, ""]) {
      const answer = answered(await browser.get(authorizePath(app, { state, response_type: "token" })));
      expect(Object.keys(answer).sort()).toEqual(["error", "error_description", "iss"]);
    }
  });

  // hardening: A2
  test.each(["a b+c&d=e#f%20", 'ä"<>\\', "a\r\nset-cookie: x=1", "&iss=https://evil.example"])(
    "returns a state of %j unchanged",
    async (state) => {
      const response = await browser.get(authorizePath(app, { state, response_type: "token" }));
      expect(answered(response)).toMatchObject({ state, iss: issuer });
      expect(response.headers.get("set-cookie")).toBeNull();
      expect(response.headers.get("location")).not.toMatch(/[\s#]/);
    },
  );

  test("keeps a redirect URI's own query exactly", async () => {
    const redirectUri = "https://notes.example/cb?tenant=a%20b&x=%2f";
    const queried = await server.addApp({ redirectUris: [redirectUri] });
    const response = await browser.get(authorizePath(queried, { redirect_uri: redirectUri, response_type: "x" }));
    expect(response.headers.get("location")).toStartWith(`${redirectUri}&error=unsupported_response_type&`);
  });

  test("grants none of an app record's scopes that no app may have", async () => {
    const greedy = await server.addApp({ scopes: ["chat:read", "keys:manage", "admin:manage"] });
    expect(answered(await browser.get(authorizePath(greedy, { scope: "keys:manage" })))["error"]).toBe("invalid_scope");
    const page = await (await browser.get(authorizePath(greedy))).text();
    expect(page).toContain("chat:read");
    expect(page).not.toMatch(/keys:manage|admin:manage/);
  });
});

describe("an unauthenticated person is not redirected to an app", () => {
  // hardening: A4
  test.each<[string, Record<string, string | undefined>]>([
    ["a valid request", {}],
    ["one that is in error", { response_type: "token" }],
    ["one that forbids asking", { prompt: "none" }],
    ["one with a scope that is not", { scope: "x", prompt: "none" }],
  ])("leads %s to the sign-in, and back", async (_, changes) => {
    const path = authorizePath(app, changes);
    const response = await nobody.get(path);
    expect(response.status).toBe(303);
    expect(response.headers.get("location")).toBe(`/sign-in?next=${encodeURIComponent(path)}`);
  });

  // hardening: A4
  test("treats an ended session like none", async () => {
    const { person, browser: left } = await server.signIn("left@example.com");
    const page = await left.get(authorizePath(app));
    await server.sessionStore.endAll(person.id, null, eventOf("session.ended"));
    const response = await left.submit(page, { decision: "allow" });
    expect(response.headers.get("location")).toBe(`/sign-in?next=${encodeURIComponent(authorizePath(app))}`);
  });
});
