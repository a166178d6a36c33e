// The endpoints for members, invitations and operators, over a real database and socket: who may see and change whom.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { calendarMonthOf } from "../../src/base/calendar-month.ts";
import type { Role } from "../../src/domain/people/role.ts";
import { catchUp } from "../../src/ledger/usage/usage-rows.ts";
import { openUsageWriter } from "../../src/ledger/usage/usage-writer.ts";
import { auditEvent } from "../../src/policy/records/audit.ts";
import { apiKeys } from "../../src/storage/tables/credential-rows.ts";
import { operators } from "../support/people.ts";
import { type ApiMember, openPeopleApi, type PeopleApi } from "../support/people-api.ts";
import { keyRecordFor } from "../support/principal.ts";

let api: PeopleApi;
let owner: ApiMember;
let admin: ApiMember;
let member: ApiMember;

beforeEach(async () => {
  api = await openPeopleApi();
  owner = await api.addSignedIn("owner");
  admin = await api.addSignedIn("admin");
  member = await api.addSignedIn("member");
});

afterEach(() => api.closeAll());

const events = async (action: string) =>
  (await api.audit.list({}, { after: undefined, limit: 200 })).filter((event) => event.action === action);

describe("GET and changes of members", () => {
  const setRole = (by: Record<string, string>, target: ApiMember, role: Role) =>
    api.send(by, `/v1/members/${target.membership.id}`, "PATCH", { role });
  const remove = (by: Record<string, string>, target: ApiMember) =>
    api.send(by, `/v1/members/${target.membership.id}`, "DELETE");

  test("lists members to owners and admins, oldest first, in pages", async () => {
    for (const { headers } of [owner, admin]) {
      const { body } = await api.send(headers, "/v1/members?limit=2");
      expect(body.data.map(({ id, role }: Record<string, unknown>) => [id, role])).toEqual([
        [owner.membership.id, "owner"],
        [admin.membership.id, "admin"],
      ]);
      expect(body.data[0]).toMatchObject({ email: owner.person.email, person_id: owner.person.id });
      const { body: rest } = await api.send(headers, `/v1/members?after=${body.last_id}`);
      expect([rest.data.length, rest.has_more]).toEqual([1, false]);
    }
    expect((await api.send(member.headers, "/v1/members")).status).toBe(403);
  });

  test("adds the month's spend in the account and the last use to a list that asks for it", async () => {
    const other = await api.addAccount();
    await api.addMember(member.person, "member", other.id);
    const foreign = await api.addSignedIn("owner", { inAccount: other.id });
    const operator = await api.addSignedIn("owner", { isOperator: true });
    const { start } = calendarMonthOf(api.clock.nowSeconds());
    const costs = { [api.accountId]: 2_500_000_000, [other.id]: 7_000_000_000 };
    const writer = await openUsageWriter(api.db);
    for (const [accountId, nanoUsd] of Object.entries(costs)) {
      const keyId = `key_${accountId}`;
      const key = { id: keyId, accountId, personId: member.person.id, environment: "dev" as const, lastUsedAt: start };
      await api.db`INSERT INTO api_keys ${api.db(apiKeys.row(keyRecordFor(key)))}`;
      await writer.insert([
        {
          ...{ requestId: `req_${keyId}`, at: start, accountId, keyId, appId: null, environment: "dev", nanoUsd },
          ...{ operation: "chat", model: "m", stream: false, outcome: "completed", errorCode: null, capped: false },
          ...{ promptTokens: 1, completionTokens: 1, estimated: false, upstream: null, durationMs: 1, queueMs: 0 },
          firstTokenMs: null,
        },
      ]);
    }
    await catchUp(writer);
    writer.close();
    const listed = async ({ headers }: ApiMember, path: string) => {
      const { body } = await api.send(headers, `${path}?include=usage`);
      const rows: { person_id?: string; id: string; usage: { spend: number } }[] = body.data;
      return new Map(rows.map((row) => [row.person_id ?? row.id, row.usage.spend]));
    };
    const { id } = member.person;
    const own = await listed(owner, "/v1/members");
    expect([own.get(id), own.get(owner.person.id), own.has(foreign.person.id)]).toEqual([2.5, 0, false]);
    expect((await listed(foreign, "/v1/members")).get(id)).toBe(7);
    expect((await listed(operator, `/v1/admin/accounts/${other.id}/members`)).get(id)).toBe(7);
    expect((await listed(operator, "/v1/admin/people")).get(id)).toBe(9.5);
    const [found] = (await api.send(operator.headers, `/v1/admin/people?include=usage&email=${member.person.email}`))
      .body.data;
    expect(found.usage).toEqual({ spend: 9.5, last_used_at: expect.any(Number) });
    expect((await api.send(owner.headers, "/v1/members")).body.data[0]).not.toHaveProperty("usage");
    for (const path of ["/v1/members", "/v1/admin/people", `/v1/admin/accounts/${other.id}/members`]) {
      expect((await api.send(member.headers, `${path}?include=usage`)).status).toBe(403);
    }
    const wrong = await api.send(owner.headers, "/v1/members?include=all");
    expect([wrong.status, wrong.body.error.param]).toEqual([400, "include"]);
  });

  test("lets owners, and admins for members, limit a member and the member's keys", async () => {
    const quotas = [{ unit: "requests", amount: 2, per: "5h" }];
    const shown = [{ unit: "requests", amount: 2, per: "5h", window: "rolling" }];
    const limit = (by: Record<string, string>, target: ApiMember, to: unknown) =>
      api.send(by, `/v1/members/${target.membership.id}`, "PATCH", { quotas: to });
    expect((await limit(member.headers, member, [])).status).toBe(403);
    expect((await limit(admin.headers, owner, quotas)).status).toBe(403);
    expect((await limit(owner.headers, admin, quotas)).body.quotas).toEqual(shown);
    const { status, body } = await limit(admin.headers, member, quotas);
    expect([status, body.quotas, body.role]).toEqual([200, shown, "member"]);
    expect((await events("member.updated"))[0]).toMatchObject({ detail: { quotas: { before: [], after: shown } } });
    const { body: list } = await api.send(owner.headers, "/v1/members");
    expect(list.data.map((one: { quotas: unknown[] }) => one.quotas.length)).toEqual([0, 1, 1]);
    const made = await api.send(member.headers, "/v1/keys", "POST", { name: "own" });
    const chain = await api.keys.findChainById(made.body.id);
    expect(chain?.keys.map((one) => one.quotas)).toEqual([[], shown] as never);
    const one = await api.send(member.headers, `/v1/members/${member.membership.id}`);
    expect([one.status, one.body.quotas]).toEqual([200, shown]);
    expect(one.body.quotas_used).toMatchObject([
      { owner: "member", unit: "requests", amount: 2, used: 0, left: 2, per: "5h", starts_at: null, resets_at: null },
    ]);
    expect((await api.send(member.headers, `/v1/members/${owner.membership.id}`)).status).toBe(403);
    expect((await api.send(owner.headers, "/v1/members/mbr_nobody")).status).toBe(404);
    const wrong = await limit(owner.headers, member, [{ unit: "tokens", amount: 1, per: "5h", window: "calendar" }]);
    expect(wrong.body.error.message).toContain("quotas[0].window: must be rolling");
    expect((await limit(owner.headers, member, null)).body.quotas).toEqual([]);
  });

  test("lets owners, and admins for members, choose a member's tools within their own", async () => {
    const allow = (by: Record<string, string>, target: ApiMember, tools: unknown) =>
      api.send(by, `/v1/members/${target.membership.id}`, "PATCH", { tools });
    expect((await allow(member.headers, member, null)).status).toBe(403);
    expect((await allow(admin.headers, owner, [])).status).toBe(403);
    expect((await allow(owner.headers, admin, ["github", "crm/read_*"])).body.tools).toEqual(["crm/read_*", "github"]);
    const wider = await allow(admin.headers, member, ["github", "crm"]);
    expect([wider.status, wider.body.error.message]).toEqual([
      403,
      expect.stringContaining("tools[0]: must be within"),
    ]);
    expect((await allow(admin.headers, member, ["github/search"])).body.tools).toEqual(["github/search"]);
    expect((await events("member.updated"))[0]).toMatchObject({
      detail: { tools: { before: null, after: ["github/search"] } },
    });
    expect((await api.send(admin.headers, "/v1/keys", "POST", { name: "a", tools: ["mail"] })).status).toBe(403);
    expect((await api.send(member.headers, "/v1/keys", "POST", { name: "a", tools: ["github"] })).status).toBe(403);
    const made = await api.send(member.headers, "/v1/keys", "POST", { name: "own" });
    expect(made.body.tools).toEqual(["github/search"]);
    const chain = await api.keys.findChainById(made.body.id);
    expect(chain?.keys.map(({ tools }) => tools)).toEqual([["github/search"], ["github/search"]]);
    expect((await allow(owner.headers, member, ["no slash at the end/"])).status).toBe(400);
    expect((await allow(owner.headers, member, null)).body.tools).toBeNull();
  });

  test("lets only owners change a member's role, and nobody the own", async () => {
    for (const by of [admin, member]) {
      for (const target of [owner, admin, member])
        expect((await setRole(by.headers, target, "owner")).status).toBe(403);
    }
    expect((await setRole(owner.headers, owner, "admin")).body.error.message).toBe(
      "role: nobody changes their own role.",
    );
    const { status, body } = await setRole(owner.headers, member, "admin");
    expect([status, body.role, body.email]).toEqual([200, "admin", member.person.email]);
    // It holds with the next request, in the browser and with a login.
    expect((await api.send(member.headers, "/v1/members")).status).toBe(200);
    expect((await api.send(await api.allow(member), "/v1/members")).status).toBe(200);
    await setRole(owner.headers, member, "member");
    expect((await api.send(member.headers, "/v1/members")).status).toBe(403);
    expect((await events("member.updated"))[0]).toMatchObject({
      actor: { type: "person", id: owner.person.id },
      targetId: member.membership.id,
      detail: { role: { before: "admin", after: "member" } },
    });
    expect((await setRole(owner.headers, member, "member")).status).toBe(200);
    expect(await events("member.updated")).toHaveLength(2);
    const wrong = await api.send(owner.headers, `/v1/members/${member.membership.id}`, "PATCH", { role: "operator" });
    expect(wrong.body.error.message).toContain("role: must be");
  });

  test("removes members by a higher role or by themselves, and keeps the last owner", async () => {
    const second = await api.addSignedIn("admin");
    for (const [by, target] of [
      [member, admin],
      [member, owner],
      [admin, owner],
      [admin, second],
    ] as const) {
      expect((await remove(by.headers, target)).status).toBe(403);
    }
    expect((await remove(admin.headers, member)).body).toEqual({
      object: "member",
      id: member.membership.id,
      deleted: true,
    });
    expect((await api.send(member.headers, "/v1/session")).body.error.message).toContain("not a member of an account");
    expect((await remove(second.headers, second)).status).toBe(200);
    const last = await remove(owner.headers, owner);
    expect([last.status, last.body.error.message]).toEqual([403, expect.stringContaining("at least one owner")]);
    expect((await remove(owner.headers, member)).status).toBe(404);
    expect((await remove(owner.headers, admin)).status).toBe(200);
  });

  test("hides members of another account, even from a person in both", async () => {
    const elsewhere = await api.addAccount();
    const stranger = await api.addSignedIn("owner", { inAccount: elsewhere.id });
    for (const attempt of [await setRole(owner.headers, stranger, "member"), await remove(owner.headers, stranger)]) {
      expect([attempt.status, attempt.body.error.code]).toEqual([404, "not_found"]);
    }
    await api.addMember(stranger.person, "owner");
    const here = { ...stranger.headers, "headrace-account": api.accountId };
    expect((await remove(here, stranger)).status).toBe(404);
    expect((await remove(here, member)).status).toBe(200);
    // A member learns nothing of who else there is.
    const another = await api.addSignedIn("member");
    expect((await remove(another.headers, stranger)).body).toEqual((await remove(another.headers, admin)).body);
  });

  test("refuses member management by a login without that right", async () => {
    const narrow = await api.allow(owner, undefined, ["chat:write", "models:read"]);
    for (const { status, body } of [
      await api.send(narrow, "/v1/members"),
      await setRole(narrow, member, "owner"),
      await remove(narrow, member),
      await api.send(narrow, "/v1/invitations", "POST", { email: "a@example.test", role: "owner" }),
    ]) {
      expect([status, body.error.code]).toEqual([403, "insufficient_scope"]);
    }
    expect((await setRole(await api.allow(owner), member, "admin")).status).toBe(200);
  });

  test("lets a browser operator manage any account's members", async () => {
    const operator = await api.addSignedIn("member", { isOperator: true });
    expect((await setRole(operator.headers, member, "admin")).status).toBe(200);
    expect((await setRole(await api.allow(operator), member, "member")).status).toBe(403);
    const elsewhere = await api.addAccount();
    const path = `/v1/admin/accounts/${elsewhere.id}/members`;
    await api.addMember(member.person, "owner", elsewhere.id);
    expect((await api.send(operator.headers, path)).body.data[0]).toMatchObject({ email: member.person.email });
    expect((await api.send(owner.headers, path)).status).toBe(403);
    expect((await api.send(operator.headers, "/v1/admin/accounts/acct_none/members")).status).toBe(404);
  });
});

describe("invitations", () => {
  const invite = (by: Record<string, string>, body: unknown) => api.send(by, "/v1/invitations", "POST", body);

  test("shows an invitation's link once, lists open ones, and withdraws them", async () => {
    const { status, headers, body } = await invite(admin.headers, { email: " Ada@Example.TEST " });
    expect([status, headers.get("cache-control")]).toEqual([200, "no-store"]);
    expect(body).toMatchObject({
      email: "ada@example.test",
      role: "member",
      created_by: admin.person.id,
      mailed: false,
    });
    expect(body.link).toMatch(/^https:\/\/headrace\.example\/invitations\/[\w-]{43}$/);
    const list = await api.send(owner.headers, "/v1/invitations");
    const { link, mailed: _mailed, ...shown } = body;
    expect(list.body.data).toEqual([shown]);
    expect(JSON.stringify(list.body)).not.toContain(link.slice(-43));
    expect((await api.send(owner.headers, `/v1/invitations/${body.id}`, "DELETE")).status).toBe(200);
    expect((await api.send(owner.headers, `/v1/invitations/${body.id}`, "DELETE")).status).toBe(404);
    expect((await api.send(owner.headers, "/v1/invitations")).body.data).toEqual([]);
    expect((await events("invitation.deleted"))[0]).toMatchObject({
      actor: { type: "person", id: owner.person.id },
      detail: { email: "ada@example.test", role: "member" },
    });
    const reported = JSON.stringify(await api.audit.list({}, { after: undefined, limit: 200 }));
    expect(reported).not.toContain(link.slice(-43));
  });

  test.each<[Role, Role, number]>([
    ["owner", "owner", 200],
    ["owner", "admin", 200],
    ["admin", "owner", 403],
    ["admin", "admin", 403],
    ["admin", "member", 200],
    ["member", "member", 403],
  ])("answers an invitation by an %s for an %s with %d", async (by, role, expected) => {
    const inviter = { owner, admin, member }[by];
    expect((await invite(inviter.headers, { email: "ada@example.test", role })).status).toBe(expected);
    const made = await invite(owner.headers, { email: "bob@example.test", role });
    const taken = await api.send(inviter.headers, `/v1/invitations/${made.body.id}`, "DELETE");
    expect(taken.status).toBe(expected);
  });

  test("refuses an invitation for a member's or invalid address, and limits it to one account", async () => {
    for (const email of [member.person.email.toUpperCase(), "ada", "a@b@c", "ada@example.test\r\nBcc: x@y.test"]) {
      const { status, body } = await invite(owner.headers, { email });
      expect([status, body.error.message]).toEqual([400, expect.stringMatching(/^email: /)]);
    }
    const elsewhere = await api.addAccount();
    const stranger = await api.addSignedIn("owner", { inAccount: elsewhere.id });
    const { body } = await invite(owner.headers, { email: "ada@example.test" });
    expect((await api.send(stranger.headers, `/v1/invitations/${body.id}`, "DELETE")).status).toBe(404);
    expect((await api.send(stranger.headers, "/v1/invitations")).body.data).toEqual([]);
    expect((await api.send(member.headers, "/v1/invitations")).status).toBe(403);
    expect((await api.send(member.headers, `/v1/invitations/${body.id}`, "DELETE")).status).toBe(403);
  });

  test("ends invitations of a person who lost the role", async () => {
    await api.send(owner.headers, `/v1/members/${admin.membership.id}`, "PATCH", { role: "owner" });
    await invite(admin.headers, { email: "ada@example.test", role: "owner" });
    await api.send(owner.headers, `/v1/members/${admin.membership.id}`, "PATCH", { role: "member" });
    expect((await api.send(owner.headers, "/v1/invitations")).body.data).toEqual([]);
  });

  test("sends invitations by mail if there is a mail server, and then shows them to no one", async () => {
    const mailing = await openPeopleApi({ mailing: true });
    try {
      const by = await mailing.addSignedIn("owner");
      const { body } = await mailing.send(by.headers, "/v1/invitations", "POST", { email: "ada@example.test" });
      expect([body.mailed, body.link]).toEqual([true, null]);
      const operator = await mailing.addSignedIn("owner", { isOperator: true });
      const path = `/v1/admin/accounts/${mailing.accountId}/invitations`;
      const wanted = { email: "bob@example.test" };
      expect((await mailing.send(operator.headers, path, "POST", wanted)).body).toMatchObject({ link: null });
      expect(mailing.sent.map(({ to }) => to)).toEqual(["ada@example.test", "bob@example.test"]);
      const reported = JSON.stringify(await mailing.audit.list({}, { after: undefined, limit: 50 }));
      for (const { text } of mailing.sent) {
        const token = /invitations\/([\w-]{43})/.exec(text)?.[1] ?? "";
        expect(token).not.toBe("");
        expect(reported).not.toContain(token);
      }
      // For whoever has no mailbox: an operator hands it over.
      const reset = await mailing.send(operator.headers, `/v1/admin/people/${by.person.id}/reset-link`, "POST");
      expect(reset.body.link).toMatch(/\/reset\/[\w-]{43}$/);
      expect(mailing.sent).toHaveLength(2);
    } finally {
      await mailing.closeAll();
    }
  });

  test("lets an operator invite a new account's first owner", async () => {
    const operator = await api.addSignedIn("member", { isOperator: true });
    const { id } = await api.addAccount();
    const path = `/v1/admin/accounts/${id}/invitations`;
    const wanted = { email: "ada@example.test", role: "owner" };
    expect((await api.send(owner.headers, path, "POST", wanted)).status).toBe(403);
    expect((await api.send(await api.keyHeaders(["keys:manage"]), path, "POST", wanted)).status).toBe(403);
    for (const headers of [operator.headers, await api.keyHeaders(["admin:manage"])]) {
      const made = await api.send(headers, path, "POST", wanted);
      expect([made.status, made.body.role]).toEqual([200, "owner"]);
      expect((await api.send(headers, path)).body.data).toHaveLength(1);
      expect((await api.send(owner.headers, `/v1/invitations/${made.body.id}`, "DELETE")).status).toBe(404);
      expect((await api.send(headers, `${path}/${made.body.id}`, "DELETE")).status).toBe(200);
      expect((await api.send(headers, path)).body.data).toEqual([]);
    }
  });
});

describe("people administration by operators", () => {
  let operator: ApiMember;

  beforeEach(async () => {
    operator = await api.addSignedIn("owner", { isOperator: true });
  });

  test("lists people in pages and by address, with their accounts", async () => {
    const { body } = await api.send(operator.headers, "/v1/admin/people?limit=3");
    expect(body.data.map(({ id }: { id: string }) => id)).toEqual([owner.person.id, admin.person.id, member.person.id]);
    const { body: rest } = await api.send(operator.headers, `/v1/admin/people?after=${body.last_id}`);
    expect(rest.data).toMatchObject([{ id: operator.person.id, is_operator: true }]);
    const { body: found } = await api.send(
      operator.headers,
      `/v1/admin/people?email=${member.person.email.toUpperCase()}`,
    );
    expect(found.data.map(({ id }: { id: string }) => id)).toEqual([member.person.id]);
    const { body: one } = await api.send(operator.headers, `/v1/admin/people/${member.person.id}`);
    expect(one.memberships).toMatchObject([{ id: member.membership.id, account_id: api.accountId, role: "member" }]);
    expect(JSON.stringify([body, rest, found, one])).not.toContain("hash");
    for (const headers of [owner.headers, await api.allow(operator), await api.keyHeaders(["keys:manage"])]) {
      expect((await api.send(headers, "/v1/admin/people")).status).toBe(403);
    }
  });

  test("grants and withdraws the operator role, not by the person and not from the last one", async () => {
    const set = (headers: Record<string, string>, { person }: ApiMember, isOperator: boolean) =>
      api.send(headers, `/v1/admin/people/${person.id}`, "PATCH", { is_operator: isOperator });
    const itself = await set(operator.headers, operator, false);
    expect([itself.status, itself.body.error.code]).toEqual([403, "permission_denied"]);
    const key = await api.keyHeaders(["admin:manage"]);
    expect((await set(key, operator, false)).body.error.message).toContain("the last operator");
    expect((await set(operator.headers, member, true)).body.is_operator).toBe(true);
    expect((await api.send(member.headers, "/v1/admin/people")).status).toBe(200);
    expect((await set(member.headers, operator, false)).status).toBe(200);
    expect((await api.send(operator.headers, "/v1/admin/people")).status).toBe(403);
    expect((await events("person.updated"))[0]).toMatchObject({
      actor: { type: "person", id: member.person.id },
      targetId: operator.person.id,
      detail: { is_operator: { before: true, after: false } },
    });
  });

  test("refuses to resume an operator by a key that the operator made, also through rotations and other keys", async () => {
    await api.addSignedIn("owner", { isOperator: true });
    const set = (by: Record<string, string>, verb: string) =>
      api.send(by, `/v1/admin/people/${operator.person.id}/${verb}`, "POST");
    const made = await api.send(operator.headers, `/v1/admin/accounts/${api.accountId}/keys`, "POST", {
      ...{ name: "Mine", environment: "dev", scopes: ["admin:manage", "keys:manage"] },
    });
    const mine = { authorization: `Bearer ${made.body.key}` };
    const rotated = await api.send(mine, `/v1/keys/${made.body.id}/rotate`, "POST", {});
    const other = await api.keyHeaders(["admin:manage"]);
    expect((await set(other, "suspend")).status).toBe(200);
    for (const by of [mine, { authorization: `Bearer ${rotated.body.key}` }]) {
      const { status, body } = await set(by, "resume");
      expect([status, body.error.message]).toEqual([403, expect.stringContaining("You cannot resume yourself")]);
    }
    expect((await set(other, "resume")).status).toBe(200);
  });

  test("keeps one operator if two withdraw each other's role at once", async () => {
    const second = await api.addSignedIn("owner", { isOperator: true });
    const key = await api.keyHeaders(["admin:manage"]);
    const answers = await Promise.all(
      [operator, second].map(({ person }) =>
        api.send(key, `/v1/admin/people/${person.id}`, "PATCH", { is_operator: false }),
      ),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 403]);
    expect(await operators(api.people)).toBe(1);
  });

  test("deletes people with all their rights, and operators only after their role ends", async () => {
    const path = `/v1/admin/people/${member.person.id}`;
    const made = await api.send(member.headers, "/v1/keys", "POST", { name: "Own" });
    const login = await api.allow(member);
    expect((await api.send(operator.headers, `/v1/admin/people/${operator.person.id}`, "DELETE")).status).toBe(403);
    expect((await api.send(operator.headers, path, "DELETE")).body).toEqual({
      object: "person",
      id: member.person.id,
      deleted: true,
    });
    for (const headers of [member.headers, login, { authorization: `Bearer ${made.body.key}` }]) {
      expect((await api.send(headers, "/v1/keys")).status).toBe(401);
    }
    expect((await api.send(operator.headers, path, "DELETE")).status).toBe(404);
    expect((await api.send(owner.headers, "/v1/members")).body.data).toHaveLength(3);
  });

  test("shows operators a person's password link once", async () => {
    const path = (id: string) => `/v1/admin/people/${id}/reset-link`;
    const { status, headers, body } = await api.send(operator.headers, path(member.person.id), "POST");
    expect([status, headers.get("cache-control")]).toEqual([200, "no-store"]);
    expect(body.link).toMatch(/^https:\/\/headrace\.example\/reset\/[\w-]{43}$/);
    expect(body.expires_at).toBe(api.clock.nowSeconds() + 3_600);
    expect((await api.send(operator.headers, path("usr_none"), "POST")).status).toBe(404);
    expect((await api.send(owner.headers, path(member.person.id), "POST")).status).toBe(403);
    const [event] = await events("password_reset.created");
    expect(event).toMatchObject({ actor: { type: "person", id: operator.person.id }, targetId: member.person.id });
    expect(JSON.stringify(event)).not.toContain(body.link.slice(-43));
  });
});

describe("the audit log of an account", () => {
  const read = (by: Record<string, string>, query = "") => api.send(by, `/v1/audit${query}`);
  const reported = ({ body }: Awaited<ReturnType<typeof read>>) =>
    body.data.map((event: Record<string, unknown>) => [event["action"], event["target_id"]]);

  beforeEach(async () => {
    await api.send(owner.headers, `/v1/members/${member.membership.id}`, "PATCH", { role: "admin" });
    await api.send(owner.headers, `/v1/members/${member.membership.id}`, "PATCH", { role: "member" });
  });

  test("serves an account's audit log to owners, admins and operators, not to members, keys and apps", async () => {
    const operator = await api.addSignedIn("member", { isOperator: true });
    for (const { headers } of [owner, admin, operator]) expect((await read(headers)).status).toBe(200);
    const { status, body } = await read(member.headers);
    expect([status, body.error.message]).toEqual([403, "Only owners and admins see the audit log of an account."]);
    const narrow = await api.allow(owner, undefined, ["chat:write", "models:read"]);
    for (const headers of [narrow, await api.keyHeaders(), await api.allow(owner, "app_other", ["keys:manage"])]) {
      expect((await read(headers)).status).toBe(403);
    }
  });

  test("limits an account's audit log to that account, whatever is requested", async () => {
    const elsewhere = await api.addAccount();
    const stranger = await api.addSignedIn("owner", { inAccount: elsewhere.id });
    const { body } = await read(stranger.headers, "?limit=100");
    const accounts = new Set(body.data.map((event: Record<string, unknown>) => event["account_id"]));
    expect(accounts).toEqual(new Set([elsewhere.id]));
    expect(reported(await read(stranger.headers, `?target=${member.membership.id}`))).toEqual([]);
    expect(reported(await read(stranger.headers, `?after=audit_zzz&action=member.updated`))).toEqual([]);
    const foreign = await read(stranger.headers, `?account=${api.accountId}`);
    expect([foreign.status, foreign.body.error.message]).toEqual([
      400,
      "account: is no parameter of this endpoint; known are limit, after, action, target, start, end.",
    ]);
  });

  test("filters and pages an account's audit log like the operators'", async () => {
    const updated = ["member.updated", member.membership.id];
    expect(reported(await read(admin.headers, "?action=member.updated"))).toEqual([updated, updated]);
    const { body } = await read(admin.headers, `?target=${member.membership.id}&limit=1`);
    expect([body.data.length, body.has_more, body.data[0].actor]).toEqual([
      1,
      true,
      { type: "person", id: owner.person.id },
    ]);
    const rest = await read(
      admin.headers,
      `?target=${member.membership.id}&after=${body.last_id}&action=member.updated`,
    );
    expect(reported(rest)).toEqual([updated]);
    const now = api.clock.nowSeconds();
    expect(reported(await read(admin.headers, `?end=${now - 1_000}`))).toEqual([]);
    const { status, body: wrong } = await read(admin.headers, `?start=${now}&end=${now}`);
    expect(status).toBe(400);
    expect(wrong.error.message).toStartWith("start: must be before end");
  });

  test("ends an audit page early after many unmatched events, and continues from the last", async () => {
    const origin = { nowSeconds: api.clock.nowSeconds(), clientAddress: null, requestId: null };
    const about = { accountId: api.accountId, targetId: "key_any", detail: {} };
    await api.audit.append(
      Array.from({ length: 20_000 }, () => auditEvent("key.updated", { type: "system" }, origin, about)),
    );
    const query = `?action=member.updated&start=${origin.nowSeconds - 1_000}`;
    const { body } = await read(admin.headers, query);
    expect(body).toMatchObject({ data: [], first_id: null, has_more: true });
    const rest = await read(admin.headers, `${query}&after=${body.last_id}`);
    expect([reported(rest).length, rest.body.has_more]).toEqual([2, false]);
    // A page that is full ends as any other.
    const { body: full } = await read(admin.headers, `?target=key_any&action=key.updated&limit=3`);
    expect([full.data.length, full.has_more, full.last_id]).toEqual([3, true, full.data[2].id]);
  });
});
