// The endpoints for people themselves, over a real database and socket: who one is, where one is signed in, one's password.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { type ApiMember, openPeopleApi, type PeopleApi } from "../support/people-api.ts";

let api: PeopleApi;
let owner: ApiMember;
let member: ApiMember;

beforeEach(async () => {
  api = await openPeopleApi();
  owner = await api.addSignedIn("owner");
  member = await api.addSignedIn("member");
});

afterEach(() => api.closeAll());

const events = async (action: string) =>
  (await api.audit.list({}, { after: undefined, limit: 200 })).filter((event) => event.action === action);

describe("GET /v1/session", () => {
  test("shows the signed-in person, account and CSRF token", async () => {
    const { status, headers, body } = await api.send(member.headers, "/v1/session");
    expect([status, headers.get("cache-control")]).toEqual([200, "no-store"]);
    expect(body).toEqual({
      object: "session",
      person: { id: member.person.id, email: member.person.email, name: "Test Person", is_operator: false },
      account: { id: api.accountId, name: expect.any(String) },
      role: "member",
      environment: "dev",
      scopes: ["chat:read", "chat:write", "models:read", "usage:read", "tools:use", "keys:manage"],
      session_id: member.sessionId,
      csrf_token: member.headers["x-csrf-token"],
      has_password: false,
      accounts: [
        {
          ...{ id: api.accountId, name: expect.any(String), role: "member", status: "active" },
          membership_id: member.membership.id,
        },
      ],
    });
    const operator = await api.addSignedIn("member", { isOperator: true });
    expect((await api.send(operator.headers, "/v1/session")).body.scopes).toContain("admin:manage");
  });

  test("shows a command line login like a session, without session fields", async () => {
    const login = await api.allow(owner, undefined, ["models:read"]);
    const { body } = await api.send(login, "/v1/session");
    expect(body).toMatchObject({ role: "owner", scopes: ["models:read"], session_id: null, csrf_token: null });
    expect(body.has_password).toBeNull();
  });

  test("shows whether the person has a password", async () => {
    const withOne = await api.addSignedIn("member", { password: "correct horse battery" });
    expect((await api.send(withOne.headers, "/v1/session")).body.has_password).toBe(true);
    const hasPassword = async () => (await api.send(member.headers, "/v1/session")).body.has_password;
    expect(await hasPassword()).toBe(false);
    const first = { new_password: "a wholly new password" };
    expect((await api.send(member.headers, "/v1/session/password", "POST", first)).status).toBe(200);
    expect(await hasPassword()).toBe(true);
    const { body } = await api.send(member.headers, "/v1/session", "PATCH", { name: "Ada" });
    expect(body.has_password).toBe(true);
  });

  test("refuses keys, key tokens and apps on every session route", async () => {
    const strangers = [await api.keyHeaders(), await api.allow(owner, "app_other", ["keys:manage"])];
    for (const headers of strangers) {
      for (const [method, path] of [
        ["GET", "/v1/session"],
        ["PATCH", "/v1/session"],
        ["POST", "/v1/session/password"],
        ["GET", "/v1/sessions"],
        ["DELETE", "/v1/sessions"],
        ["DELETE", `/v1/sessions/${owner.sessionId}`],
        ["GET", "/v1/members"],
        ["PATCH", `/v1/members/${member.membership.id}`],
        ["DELETE", `/v1/members/${member.membership.id}`],
        ["GET", "/v1/audit"],
        ["GET", "/v1/invitations"],
        ["POST", "/v1/invitations"],
        ["DELETE", "/v1/invitations/lnk_x"],
      ] as const) {
        const { status, body } = await api.send(headers, path, method, method === "GET" ? undefined : {});
        expect([path, status, body.error.code]).toEqual([path, 403, "permission_denied"]);
      }
    }
  });
});

test("lets a read-only login read its person and change nothing", async () => {
  const narrow = await api.allow(owner, undefined, ["models:read"]);
  expect((await api.send(narrow, "/v1/sessions")).status).toBe(200);
  for (const [method, path, body] of [
    ["PATCH", "/v1/session", { name: "Ada" }],
    ["DELETE", "/v1/sessions", undefined],
    ["DELETE", `/v1/sessions/${owner.sessionId}`, undefined],
  ] as const) {
    expect((await api.send(narrow, path, method, body)).body.error.code).toBe("insufficient_scope");
  }
  expect((await api.send(owner.headers, "/v1/session")).body.person.name).toBe("Test Person");
});

describe("PATCH /v1/session", () => {
  test("switches a session to another of the person's accounts, and to no other", async () => {
    const other = await api.addAccount({ name: "Other" });
    const closed = await api.addAccount({ status: "suspended" });
    const foreign = await api.addAccount();
    await api.addMember(member.person, "owner", other.id);
    await api.addMember(member.person, "owner", closed.id);
    const { body } = await api.send(member.headers, "/v1/session", "PATCH", { account_id: other.id });
    expect([body.account, body.role, body.accounts.length]).toEqual([{ id: other.id, name: "Other" }, "owner", 3]);
    expect((await api.send(member.headers, "/v1/session")).body.account.id).toBe(other.id);
    for (const id of [closed.id, foreign.id, "acct_none"]) {
      const { status, body } = await api.send(member.headers, "/v1/session", "PATCH", { account_id: id, name: "N" });
      expect([status, body.error.code]).toEqual([400, "invalid_request"]);
    }
    const { body: after } = await api.send(member.headers, "/v1/session");
    expect([after.account.id, after.person.name]).toEqual([other.id, "Test Person"]);
  });

  test("keeps a login in the account that it was allowed for", async () => {
    const login = await api.allow(owner);
    const { status, body } = await api.send(login, "/v1/session", "PATCH", { account_id: api.accountId });
    expect([status, body.error.message]).toEqual([403, expect.stringContaining("account_id: a login is for")]);
  });

  test("renames the signed-in person with old and new value audited, and nothing else", async () => {
    const { body } = await api.send(member.headers, "/v1/session", "PATCH", { name: " Ada " });
    expect(body.person.name).toBe("Ada");
    expect((await events("person.updated"))[0]).toMatchObject({
      actor: { type: "person", id: member.person.id },
      detail: { name: { before: "Test Person", after: "Ada" } },
    });
    for (const wrong of [{ name: "" }, { name: "a\u202eb" }, { is_operator: true }, { role: "owner" }]) {
      expect((await api.send(member.headers, "/v1/session", "PATCH", wrong)).status).toBe(400);
    }
  });
});

describe("GET and DELETE of sessions", () => {
  test("lists own active sessions, newest first, in pages, with the current one marked", async () => {
    const idle = await api.signIn(member.person);
    api.clock.jump(13 * 86_400);
    await api.send(member.headers, "/v1/session");
    api.clock.jump(2 * 86_400);
    const second = await api.signIn(member.person);
    const { body } = await api.send(second.headers, "/v1/sessions?limit=1");
    expect([body.data.length, body.has_more]).toEqual([1, true]);
    expect(body.data[0]).toMatchObject({
      id: second.sessionId,
      current: true,
      method: "password",
      user_agent: "Test/1.0",
    });
    const { body: rest } = await api.send(second.headers, `/v1/sessions?after=${body.last_id}`);
    expect(rest.data.map(({ id, current }: Record<string, unknown>) => [id, current])).toEqual([
      [member.sessionId, false],
    ]);
    expect(JSON.stringify(rest)).not.toContain(idle.sessionId);
    for (const after of [owner.sessionId, idle.sessionId, "ses_x"]) {
      expect((await api.send(second.headers, `/v1/sessions?after=${after}`)).status).toBe(400);
    }
  });

  test("ends own sessions one by one or all others, and never another person's", async () => {
    const [second, third] = [await api.signIn(member.person), await api.signIn(member.person)];
    expect((await api.send(owner.headers, `/v1/sessions/${second.sessionId}`, "DELETE")).status).toBe(404);
    expect((await api.send(member.headers, `/v1/sessions/${second.sessionId}`, "DELETE")).body).toEqual({
      object: "browser_session",
      id: second.sessionId,
      deleted: true,
    });
    expect((await api.send(second.headers, "/v1/session")).status).toBe(401);
    expect((await api.send(member.headers, `/v1/sessions/${second.sessionId}`, "DELETE")).status).toBe(404);
    expect((await api.send(member.headers, "/v1/sessions", "DELETE")).body.deleted).toBe(1);
    expect((await api.send(third.headers, "/v1/session")).status).toBe(401);
    for (const { headers } of [member, owner]) expect((await api.send(headers, "/v1/session")).status).toBe(200);
    expect((await api.send(await api.allow(member), "/v1/sessions", "DELETE")).body.deleted).toBe(1);
    expect((await api.send(member.headers, "/v1/session")).status).toBe(401);
    expect((await events("session.ended")).map(({ actor }) => actor)).toEqual(
      Array(3).fill({ type: "person", id: member.person.id }),
    );
  });
});

test("ends all other sessions and command line logins at once, but not the asking login or apps", async () => {
  const [first, second] = [await api.allow(member), await api.allow(member)];
  const [app, stranger] = [await api.allow(member, "app_other"), await api.allow(owner)];
  const statusOf = async (headers: Record<string, string>) => (await api.send(headers, "/v1/session")).status;
  // Remembered from here on.
  expect(await Promise.all([first, second, app, stranger].map(statusOf))).toEqual([200, 200, 403, 200]);
  expect((await api.send(first, "/v1/sessions", "DELETE")).body.deleted).toBe(2);
  expect(await Promise.all([first, second, app, stranger, member.headers].map(statusOf))).toEqual([
    ...[200, 401, 403, 200, 401],
  ]);
  const { headers } = await api.signIn(member.person);
  expect((await api.send(headers, "/v1/sessions", "DELETE")).body.deleted).toBe(1);
  expect(await Promise.all([first, app, stranger, headers].map(statusOf))).toEqual([401, 403, 200, 200]);
  expect((await events("session.ended")).map(({ detail }) => detail["all_but"])).toEqual([
    expect.stringMatching(/^ses_/),
    expect.stringMatching(/^grt_/),
  ]);
});

describe("POST /v1/session/password", () => {
  const old = "a few words that are long";
  const next = "some other words, as long";

  test("changes the password with the right current one, and ends other sessions and logins at once", async () => {
    const person = await api.addSignedIn("member", { password: old });
    const other = await api.signIn(person.person);
    const [login, app] = [await api.allow(person), await api.allow(person, "app_other")];
    const change = (body: unknown) => api.send(person.headers, "/v1/session/password", "POST", body);
    const wrong = await change({ current_password: "not it at all", new_password: next });
    expect([wrong.status, wrong.body.error.message]).toEqual([400, "current_password: is not your password."]);
    const short = await change({ current_password: old, new_password: "short" });
    expect([short.status, short.body.error.message]).toEqual([400, expect.stringMatching(/^new_password: must be 12/)]);
    for (const headers of [other.headers, login]) expect((await api.send(headers, "/v1/session")).status).toBe(200);
    expect((await change({ current_password: old, new_password: next })).body).toEqual({
      object: "password",
      changed: true,
    });
    for (const headers of [other.headers, login]) expect((await api.send(headers, "/v1/session")).status).toBe(401);
    expect((await api.send(person.headers, "/v1/session")).status).toBe(200);
    expect((await api.send(app, "/v1/session")).status).toBe(403);
    expect((await change({ current_password: old, new_password: old })).status).toBe(400);
    const reported = JSON.stringify(await api.audit.list({}, { after: undefined, limit: 200 }));
    for (const secret of [old, next]) expect(reported).not.toContain(secret);
  });

  test("refuses a first password by a login's token, which may be stolen", async () => {
    const login = await api.allow(member);
    const { status, body } = await api.send(login, "/v1/session/password", "POST", { new_password: next });
    expect([status, body.error.code]).toEqual([403, "permission_denied"]);
    expect((await api.people.findByEmail(member.person.email))?.passwordHash).toBeNull();
  });
});
