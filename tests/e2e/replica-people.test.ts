// Signing in and OAuth at several replicas: each request goes to another one, and every flow comes to its end.
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { makeSetupLink } from "../../src/maintenance/setup-link.ts";
import { Browser, decideDevice, invite, setUp, signIn } from "../support/browser.ts";
import { startHeadrace, until } from "../support/headrace.ts";
import { clientId, clientSecret, type LyingProvider, startLyingProvider } from "../support/identity-provider.ts";
import { manualClock } from "../support/manual-clock.ts";
import { askAsApp, codeFields, codeFor, refreshFields, registerApp, signInTo } from "../support/oauth-apps.ts";
import { startReplicas, type TestReplicas } from "../support/replicas.ts";
import { SoftwareAuthenticator } from "../support/software-authenticator.ts";

const clock = manualClock(systemClock.nowSeconds());
let all: TestReplicas;
let provider: LyingProvider;
let olga: Browser;

beforeAll(async () => {
  provider = await startLyingProvider();
  provider.lies.answers = { "/authorize": async ({ url }) => Response.redirect((await provider.visit(url)).href, 303) };
  const sso = {
    ...{ name: "Example Works", issuer: provider.issuer, client_id: clientId, client_secret: clientSecret },
    allowed_domains: ["example.test"],
  };
  all = await startReplicas({ clock, yaml: JSON.stringify({ sso }) });
  olga = await setUp(all);
});

afterAll(async () => {
  await all[Symbol.asyncDispose]();
  await provider[Symbol.asyncDispose]();
});

// No test uses up what another may ask for in a minute.
beforeEach(() => clock.advance(60_000));

const json = async (response: Response): Promise<Record<string, unknown>> => {
  if (!response.ok) throw new Error(`${response.url}: ${response.status} ${await response.text()}`);
  return (await response.json()) as Record<string, unknown>;
};
const probe = async (url: string, token: unknown) =>
  (await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${String(token)}` } })).status;
/** The next request goes to this replica. */
const at = (index: number) => {
  all.balancer.next = index;
};

test("creates one account, one key and one set-up link for replicas that start together", async () => {
  const [one, other] = all.servers;
  expect([one?.key, other?.key].filter((key) => key !== "")).toHaveLength(1);
  expect(other?.firstKey.record.id).toBe(one?.firstKey.record.id ?? "");
  expect(other?.setupLink).toBe(one?.setupLink ?? "");
  for (const server of all.servers) expect(await probe(server.url, all.key)).toBe(200);
  const accounts = await json(await olga.request("/v1/admin/accounts"));
  expect(accounts["data"]).toHaveLength(1);
  const jwks = await Promise.all(
    all.servers.map(async ({ url }) => (await fetch(`${url}/.well-known/jwks.json`)).json()),
  );
  expect(jwks[0].keys).toHaveLength(1);
  expect(jwks[1]).toEqual(jwks[0]);
});

test("continues a session and its page forms at the other replica, and ends it at both", async () => {
  const ada = { email: "ada@example.test", name: "Ada", password: "brisk willow lantern nine" };
  const browser = await invite(olga, { person: ada });
  for (const index of [0, 1]) {
    at(index);
    await browser.open("/settings");
    // The form was shown by one and is taken by the other.
    await browser.press("Save name", { name: `Ada ${index}` });
    expect(browser.page.status).toBe(200);
    expect(await browser.ask("/v1/session")).toMatchObject({ person: { name: `Ada ${index}` } });
  }
  const cookies = new Map(browser.cookies);
  at(0);
  await browser.open("/settings");
  await browser.press("Sign out");
  for (const index of [0, 1]) {
    at(index);
    for (const [name, value] of cookies) browser.cookies.set(name, value);
    expect((await browser.request("/v1/session")).status).toBe(401);
  }
  at(1);
  await browser.open("/sign-in");
  await signIn(browser, ada);
  expect(browser.page.url.pathname).toBe("/");
});

test("begins a passkey at one replica, adds it at the other, and signs in the same way", async () => {
  const device = new SoftwareAuthenticator(new URL(all.url).origin);
  const csrf = String((await olga.ask("/v1/session"))["csrf_token"]);
  for (const begin of [0, 1]) {
    const cookie = [...olga.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const headers = {
      cookie,
      origin: new URL(all.url).origin,
      "x-csrf-token": csrf,
      "content-type": "application/json",
    };
    const post = async (path: string, body: unknown) =>
      fetch(`${all.url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    at(begin);
    const options = await json(await post("/v1/passkeys/options", {}));
    at(1 - begin);
    const response = device.create(options as never);
    expect(await json(await post("/v1/passkeys", { name: `Key ${begin}`, response }))).toMatchObject({
      object: "passkey",
    });

    at(begin);
    const asked = await json(await post("/sign-in/passkey/options", {}));
    const proof = { challenge_id: asked["challenge_id"], response: device.get(asked["options"] as never) };
    at(1 - begin);
    const signedIn = await post("/sign-in/passkey", proof);
    expect(signedIn.status).toBe(200);
    expect(signedIn.headers.get("set-cookie")).toContain("headrace_session");
    // Taken once, wherever it is presented again.
    for (const index of [0, 1]) {
      at(index);
      expect((await post("/sign-in/passkey", proof)).status).toBe(400);
    }
  }
});

test("returns from the identity provider to another replica than the sign-in began at", async () => {
  for (const begin of [0, 1]) {
    provider.person = { sub: `sub ${begin}`, email: `joan${begin}@example.test`, email_verified: true, name: "Joan" };
    const browser = new Browser(all.url, provider.issuer);
    await browser.open("/sign-in");
    const before = new Map(all.balancer.counts);
    at(begin);
    await browser.follow("Continue with Example Works");
    expect([browser.page.url.pathname, browser.page.status]).toEqual(["/", 200]);
    // Both of them had a part in it.
    for (const { url } of all.servers) expect(all.balancer.counts.get(url)).toBeGreaterThan(before.get(url) ?? 0);
  }
});

test("redeems an app's code at another replica once, and repeats a refresh with the same answer there", async () => {
  const [one, other] = all.servers;
  if (!one || !other) throw new Error("two are needed");
  const app = await registerApp({ url: one.url, key: all.key });
  const asked = await codeFor(app, olga);
  const tokens = await Promise.all(
    [one, other, one, other].map(({ url }) => askAsApp(url, "token", app, codeFields(asked, app))),
  );
  // One wins; that the others were tried ends what it got, at both.
  expect(tokens.map(({ status }) => status).toSorted()).toEqual([200, 400, 400, 400]);
  const winner = tokens.find(({ status }) => status === 200);
  for (const { url } of all.servers) {
    const active = async () =>
      (await askAsApp(url, "introspect", app, { token: String(winner?.body["access_token"]) })).body;
    expect(await active()).toEqual({ active: false });
  }

  const second = await signInTo(app, all, olga);
  for (const { url } of all.servers) expect(await probe(url, second.access_token)).toBe(200);
  const answers = await Promise.all(
    [one, other].map(({ url }) => askAsApp(url, "token", app, refreshFields(second.refresh_token))),
  );
  expect(answers.map(({ status }) => status)).toEqual([200, 200]);
  expect(answers[1]?.body).toEqual(answers[0]?.body ?? {});
  clock.advance(11_000);
  expect((await askAsApp(other.url, "token", app, refreshFields(second.refresh_token))).body["error"]).toBe(
    "invalid_grant",
  );
});

test("authorizes a device at another replica than it polls, and issues its tokens", async () => {
  for (const begin of [0, 1]) {
    const [here, there] = [all.servers[begin], all.servers[1 - begin]];
    if (!here || !there) throw new Error("two are needed");
    const app = { id: "headrace-cli", secret: "" };
    const { body } = await askAsApp(here.url, "device_authorization", app, {});
    await decideDevice(olga, String(body["user_code"]));
    clock.advance(6_000);
    const grant_type = "urn:ietf:params:oauth:grant-type:device_code";
    const fields = { grant_type, device_code: String(body["device_code"]) };
    const { status, body: given } = await askAsApp(there.url, "token", app, fields);
    expect(status).toBe(200);
    for (const { url } of all.servers) expect(await probe(url, given["access_token"])).toBe(200);
  }
});

test("accepts a token at the other replica at once after a signing key rotation", async () => {
  const [one, other] = all.servers;
  if (!one || !other) throw new Error("two are needed");
  const before = await json(await fetch(`${other.url}/.well-known/jwks.json`));
  at(0);
  await olga.ask("/v1/admin/signing-keys/rotate", { method: "POST" });
  clock.advance(601_000);
  const made = await Promise.all(
    all.servers.map(async ({ url }) =>
      json(
        await fetch(`${url}/v1/auth/token`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ api_key: all.key }),
        }),
      ),
    ),
  );
  const kids = made.map(({ access_token: token }) => {
    const head = Buffer.from(String(token).split(".")[0] ?? "", "base64url").toString();
    return (JSON.parse(head) as { kid: string }).kid;
  });
  expect(kids.some((kid) => !JSON.stringify(before).includes(kid))).toBe(true);
  for (const { access_token: token } of made) {
    for (const { url } of all.servers) expect(await probe(url, token)).toBe(200);
  }
});

test("refuses to start with another secret, and names the variable", async () => {
  const env = { ...all.env, HEADRACE_SECRET: "ab".repeat(32) };
  const flags = { mode: "production", publicUrl: all.url };
  await expect(startHeadrace({ env, flags })).rejects.toThrow(
    /The secret is not the one .* Set HEADRACE_SECRET to what the other replicas have/,
  );
});

test("warns log, monitors and operators once that several replicas without Redis count separately", async () => {
  for (const server of all.servers) {
    await until(async () => {
      await server.replicas.refresh();
      return server.replicas.isUncoordinated;
    }, "it knows of the other");
    await server.replicas.refresh();
    expect(server.logged("limits_are_not_shared")).toHaveLength(1);
    const answer = await fetch(`${server.url}/readyz`);
    expect([answer.status, await answer.json()]).toMatchObject([
      200,
      { status: "degraded", checks: { database: "ok", replicas: "degraded", models: "ok", server: "ok" } },
    ]);
  }
  expect(await olga.ask("/v1/admin/system")).toMatchObject({ redis: null, checks: { replicas: "degraded" } });
});

test("shows the same set-up link at later replicas until a person exists, and keeps links made by operators", async () => {
  await using few = await startReplicas({ count: 1 });
  const flags = { mode: "production", publicUrl: few.url };
  {
    await using later = await startHeadrace({ env: few.env, flags });
    expect(later.setupLink).toBe(few.setupLink ?? "");
    expect(later.key).toBe("");
  }
  const place = { dataDir: few.servers[0]?.dataDir ?? "", databaseUrl: few.env["HEADRACE_DATABASE_URL"] };
  const made = await makeSetupLink({ ...place, baseUrl: `${few.url}/v1`, nowSeconds: systemClock.nowSeconds() });
  {
    await using later = await startHeadrace({ env: few.env, flags });
    expect(later.setupLink).toBeUndefined();
  }
  const browser = await setUp({ url: few.url, setupLink: made.url });
  expect(browser.page.url.pathname).toBe("/");
});
