// Single sign-on against the real `oidc-provider`, and against one that lies.
import { afterAll, beforeAll, beforeEach, describe, expect, spyOn, test } from "bun:test";
import {
  clientId,
  clientSecret,
  type Lies,
  type LyingProvider,
  type ProviderPerson,
  startLyingProvider,
  startOidcProvider,
  type TestProvider,
} from "../../tests/support/identity-provider.ts";
import { openTestPeople, type TestPeople, testOrigin } from "../../tests/support/people.ts";
import { accountFor, keyRecordFor, principalFor } from "../../tests/support/principal.ts";
import { GatewayError } from "../base/errors.ts";
import { commandLineAppId } from "../domain/people/app.ts";
import { membershipCredentialId, type OneTimeLink, type Passkey, type Person } from "../domain/people/person.ts";
import { auditEvent } from "../policy/records/audit.ts";
import { OneTimeLinks } from "./links.ts";
import { SignIn } from "./sign-in.ts";
import { SingleSignOn, type SingleSignOnOptions, type SingleSignOnSettings } from "./single-sign-on.ts";

const redirectUri = "http://localhost:7545/sso/callback";
let world: TestPeople;
let real: TestProvider;
let lying: LyingProvider;
let made = 0;

beforeAll(async () => {
  world = await openTestPeople();
  real = await startOidcProvider(redirectUri);
  lying = await startLyingProvider();
});
afterAll(async () => {
  await real[Symbol.asyncDispose]();
  await lying[Symbol.asyncDispose]();
  await world.close();
});
beforeEach(() => {
  lying.lies = {};
  lying.asked = [];
});

function signOnAt(
  issuer: string,
  changes: Partial<SingleSignOnSettings> = {},
  timeoutMs = 2_000,
  people: SingleSignOnOptions["people"] = world.people,
): SingleSignOn {
  const settings: SingleSignOnSettings = {
    ...{ name: "Example", issuer, clientId, clientSecret, scopes: ["openid", "email", "profile"] },
    ...{ allowedDomains: [], role: "member" },
    ...changes,
  };
  const { clock, pending, accountId } = world;
  return new SingleSignOn({ settings, people, clock, pending, joinAccountId: async () => accountId, timeoutMs });
}

function asked() {
  return { nowSeconds: world.clock.nowSeconds(), clientAddress: "203.0.113.9", requestId: "req_1" };
}

/** The whole way of one browser. */
async function signIn(signOn: SingleSignOn, provider: TestProvider, person: ProviderPerson) {
  provider.person = person;
  const { browser, url } = await signOn.begin({
    browser: undefined,
    network: "192.0.2.1",
    redirectUri,
    next: "/device",
  });
  const back = await provider.visit(url);
  return await signOn.complete(back.searchParams, browser, asked());
}

async function refusal(work: Promise<unknown>): Promise<GatewayError> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error instanceof GatewayError) return error;
  throw new Error(`no GatewayError, but ${String(error)}`);
}

function stranger(domain = "example.com"): Required<ProviderPerson> & { email: string } {
  made++;
  return { sub: `sub-${made}`, email: `new${made}@${domain}`, email_verified: true, name: `New ${made}` };
}

async function invite(email: string, accountId: string, role: "admin" | "member"): Promise<OneTimeLink> {
  const createdAt = world.clock.nowSeconds();
  const link: OneTimeLink = {
    ...{ id: `lnk_${Bun.randomUUIDv7()}`, purpose: "invitation", digest: `digest of ${email}`, email },
    ...{ delivery: "shown", personId: null },
    ...{ accountId, role, createdAt, expiresAt: createdAt + 3_600, usedAt: null, createdBy: "usr_owner" },
  };
  const event = auditEvent("invitation.created", { type: "operator" }, asked(), {
    accountId,
    targetId: link.id,
    detail: {},
  });
  await world.people.insertLink(link, event);
  return link;
}

async function events(action: "identity.linked" | "member.added") {
  return await world.audit.list({ action }, { after: undefined, limit: 1 });
}

describe("single sign-on at a real provider", () => {
  test("links a user by the verified address once, and then by the identity", async () => {
    const person = await world.addPerson({ email: "Ada@Example.com" });
    await world.addMember(person, "owner");
    const signOn = signOnAt(real.issuer);
    const first = { sub: "ada", email: "ADA@example.com", email_verified: true, name: "Ada L." };
    expect(await signIn(signOn, real, first)).toEqual({
      ...{ person, accountId: world.accountId, next: "/device", isFirstProof: false },
    });
    const [event] = await events("identity.linked");
    expect(event).toMatchObject({ actor: { type: "person", id: person.id }, detail: { issuer: real.issuer } });
    const moved = { sub: "ada", email: "other@example.com", email_verified: false };
    expect(await signIn(signOn, real, moved)).toMatchObject({ person: { id: person.id } });
    expect(await events("identity.linked")).toEqual(event ? [event] : []);
  });

  test("links no user by an unverified address, and does not reveal whether it is known", async () => {
    const victim = await world.addPerson({ email: "victim@example.com", isOperator: true });
    const signOn = signOnAt(real.issuer, { allowedDomains: ["example.com"] });
    for (const email of [victim.email, "unknown@example.com"]) {
      const claims = { sub: `attacker-${email}`, email, email_verified: false };
      expect(await refusal(signIn(signOn, real, claims))).toMatchObject({
        code: "permission_denied",
        detail: "sso: email_not_verified",
      });
    }
    expect(await world.people.findByIdentity(real.issuer, `attacker-${victim.email}`)).toBeUndefined();
  });

  test("does not sign in another identity that now has a linked user's address", async () => {
    const person = await world.addPerson({ email: "reused@example.com" });
    const signOn = signOnAt(real.issuer);
    const claims = { email: person.email, email_verified: true };
    await signIn(signOn, real, { sub: "first holder", ...claims });
    expect(await refusal(signIn(signOn, real, { sub: "next holder", ...claims }))).toMatchObject({
      code: "permission_denied",
      detail: "sso: identity_taken",
    });
    expect(await world.people.findByIdentity(real.issuer, "next holder")).toBeUndefined();
    expect(await signIn(signOn, real, { sub: "first holder", ...claims })).toMatchObject({ person });
    // Another provider vouches anew.
    const identity = { issuer: "https://other.example", subject: "s", personId: person.id, createdAt: 1 };
    const event = auditEvent("identity.linked", { type: "operator" }, asked(), {
      ...{ accountId: null, targetId: person.id, detail: {} },
    });
    expect(await world.people.apply({ addIdentity: identity }, event)).toBe("done");
  });

  test("links a user once from two concurrent windows, and signs in both", async () => {
    const person = await world.addPerson({ email: "twice@example.com" });
    const signOn = signOnAt(real.issuer);
    real.person = { sub: "twice", email: person.email, email_verified: true };
    const windows = await Promise.all(
      [1, 2].map(async () => {
        const { browser, url } = await signOn.begin({
          browser: undefined,
          network: "192.0.2.1",
          redirectUri,
          next: "/device",
        });
        return { browser, back: await real.visit(url) };
      }),
    );
    const done = windows.map(({ browser, back }) => signOn.complete(back.searchParams, browser, asked()));
    for (const signedIn of await Promise.all(done)) expect(signedIn.person).toEqual(person);
    const linked = await world.audit.list({ action: "identity.linked" }, { after: undefined, limit: 100 });
    expect(linked.filter(({ targetId }) => targetId === person.id)).toHaveLength(1);
  });

  test("refuses a window whose identity another window links to another person meanwhile", async () => {
    const first = await world.addPerson({ email: "first-window@example.com" });
    const second = await world.addPerson({ email: "second-window@example.com" });
    const { people } = world;
    const raced: SingleSignOnOptions["people"] = {
      findByIdentity: (issuer, subject) => people.findByIdentity(issuer, subject),
      findByEmail: (email) => people.findByEmail(email),
      findInvitations: (email, nowSeconds) => people.findInvitations(email, nowSeconds),
      membershipsOf: (personId) => people.membershipsOf(personId),
      async apply(change, event) {
        const identity = { issuer: real.issuer, subject: "moved", personId: first.id, createdAt: 1 };
        expect(await people.apply({ addIdentity: identity }, event)).toBe("done");
        return await people.apply(change, event);
      },
    };
    const claims = { sub: "moved", email: second.email, email_verified: true };
    expect(await refusal(signIn(signOnAt(real.issuer, {}, 2_000, raced), real, claims))).toMatchObject({
      ...{ code: "permission_denied", detail: "sso: identity_taken" },
    });
  });

  test("joins the account of a pending invitation and uses it up", async () => {
    const account = await world.addAccount();
    const person = stranger();
    await invite(person.email, account.id, "admin");
    const signedIn = await signIn(signOnAt(real.issuer), real, person);
    expect(signedIn).toMatchObject({ accountId: account.id, person: { email: person.email, name: person.name } });
    expect(await world.people.membershipsOf(signedIn.person.id)).toMatchObject([
      { accountId: account.id, role: "admin" },
    ]);
    expect(await world.people.findInvitations(person.email, world.clock.nowSeconds())).toEqual([]);
    const [event] = await events("member.added");
    expect(event).toMatchObject({
      actor: { type: "anonymous" },
      accountId: account.id,
      detail: { person_id: signedIn.person.id, role: "admin", invited_by: "usr_owner" },
    });
  });

  test("refuses an expired invitation", async () => {
    const person = stranger();
    await invite(person.email, world.accountId, "admin");
    world.clock.advance(3_600_000);
    expect(await refusal(signIn(signOnAt(real.issuer), real, person))).toMatchObject({ detail: "sso: not_invited" });
  });

  test("joins with the configured role from an allowed domain, without a password", async () => {
    const person = stranger("corp.example");
    const signOn = signOnAt(real.issuer, { allowedDomains: ["corp.example"] });
    const signedIn = await signIn(signOn, real, person);
    expect(signedIn).toMatchObject({ accountId: world.accountId, person: { isOperator: false } });
    expect(await world.people.membershipsOf(signedIn.person.id)).toMatchObject([{ role: "member" }]);
    expect(await world.people.findByEmail(person.email)).toMatchObject({ passwordHash: null });
    expect((await signIn(signOn, real, person)).person).toEqual(signedIn.person);
  });

  test.each(["sub.corp.example", "corp.example.evil.example", "evilcorp.example"])(
    "does not admit the address %s to the allowed domain corp.example",
    async (domain) => {
      const signOn = signOnAt(real.issuer, { allowedDomains: ["corp.example"] });
      const error = await refusal(signIn(signOn, real, stranger(domain)));
      expect(error).toMatchObject({ code: "permission_denied", detail: "sso: not_invited" });
      expect(error.message).toContain("invitation");
    },
  );

  test.each(["", "  ", "a\u0000b", "x".repeat(101)])(
    "replaces the unusable name %p by the local part of the address",
    async (name) => {
      const person = { ...stranger("corp.example"), name };
      const signOn = signOnAt(real.issuer, { allowedDomains: ["corp.example"] });
      expect((await signIn(signOn, real, person)).person.name).toBe(person.email.split("@")[0] ?? "");
    },
  );
});

describe("an earlier user of an unproven address", () => {
  const password = "a password of somebody else";

  /** With all that one can sign in with, and an app that was allowed. */
  async function withAll(person: Person) {
    const membership = (await world.people.membershipsOf(person.id))[0] ?? (await world.addMember(person, "member"));
    const nowSeconds = world.clock.nowSeconds();
    const by = { type: "person", id: person.id } as const;
    const event = (action: "passkey.added" | "grant.created") =>
      auditEvent(action, by, asked(), { accountId: null, targetId: null, detail: {} });
    const passkey: Passkey = {
      ...{ id: `passkey of ${person.id}`, personId: person.id, name: "Key", publicKey: "pk", counter: 0 },
      ...{ transports: [], backedUp: false, createdAt: nowSeconds, lastUsedAt: null },
    };
    await world.people.insertPasskey(passkey, event("passkey.added"));
    const parentId = membershipCredentialId(membership.id, "live");
    const grants = [commandLineAppId, "app_third"].map((appId) => ({ id: `grt_${Bun.randomUUIDv7()}`, appId }));
    for (const { id, appId } of grants) {
      const common = { id, digest: id, appId, parentId, personId: person.id, environment: "live" } as const;
      const record = keyRecordFor({ ...common, kind: "grant", accountId: membership.accountId });
      await world.keys.insertKey(record, event("grant.created"));
    }
    const { cookie } = await world.startSession(person);
    return {
      cookie,
      async left() {
        const chains = await Promise.all(grants.map(({ id }) => world.keys.findChainById(id)));
        const [login, app] = chains.map((chain) => chain?.keys[0].revoked === false);
        return {
          password: ((await world.people.findByEmail(person.email))?.passwordHash ?? null) !== null,
          passkeys: (await world.people.listPasskeys(person.id)).length,
          session: (await world.sessions.find(cookie, testOrigin)) !== undefined,
          ...{ login, app },
        };
      },
    };
  }

  const everything = { password: true, passkeys: 1, session: true, login: true, app: true };

  test("signs out an inviter that used the shown invitation, once the invited user signs in", async () => {
    const { people, sessions, clock, limits, accountId } = world;
    const log = { info: () => {}, warn: () => {}, error: () => {} };
    const links = new OneTimeLinks({
      ...{ people, sessions, clock, limits, log, mail: undefined },
      publicOrigin: () => "https://models.example",
      firstAccountId: async () => accountId,
    });
    const inviter = await world.addPerson({ email: `inviter${++made}@example.com` });
    await world.addMember(inviter, "owner");
    const account = accountFor({ id: accountId });
    await world.addSession(inviter, "ses_1");
    const person = { id: inviter.id, role: "owner", isOperator: false, sessionId: "ses_1" } as const;
    const { url = "" } = await links.invite({
      ...{ by: principalFor({ account, person }), account, email: `invited${made}@example.com`, role: "owner" },
      origin: testOrigin,
    });
    const token = url.slice(url.lastIndexOf("/") + 1);
    const taken = await links.acceptance.invitation(token, { name: "Eve", password }, testOrigin);
    const { left } = await withAll(taken.person);
    expect(await left()).toEqual(everything);
    const claims = { sub: `invited-${made}`, email: taken.person.email, email_verified: true };
    const signedIn = await signIn(signOnAt(real.issuer), real, claims);
    expect(signedIn).toMatchObject({ person: { id: taken.person.id, isEmailProven: true }, isFirstProof: true });
    expect(await left()).toEqual({ password: false, passkeys: 0, session: false, login: false, app: true });
    const [event] = await events("identity.linked");
    expect(event).toMatchObject({
      targetId: taken.person.id,
      detail: { email_proven: true, ended: ["password", "passkeys", "sessions", "logins"] },
    });
    const signIns = new SignIn({
      people,
      sessions,
      limits,
      failures: { record: () => {} },
      clock,
      log,
      pending: world.pending,
    });
    await expect(signIns.password(taken.person.email, password, testOrigin)).rejects.toThrow("is wrong");
  });

  test("removes an earlier user's access once, and keeps what is set up afterwards", async () => {
    const person = await world.addPerson({ email: `later${++made}@example.com`, isEmailProven: false });
    const claims = { sub: `later-${made}`, email: person.email, email_verified: true };
    expect((await signIn(signOnAt(real.issuer), real, claims)).isFirstProof).toBe(true);
    const { left } = await withAll(person);
    expect((await signIn(signOnAt(real.issuer), real, claims)).isFirstProof).toBe(false);
    expect((await signIn(signOnAt(lying.issuer), lying, claims)).isFirstProof).toBe(false);
    expect(await left()).toEqual({ ...everything, password: false });
    const [event] = await events("identity.linked");
    expect(event?.detail).toEqual({ issuer: lying.issuer, email: person.email });
  });

  test("removes nothing if the address was already proven", async () => {
    const person = await world.addPerson({ email: `proven${++made}@example.com`, password, isEmailProven: true });
    const { left } = await withAll(person);
    const claims = { sub: `proven-${made}`, email: person.email, email_verified: true };
    expect((await signIn(signOnAt(real.issuer), real, claims)).isFirstProof).toBe(false);
    expect(await left()).toEqual(everything);
  });

  test("removes nothing if the user came by single sign-on", async () => {
    const claims = stranger("corp.example");
    const { person } = await signIn(signOnAt(real.issuer, { allowedDomains: ["corp.example"] }), real, claims);
    const { left } = await withAll(person);
    expect((await signIn(signOnAt(lying.issuer), lying, claims)).isFirstProof).toBe(false);
    expect(await left()).toEqual({ ...everything, password: false });
  });
});

describe("the callback of single sign-on", () => {
  // long-lived: beginning.age
  test("accepts a callback in the browser that began it, once, for ten minutes", async () => {
    const person = await world.addPerson({ email: `once${++made}@example.com` });
    lying.person = { sub: `once-${made}`, email: person.email, email_verified: true };
    const signOn = signOnAt(lying.issuer);
    const begin = async () => {
      const { browser, url } = await signOn.begin({ browser: undefined, network: "192.0.2.1", redirectUri, next: "/" });
      return { browser, query: (await lying.visit(url)).searchParams };
    };
    const [mine, theirs] = [await begin(), await begin()];
    for (const browser of [theirs.browser, undefined, "", "x"]) {
      const { query } = await begin();
      expect(await refusal(signOn.complete(query, browser, asked()))).toMatchObject({ detail: "sso: state" });
    }
    const again = await begin();
    await signOn.complete(again.query, again.browser, asked());
    expect(await refusal(signOn.complete(again.query, again.browser, asked()))).toMatchObject({ detail: "sso: state" });
    world.clock.advance(600_000);
    expect(await refusal(signOn.complete(mine.query, mine.browser, asked()))).toMatchObject({ detail: "sso: state" });
    expect(lying.asked.filter((path) => path === "/token")).toHaveLength(1);
  });

  test("refuses a callback with two states, and keeps both", async () => {
    const person = await world.addPerson({ email: `twice${++made}@example.com` });
    lying.person = { sub: `twice-${made}`, email: person.email, email_verified: true };
    const signOn = signOnAt(lying.issuer);
    const { browser, url } = await signOn.begin({ browser: undefined, network: "192.0.2.1", redirectUri, next: "/" });
    const query = (await lying.visit(url)).searchParams;
    const twice = new URLSearchParams([...query, ["state", "x"]]);
    expect(await refusal(signOn.complete(twice, browser, asked()))).toMatchObject({ detail: "sso: state" });
    expect((await signOn.complete(query, browser, asked())).person.id).toBe(person.id);
  });

  test("allows two concurrent windows of one browser", async () => {
    const person = await world.addPerson({ email: `two${++made}@example.com` });
    lying.person = { sub: `two-${made}`, email: person.email, email_verified: true };
    const signOn = signOnAt(lying.issuer);
    const first = await signOn.begin({ browser: undefined, network: "192.0.2.1", redirectUri, next: "/1" });
    const second = await signOn.begin({ browser: first.browser, network: "192.0.2.1", redirectUri, next: "/2" });
    expect(second.browser).toBe(first.browser);
    for (const { url, browser } of [second, first]) {
      const back = await lying.visit(url);
      expect(await signOn.complete(back.searchParams, browser, asked())).toMatchObject({ person: { id: person.id } });
    }
  });

  test("sends PKCE, state and nonce, new each time, without the secret", async () => {
    const signOn = signOnAt(lying.issuer);
    const seen = new Set<string | null>();
    for (let i = 0; i < 2; i++) {
      const { url, browser } = await signOn.begin({ browser: undefined, network: "192.0.2.1", redirectUri, next: "/" });
      const query = new URL(url).searchParams;
      expect(query.get("code_challenge_method")).toBe("S256");
      expect(query.get("response_type")).toBe("code");
      expect(query.get("redirect_uri")).toBe(redirectUri);
      for (const name of ["state", "nonce", "code_challenge"]) seen.add(query.get(name));
      expect(url).not.toContain(clientSecret);
      expect(url).not.toContain(browser);
    }
    expect(seen.size).toBe(6);
  });
});

// hardening: A16
describe("a provider that lies", () => {
  test.each<[string, Lies]>([
    ["another nonce", { idToken: { nonce: "other" } }],
    ["another issuer in the token", { idToken: { iss: "https://evil.example" } }],
    ["another audience", { idToken: { aud: "other" } }],
    ["a token that was made for another client", { idToken: { azp: "other" } }],
    [
      "a token that was made for another client among several",
      { idToken: { aud: ["headrace", "other"], azp: "other" } },
    ],
    ["a token of the future", { idToken: { iat: 4_000_000_000 } }],
    ["a token of six minutes from now", { idToken: { iat: Math.floor(Date.now() / 1000) + 360 } }],
    ["a token that does not say when it was made", { idToken: { iat: undefined } as never }],
    ["a token that has expired", { idToken: { exp: 1_000_000_000 } }],
    ["a signature of a key that is not published", { foreignKey: true }],
    ["another issuer in the redirect", { callback: { iss: "https://evil.example" } }],
    ["no issuer in the redirect", { callback: { iss: null } }],
    ["an error", { callback: { code: null, error: "server_error", error_description: "<b>canary</b>" } }],
    ["no answer worth the name", { answers: { "/token": () => new Response("<b>canary</b>") } }],
    [
      "a token endpoint without an ID token",
      { answers: { "/token": () => Response.json({ access_token: "a", token_type: "Bearer" }) } },
    ],
    [
      "a token endpoint that does not know us",
      {
        answers: {
          "/token": () => Response.json({ error: "invalid_client", error_description: "canary" }, { status: 401 }),
        },
      },
    ],
    ["an answer that never ends", { answers: { "/token": endless } }],
  ])("%s: refuses the sign-in and does not show the provider's text", async (_, lies) => {
    const person = await world.addPerson({ email: `lied${++made}@example.com` });
    const claims = { sub: `lied-${made}`, email: person.email, email_verified: true };
    const signOn = signOnAt(lying.issuer);
    lying.lies = lies;
    const error = await refusal(signIn(signOn, lying, claims));
    expect(error.code).toBe("upstream_error");
    expect(Bun.inspect(error)).not.toMatch(/canary|<b>/);
    expect(await world.people.findByIdentity(lying.issuer, claims.sub)).toBeUndefined();
    lying.lies = {};
    expect(await signIn(signOn, lying, claims)).toMatchObject({ person: { id: person.id } });
  });

  test("reports that the user declined at the provider", async () => {
    lying.lies = { callback: { code: null, error: "access_denied" } };
    expect(await refusal(signIn(signOnAt(lying.issuer), lying, { sub: "d" }))).toMatchObject({
      code: "permission_denied",
      detail: "sso: access_denied",
    });
  });

  test("does not follow a redirect of the token endpoint", async () => {
    let reached = 0;
    const thief = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: () => {
        reached++;
        return new Response();
      },
    });
    lying.lies = { answers: { "/token": () => Response.redirect(`http://127.0.0.1:${thief.port}/`, 307) } };
    expect(await refusal(signIn(signOnAt(lying.issuer), lying, { sub: "r" }))).toMatchObject({
      code: "upstream_error",
    });
    expect(reached).toBe(0);
    await thief.stop(true);
  });

  test.each<[string, Lies]>([
    ["has null for a userinfo endpoint", { metadata: { userinfo_endpoint: null } as never }],
    ["has a clock four minutes ahead", { idToken: { iat: Math.floor(Date.now() / 1000) + 240 } }],
  ])("signs in at a provider that %s", async (_, lies) => {
    const person = await world.addPerson({ email: `odd${++made}@example.com` });
    lying.lies = lies;
    const claims = { sub: `odd-${made}`, email: person.email, email_verified: true };
    expect(await signIn(signOnAt(lying.issuer), lying, claims)).toMatchObject({ person: { id: person.id } });
  });

  test.each(["false", "yes", 1, {}])("does not sign in by an address that is verified as %p", async (flag) => {
    const person = await world.addPerson({ email: `flag${++made}@example.com` });
    lying.lies = { idToken: { email: person.email, email_verified: flag } };
    const error = await refusal(signIn(signOnAt(lying.issuer), lying, { sub: `flag-${made}` }));
    expect(error).toMatchObject({ code: "permission_denied", detail: "sso: email_not_verified" });
  });

  // hardening: A16
  test("does not combine an address of userinfo with a verified flag of the ID token", async () => {
    const person = await world.addPerson({ email: `mixed${++made}@example.com` });
    lying.lies = {
      idToken: { email_verified: true },
      answers: { "/userinfo": () => Response.json({ sub: `mixed-${made}`, email: person.email }) },
      metadata: { userinfo_endpoint: `${lying.issuer}/userinfo` },
    };
    const error = await refusal(signIn(signOnAt(lying.issuer), lying, { sub: `mixed-${made}` }));
    expect(error).toMatchObject({ code: "permission_denied", detail: "sso: email_not_verified" });
    expect(lying.asked).toContain("/userinfo");
  });
});

test("refuses a provider over plain HTTP beyond this machine, even for its metadata", async () => {
  const asks = spyOn(globalThis, "fetch").mockRejectedValue(new Error("asked"));
  try {
    const begin = signOnAt("http://192.0.2.1").begin({
      ...{ browser: undefined, network: "192.0.2.1", redirectUri, next: "/" },
    });
    expect(await refusal(begin)).toMatchObject({ code: "service_unavailable" });
    expect(asks).not.toHaveBeenCalled();
  } finally {
    asks.mockRestore();
  }
});

test("refuses an https provider that names a local endpoint over plain HTTP", async () => {
  const issuer = "https://idp.example";
  const metadata = {
    ...{ issuer, authorization_endpoint: `${issuer}/authorize`, token_endpoint: `${issuer}/token` },
    jwks_uri: "http://127.0.0.1:9/keys",
  };
  const asks = spyOn(globalThis, "fetch").mockImplementation((async () => Response.json(metadata)) as never);
  try {
    const begin = () =>
      signOnAt(issuer).begin({ ...{ browser: undefined, network: "192.0.2.1", redirectUri, next: "/" } });
    expect(await refusal(begin())).toMatchObject({ code: "service_unavailable" });
    metadata.jwks_uri = `${issuer}/keys`;
    expect((await begin()).url).toStartWith(`${issuer}/authorize`);
  } finally {
    asks.mockRestore();
  }
});

// hardening: A16
describe("the metadata of a provider", () => {
  const discovery = "/.well-known/openid-configuration";
  const begin = (signOn: SingleSignOn) =>
    signOn.begin({ browser: undefined, network: "192.0.2.1", redirectUri, next: "/" });

  test("reads the provider's metadata once an hour, and once for concurrent users", async () => {
    const signOn = signOnAt(lying.issuer);
    await Promise.all(Array.from({ length: 5 }, () => begin(signOn)));
    world.clock.advance(3_599_000);
    await begin(signOn);
    expect(lying.asked).toEqual([discovery]);
    world.clock.advance(1_000);
    await begin(signOn);
    expect(lying.asked).toEqual([discovery, discovery]);
  });

  test.each<[string, () => Response | Promise<Response>, string]>([
    ["answers an error", () => new Response(null, { status: 500 }), "OAUTH_RESPONSE_IS_NOT_CONFORM"],
    ["says nothing in time", () => Bun.sleep(2_000).then(() => new Response()), "timeout"],
  ])("logs why a provider that %s cannot be reached", async (_, answer, reason) => {
    lying.lies = { answers: { [discovery]: answer } };
    expect((await refusal(begin(signOnAt(lying.issuer, {}, 200)))).detail).toBe(`sso: ${reason}`);
  });

  test.each<[string, Lies]>([
    ["an error", { answers: { [discovery]: () => new Response("canary", { status: 500 }) } }],
    ["another issuer", { metadata: { issuer: "https://evil.example" } }],
    ...["authorization_endpoint", "token_endpoint", "userinfo_endpoint", "jwks_uri"].flatMap((name) =>
      ["javascript:alert(1)", "data:text/html,x", "http://192.0.2.1/x", "file:///etc/passwd", "", 5].map(
        (value): [string, Lies] => [`${JSON.stringify(value)} as ${name}`, { metadata: { [name]: value } }],
      ),
    ),
    ["no address of its sign-in", { metadata: { authorization_endpoint: undefined } }],
    ["nothing in time", { answers: { [discovery]: () => Bun.sleep(400).then(() => new Response()) } }],
  ])("%s in place of the metadata answers 503, and the next attempt reads it again", async (_, lies) => {
    const signOn = signOnAt(lying.issuer, {}, 200);
    lying.lies = lies;
    const error = await refusal(begin(signOn));
    expect(error).toMatchObject({ code: "service_unavailable", retryAfterSeconds: 60 });
    expect(Bun.inspect(error)).not.toContain("canary");
    lying.lies = {};
    expect((await begin(signOn)).url).toStartWith(lying.issuer);
  });
});

function endless(): Response {
  const block = new Uint8Array(65_536).fill(32);
  return new Response(new ReadableStream({ pull: (controller) => controller.enqueue(block) }), {
    headers: { "content-type": "application/json" },
  });
}
