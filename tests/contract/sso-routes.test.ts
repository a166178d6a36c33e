// The pages of single sign-on: the cookie that ties the way back to the browser, where it leads, and what errors look like.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { SingleSignOn } from "../../src/accounts/single-sign-on.ts";
import { pageOrigin } from "../../src/http/exchange/browser.ts";
import { Locality } from "../../src/http/exchange/locality.ts";
import type { Exchange } from "../../src/http/exchange/route.ts";
import { ssoButton } from "../../src/http/pages/sso-parts.ts";
import { ssoRoutes } from "../../src/http/pages/sso-routes.ts";
import { MemoryLimits } from "../../src/limits/memory/memory-limits.ts";
import { exchangeFor, incoming, responseOf } from "../support/exchange.ts";
import { clientId, clientSecret, type LyingProvider, startLyingProvider } from "../support/identity-provider.ts";
import { cookieHeader, openTestPeople, type TestPeople, testOrigin } from "../support/people.ts";

const locality = new Locality([]);
let world: TestPeople;
let provider: LyingProvider;
let publicUrl: string | undefined;
let routes: ReturnType<typeof ssoRoutes>;
let changes = 0;
const changed = () => void changes++;

beforeAll(async () => {
  world = await openTestPeople();
  provider = await startLyingProvider();
});
afterAll(async () => {
  await provider[Symbol.asyncDispose]();
  await world.close();
});
beforeEach(() => {
  publicUrl = undefined;
  provider.lies = {};
  const { people, clock, sessions, accountId } = world;
  const scopes = ["openid", "email"];
  const settings = { name: "Example", issuer: provider.issuer, clientId, clientSecret, scopes, allowedDomains: [] };
  routes = ssoRoutes({
    ...{ sessions, clock, changed },
    singleSignOn: new SingleSignOn({
      ...{ people, clock, pending: world.pending, settings: { ...settings, role: "member" } },
      joinAccountId: async () => accountId,
    }),
    limits: new MemoryLimits({ clock, ledger: { readTotals: async () => {} } }),
    pageOrigin: (req) => pageOrigin(req, publicUrl, locality),
  });
});

async function get(target: string, headers: Record<string, string> = {}, clientAddress = "203.0.113.9") {
  const route = routes.find(({ path }) => path === target.split("?")[0]);
  if (!route) throw new Error(`${target} is not served`);
  const req = incoming({ target, headers: { host: "localhost:7545", ...headers } });
  const noted: Exchange["line"] = {};
  const exchange = exchangeFor(req, { clientAddress, line: noted });
  const response = await responseOf(() => route.handle(exchange));
  const headersOf = new Headers({ ...Object.fromEntries(response.headers), ...exchange.answerHeaders });
  return { status: response.status, headers: headersOf, text: await response.text(), noted };
}

/** Goes as far as the redirect back to us. */
async function begin(target = "/sso/start") {
  const started = await get(target);
  const cookie = cookieHeader(started.headers.get("set-cookie") ?? "");
  const back = await provider.visit(started.headers.get("location") ?? "");
  return { cookie, target: back.pathname + back.search };
}

describe("sign-in by an identity provider", () => {
  test("signs the browser in and redirects to its destination", async () => {
    const person = await world.addPerson({ email: "there@example.com" });
    await world.addMember(person, "member");
    provider.person = { sub: "there", email: person.email, email_verified: true };
    const { cookie, target } = await begin("/sso/start?next=%2Fdevice%3Fuser_code%3DA-B");
    const done = await get(target, { cookie });
    expect(done.status).toBe(303);
    expect(done.headers.get("location")).toBe("/device?user_code=A-B");
    const session = await world.sessions.find(cookieHeader(done.headers.get("set-cookie") ?? ""), testOrigin);
    expect(session?.signedIn).toMatchObject({ person, session: { method: "sso", accountId: world.accountId } });
  });

  test("announces a newly proven address, and clears cached logins that ended", async () => {
    for (const [isEmailProven, location] of [
      [false, "/settings?done=address"],
      [true, "/"],
    ] as const) {
      const person = await world.addPerson({ email: `proven-${isEmailProven}@example.com`, isEmailProven });
      const { cookie: before } = await world.startSession(person);
      provider.person = { sub: person.email, email: person.email, email_verified: true };
      const [way, earlier] = [await begin(), changes];
      const done = await get(way.target, { cookie: way.cookie });
      expect(done.headers.get("location")).toBe(location);
      expect(changes - earlier).toBe(isEmailProven ? 0 : 1);
      expect((await world.sessions.find(before, testOrigin)) !== undefined).toBe(isEmailProven);
      const started = cookieHeader(done.headers.get("set-cookie") ?? "");
      const current = (await world.sessions.find(started, testOrigin))?.signedIn.person;
      expect(current).toEqual({ ...person, isEmailProven: true });
    }
  });

  test.each(["https%3A%2F%2Fevil.example", "%2F%2Fevil.example", "%2F%5Cevil.example", "javascript%3Aalert(1)"])(
    "never redirects a sign-in by identity provider to %s",
    async (next) => {
      const person = await world.addPerson({
        email: `next-${next.replaceAll("%", "-").replaceAll(/[^\w-]/g, "")}@example.com`,
      });
      provider.person = { sub: person.email, email: person.email, email_verified: true };
      const { cookie, target } = await begin(`/sso/start?next=${next}`);
      expect((await get(target, { cookie })).headers.get("location")).toBe("/");
    },
  );

  test("hides the cookie from scripts and other sites' forms, and uses only HTTPS where available", async () => {
    const plain = (await get("/sso/start")).headers.get("set-cookie");
    expect(plain).toMatch(/^headrace_sso=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=600$/);
    publicUrl = "https://ai.example.com";
    const started = await get("/sso/start", { host: "evil.example" });
    expect(started.headers.get("set-cookie")).toMatch(
      /^__Host-headrace_sso=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=600; Secure$/,
    );
    const redirectUri = new URL(started.headers.get("location") ?? "").searchParams.get("redirect_uri");
    expect(redirectUri).toBe("https://ai.example.com/sso/callback");
  });
});

describe("a failed sign-in by identity provider shows a page with a way on", () => {
  test.each([
    ["in another browser", ""],
    ["with two cookies, of which one is somebody else's", "headrace_sso=a; headrace_sso=b"],
  ])("refuses to finish a sign-in %s", async (_, cookie) => {
    const { target } = await begin();
    const page = await get(target, { cookie });
    expect(page).toMatchObject({ status: 400, noted: { code: "invalid_request", detail: "sso: state" } });
    expect(page.text).toContain('href="/sign-in?next=%2F"');
    expect(page.headers.get("set-cookie")).toBeNull();
    expect(page.headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
  });

  test("refuses an uninvited person with 403 and advice, without the provider's text", async () => {
    provider.person = { sub: "un", email: "un@example.com", email_verified: true, name: "<script>canary</script>" };
    const { cookie, target } = await begin();
    const page = await get(target, { cookie });
    expect(page).toMatchObject({ status: 403, noted: { detail: "sso: not_invited" } });
    expect(page.text).toContain("Ask an owner or admin of an account for an invitation");
    expect(page.text).not.toContain("canary");
  });

  test("does not repeat an identity provider's error", async () => {
    provider.lies = { callback: { code: null, error: "server_error", error_description: "<b>canary</b>" } };
    const { cookie, target } = await begin();
    const page = await get(target, { cookie });
    expect(page.status).toBe(502);
    expect(page.text).not.toContain("canary");
  });

  test("answers 503 with a retry time for an unreachable identity provider", async () => {
    provider.lies = { answers: { "/.well-known/openid-configuration": () => new Response("", { status: 500 }) } };
    const page = await get("/sso/start");
    expect(page.status).toBe(503);
    expect(page.headers.get("retry-after")).toBe("60");
  });

  test("limits sign-ins begun from one address", async () => {
    for (let i = 0; i < 120; i++) expect((await get("/sso/start")).status).toBe(303);
    expect((await get("/sso/start")).status).toBe(429);
    expect((await get("/sso/start", {}, "203.0.113.10")).status).toBe(303);
  });

  test("redirects no remote visitor to the provider without a public URL", async () => {
    expect((await get("/sso/start", { host: "evil.example" })).status).toBe(403);
  });

  test("offers no identity provider if none is configured", async () => {
    const { sessions, clock } = world;
    const limits = new MemoryLimits({ clock, ledger: { readTotals: async () => {} } });
    const nothing = { singleSignOn: undefined, pageOrigin: () => "http://localhost:7545" };
    routes = ssoRoutes({ sessions, clock, changed, limits, ...nothing });
    expect((await get("/sso/start")).status).toBe(404);
    expect((await get("/sso/callback?code=a&state=b")).status).toBe(404);
  });
});

test("shows the provider's escaped name on the button and keeps the destination", () => {
  const { text } = ssoButton("A <b>&</b> Co", "/oauth/authorize?a=b&c=d");
  expect(text).toContain("Continue with A &lt;b&gt;&amp;&lt;/b&gt; Co");
  expect(text).toContain('href="/sso/start?next=%2Foauth%2Fauthorize%3Fa%3Db%26c%3Dd"');
});
