import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { testEvent } from "../../../tests/support/credentials.ts";
import { openTestPages, type TestPages, type Visitor } from "../../../tests/support/page-visits.ts";
import { keyRecordFor } from "../../../tests/support/principal.ts";
import { commandLineAppId } from "../../domain/people/app.ts";
import { type Membership, membershipCredentialId, type Person } from "../../domain/people/person.ts";

const password = "a horse that counts";
const changes = [
  "name",
  "password",
  "account",
  "passkeys/remove",
  "sessions/end",
  "sessions/end-others",
  "apps/remove",
];
let pages: TestPages;
let person: Person;
let membership: Membership;
let visitor: Visitor;
let made = 0;

beforeAll(async () => {
  pages = await openTestPages();
});

afterAll(() => pages.close());

beforeEach(async () => {
  person = await pages.addPerson({ email: `person-${++made}@example.com`, name: "Ada", password });
  membership = await pages.addMember(person, "member");
  visitor = pages.visitor((await pages.startSession(person)).cookie);
});

function section(text: string, id: string): string {
  return new RegExp(`<section aria-labelledby="${id}".*?</section>`, "s").exec(text)?.[0] ?? "";
}

async function allow(of: Person, member: Membership, name: string): Promise<string> {
  const now = pages.clock.nowSeconds();
  const id = `app_${Bun.randomUUIDv7()}`;
  await pages.appStore.insertApp(
    {
      ...{ id, name, accountId: pages.accountId, personId: null, homepageUrl: null, type: "public" },
      ...{
        environment: "live",
        redirectUris: ["https://app.example/cb"],
        scopes: ["chat:write"],
        tools: null,
        requirePkce: true,
        suspendedBy: null,
      },
      ...{ secrets: [], createdBy: null, createdAt: now },
    },
    testEvent(now),
  );
  await allowAs(id, of, member);
  return id;
}

async function allowAs(appId: string, of: Person, member: Membership): Promise<void> {
  const now = pages.clock.nowSeconds();
  const [grant, environment] = [`grt_${Bun.randomUUIDv7()}`, "live"] as const;
  const [digest, codeDigest] = [Bun.randomUUIDv7(), Bun.randomUUIDv7()];
  const scopes = ["chat:write"] as const;
  const common = { appId, personId: of.id, accountId: member.accountId, environment, scopes };
  const resources = ["/v1"];
  await pages.oauth.insertCode(
    {
      ...{
        ...common,
        membershipId: member.id,
        tools: null,
        quotas: null,
        digest: codeDigest,
        redirectUri: null,
        codeChallenge: null,
      },
      ...{ resources, createdAt: now, expiresAt: now + 60, grantId: null },
    },
    testEvent(now),
  );
  const issued = await pages.oauth.redeemCode(
    codeDigest,
    {
      grant: keyRecordFor({
        ...{ ...common, id: grant, digest: grant, kind: "grant", prefix: "", last4: "", createdAt: now },
        parentId: membershipCredentialId(member.id, environment),
      }),
      refreshToken: {
        resources,
        ...{ digest, grantId: grant, createdAt: now, expiresAt: now + 86_400, usedAt: null, sealedAnswer: null },
      },
    },
    { issued: testEvent(now), replayed: testEvent(now) },
  );
  expect(issued).toBe("issued");
}

async function lastEvent() {
  return (await pages.audit.list({}, { after: undefined, limit: 1 }))[0];
}

test("shows and changes no settings without a signed-in user", async () => {
  const stranger = pages.visitor();
  expect((await stranger.get("/settings")).location).toBe("/sign-in?next=%2Fsettings");
  for (const what of changes) {
    expect((await stranger.post(`/settings/${what}`, { name: "Eve" })).location).toBe("/sign-in?next=%2Fsettings");
  }
});

test.each([...changes])(
  "changes nothing by a form to settings/%s without the session's token or from another site",
  async (what) => {
    const fields = { name: "Eve", password: "a password of another", current_password: password };
    expect((await visitor.post(`/settings/${what}`, fields)).status).toBe(403);
    const { text } = await visitor.get("/settings");
    const csrf = /name="csrf" value="([^"]+)"/.exec(text)?.[1] ?? "";
    const foreign = { origin: "https://evil.example" };
    expect((await visitor.post(`/settings/${what}`, { ...fields, csrf }, foreign)).status).toBe(403);
    expect((await pages.people.findPerson(person.id))?.name).toBe("Ada");
    expect(await pages.sessionStore.list(person.id, pages.clock.nowSeconds())).toHaveLength(1);
  },
);

describe("the user's name", () => {
  test("changes the user's name and confirms it", async () => {
    await visitor.get("/settings");
    const done = await visitor.submit("/settings/name", { name: 'Ada "<b>"' });
    const { text } = await visitor.get(done.location);
    expect(text).toContain("Your name was changed.");
    expect(text).toContain('value="Ada &quot;&lt;b&gt;&quot;"');
  });

  test("shows an invalid name beside its field, in its own form only", async () => {
    await visitor.get("/settings");
    const { status, text } = await visitor.submit("/settings/name", { name: " " });
    expect(status).toBe(400);
    expect(text.match(/aria-invalid/g)).toHaveLength(1);
    expect(section(text, "you")).toContain("aria-invalid");
  });
});

describe("the user's password", () => {
  test("changes the password with the current one, and ends all other sessions", async () => {
    const elsewhere = pages.visitor((await pages.startSession(person)).cookie);
    await visitor.get("/settings");
    const next = "another horse that counts";
    const before = pages.changes.grants;
    const done = await visitor.submit("/settings/password", { current_password: password, password: next });
    expect(pages.changes.grants).toBe(before + 1);
    expect(done.location).toBe("/settings?done=password");
    expect((await visitor.get("/settings")).status).toBe(200);
    expect((await elsewhere.get("/settings")).status).toBe(303);
    const fresh = pages.visitor();
    expect((await fresh.post("/sign-in", { email: person.email, password: next })).status).toBe(303);
  });

  test.each([
    ["current_password", { current_password: "not it at all", password: "another horse that counts" }],
    ["password", { current_password: password, password: "short" }],
  ])("keeps the password if %s is wrong, and repeats neither password on the page", async (field, entered) => {
    await visitor.get("/settings");
    const { status, text } = await visitor.submit("/settings/password", entered);
    expect(status).toBe(400);
    expect(new RegExp(`<input id="${field}"[^>]*>`).exec(text)?.[0]).toContain('aria-invalid="true"');
    expect(text).not.toContain(entered.password);
    expect(text).not.toContain(entered.current_password);
    expect((await pages.visitor().post("/sign-in", { email: person.email, password })).status).toBe(303);
  });

  test("sets a first password without a current one", async () => {
    const without = await pages.addPerson({ email: `sso-${made}@example.com` });
    const other = pages.visitor((await pages.startSession(without)).cookie);
    expect(section((await other.get("/settings")).text, "password-title")).not.toContain("current_password");
    await other.submit("/settings/password", { password });
    expect(section((await other.get("/settings")).text, "password-title")).toContain("current_password");
  });
});

describe("the user's accounts", () => {
  test("lists the user's accounts with roles, and switches the current one", async () => {
    const { id, name } = await pages.addAccount({ name: "Second & last" });
    await pages.addMember(person, "owner", id);
    const { text } = await visitor.get("/settings");
    expect(section(text, "accounts")).toContain("Second &amp; last");
    expect(section(text, "accounts")).toContain("Owner");
    await visitor.submit("/settings/account");
    const after = section((await visitor.get("/settings")).text, "accounts");
    expect(after.replaceAll("&amp;", "&")).toContain(`<h3>${name} <span class="tag">Current</span>`);
  });

  test("does not switch to another user's account or to a suspended one", async () => {
    const foreign = await pages.addAccount();
    const suspended = await pages.addAccount({ status: "suspended" });
    await pages.addMember(person, "owner", suspended.id);
    const { text } = await visitor.get("/settings");
    const csrf = /name="csrf" value="([^"]+)"/.exec(text)?.[1] ?? "";
    for (const account_id of [foreign.id, suspended.id, ""]) {
      expect((await visitor.post("/settings/account", { csrf, account_id })).status).toBe(403);
    }
  });
});

describe("the user's sessions", () => {
  test("lists sessions with the current one marked, ends another one, and audits that", async () => {
    const other = pages.visitor((await pages.startSession(person)).cookie);
    pages.clock.advance(7_200_000);
    const { text } = await visitor.get("/settings");
    const list = section(text, "sessions");
    expect(list.match(/<li>/g)).toHaveLength(2);
    expect(list.match(/This browser/g)).toHaveLength(1);
    expect(list).toContain("2 hours ago");
    await visitor.submit(
      "/settings/sessions/end",
      {},
      list.indexOf("This browser") < list.indexOf("2 hours ago") ? 1 : 0,
    );
    expect((await other.get("/settings")).status).toBe(303);
    expect((await visitor.get("/settings")).status).toBe(200);
    expect(await lastEvent()).toMatchObject({ action: "session.ended", actor: { type: "person", id: person.id } });
  });

  test("signs out when the current session is ended in the list", async () => {
    await visitor.get("/settings");
    const done = await visitor.submit("/settings/sessions/end");
    expect([done.location, visitor.cookie]).toEqual(["/sign-in", ""]);
  });

  test("does not end another user's sessions", async () => {
    const other = await pages.addPerson({ email: `other-${made}@example.com` });
    const { session } = await pages.startSession(other);
    await visitor.get("/settings");
    await visitor.submit("/settings/sessions/end", { session_id: session.id });
    expect(await pages.sessionStore.list(other.id, pages.clock.nowSeconds())).toHaveLength(1);
  });

  test("ends all sessions but the current one at once", async () => {
    const others = [await pages.startSession(person), await pages.startSession(person)];
    await visitor.get("/settings");
    await visitor.submit("/settings/sessions/end-others");
    for (const { cookie } of others) expect((await pages.visitor(cookie).get("/settings")).status).toBe(303);
    const { text } = await visitor.get("/settings");
    expect(section(text, "sessions")).toContain("You are not signed in anywhere else.");
  });

  test("ends sessions and CLI logins together, even without another browser, and keeps apps", async () => {
    expect(section((await visitor.get("/settings")).text, "sessions")).not.toContain("end-others");
    await allow(person, membership, "Desk");
    await allowAs(commandLineAppId, person, membership);
    await visitor.get("/settings");
    const before = pages.changes.grants;
    const { text } = await visitor.get((await visitor.submit("/settings/sessions/end-others")).location);
    expect(text).toContain("Other browsers and command line logins were signed out.");
    expect(section(text, "sessions")).toContain("You are not signed in anywhere else.");
    expect(section(text, "apps").match(/<h3>.*?<\/h3>/g)).toEqual([expect.stringContaining("Desk")]);
    expect(pages.changes.grants).toBe(before + 1);
  });

  test("does not list sessions that have expired", async () => {
    await pages.startSession(person);
    pages.clock.advance(8 * 86_400_000);
    await visitor.get("/settings");
    pages.clock.advance(8 * 86_400_000);
    expect(section((await visitor.get("/settings")).text, "sessions").match(/<li>/g)).toHaveLength(1);
  });
});

describe("the user's passkeys", () => {
  const add = (of: Person) => {
    const id = `passkey-${++made}`;
    const kept = { publicKey: "", counter: 0, transports: [], backedUp: false, createdAt: 1, lastUsedAt: null };
    return pages.people.insertPasskey({ id, personId: of.id, name: id, ...kept }, testEvent(1)).then(() => id);
  };

  test("removes a passkey by its button", async () => {
    await add(person);
    await visitor.get("/settings");
    const done = await visitor.submit("/settings/passkeys/remove");
    expect((await visitor.get(done.location)).text).toContain("The passkey was removed.");
    expect(await pages.people.listPasskeys(person.id)).toEqual([]);
    expect(await lastEvent()).toMatchObject({ action: "passkey.removed", actor: { type: "person", id: person.id } });
  });

  test("keeps another user's passkeys", async () => {
    const other = await pages.addPerson({ email: `other-${made}@example.com` });
    const id = await add(other);
    await add(person);
    await visitor.get("/settings");
    expect((await visitor.submit("/settings/passkeys/remove", { id })).status).toBe(404);
    expect(await pages.people.listPasskeys(other.id)).toHaveLength(1);
  });
});

describe("apps that the user allowed", () => {
  test("lists allowed apps with their scopes, and ends their access after a confirmation", async () => {
    await allow(person, membership, "Writing <Desk>");
    const before = pages.changes.grants;
    const list = section((await visitor.get("/settings")).text, "apps");
    expect(list).toContain("Writing &lt;Desk&gt;");
    expect(list).toContain("Use models on your behalf");
    expect(list).toContain("not used yet");
    expect(list).toMatch(/<details>.*<summary.*<form/s);
    const done = await visitor.submit("/settings/apps/remove");
    expect(section((await visitor.get(done.location)).text, "apps")).not.toContain("Desk");
    expect(pages.changes.grants).toBe(before + 1);
    expect(await lastEvent()).toMatchObject({ action: "grant.revoked", actor: { type: "person", id: person.id } });
  });

  test("keeps the access of another user's apps", async () => {
    const other = await pages.addPerson({ email: `other-${made}@example.com` });
    const member = await pages.addMember(other, "member");
    const app_id = await allow(other, member, "Theirs");
    const { text } = await visitor.get("/settings");
    expect(section(text, "apps")).not.toContain("Theirs");
    const csrf = /name="csrf" value="([^"]+)"/.exec(text)?.[1] ?? "";
    await visitor.post("/settings/apps/remove", { csrf, app_id, account_id: pages.accountId });
    expect(await pages.oauth.listAllowedApps(other.id, pages.clock.nowSeconds())).toHaveLength(1);
  });
});

test("shows only known confirmations for ?done=, and none that a link invents", async () => {
  for (const done of ["<b>", "constructor", "__proto__", "toString"]) {
    expect((await visitor.get(`/settings?done=${encodeURIComponent(done)}`)).text).not.toContain('class="notice done"');
  }
});
