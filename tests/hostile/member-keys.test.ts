// People in the API that keys use: members reach only what is theirs, and what they made ends with them, by whatever way in.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Scope } from "../../src/domain/scope.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";
import { openServerPeople, type ServerPeople, type SignedInMember } from "../support/server-people.ts";

let upstream: ScriptedUpstream;
let server: TestServer;
let people: ServerPeople;

beforeAll(async () => {
  upstream = await startUpstream();
  server = await startHeadrace({ yaml: upstreamYaml(upstream) });
  people = openServerPeople(server);
});

afterAll(async () => {
  await people.close();
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

type Headers = Record<string, string>;
// biome-ignore lint/suspicious/noExplicitAny: each test says what must be in it
type Answer = { status: number; body: any };

async function send(headers: Headers, path: string, method = "GET", body?: unknown): Promise<Answer> {
  const response = await fetch(server.url + path, {
    method,
    headers: { ...headers, ...(body === undefined ? {} : { "content-type": "application/json" }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: await response.json() };
}

const managing: readonly Scope[] = ["keys:manage", "chat:read", "chat:write", "models:read"];

async function makeKey(headers: Headers, more: Record<string, unknown> = {}) {
  const { status, body } = await send(headers, "/v1/keys", "POST", { name: "A key", scopes: managing, ...more });
  expect(status).toBe(200);
  return { id: body.id as string, headers: { authorization: `Bearer ${body.key}` }, body };
}

/** Every way in that a member has: the browser, `headrace login`, and a key of their own. */
async function waysOf(member: SignedInMember): Promise<Headers[]> {
  return [member.headers, (await people.allow(member)).headers, (await makeKey(member.headers)).headers];
}

const idsOf = async (headers: Headers) =>
  (await send(headers, "/v1/keys?limit=100")).body.data.map(({ id }: { id: string }) => id) as string[];

const onOneKey = (id: string): readonly [method: string, path: string, body?: unknown][] => [
  ["GET", `/v1/keys/${id}`],
  ["GET", `/v1/keys/${id}/usage`],
  ["PATCH", `/v1/keys/${id}`, { name: "Mine now" }],
  ["POST", `/v1/keys/${id}/rotate`, {}],
  ["POST", `/v1/keys/${id}/suspend`],
  ["POST", `/v1/keys/${id}/resume`],
  ["DELETE", `/v1/keys/${id}`],
];

describe("keys of a member", () => {
  test("lets a member reach only own keys and their children, by any credential", async () => {
    const [owner, other, member] = [
      await people.addMember("owner"),
      await people.addMember("member"),
      await people.addMember("member"),
    ];
    const foreign = [server.firstKey.record.id];
    for (const { headers } of [owner, other]) foreign.push((await makeKey(headers)).id);
    for (const headers of await waysOf(member)) {
      const own = await makeKey(headers);
      const grandchild = await makeKey(own.headers);
      const seen = await idsOf(headers);
      expect(seen).toContain(own.id);
      expect(seen).toContain(grandchild.id);
      for (const id of foreign) {
        expect(seen).not.toContain(id);
        for (const [method, path, body] of onOneKey(id)) {
          const answer = await send(headers, path, method, body);
          expect([path, answer.status, answer.body.error?.code]).toEqual([path, 404, "not_found"]);
        }
        // Not even as a place in a list.
        expect((await send(headers, `/v1/keys?after=${id}`)).status).toBe(400);
      }
      for (const [method, path, body] of onOneKey(grandchild.id)) {
        expect([path, (await send(headers, path, method, body)).status]).toEqual([path, 200]);
      }
    }
    const all = await idsOf(owner.headers);
    for (const id of [...foreign, ...(await idsOf(member.headers))]) expect(all).toContain(id);
  });

  test("records the member or parent key as a key's creator, also in the audit log", async () => {
    const operator = await people.addMember("owner", { isOperator: true });
    const member = await people.addMember("member");
    const [login, key] = [await people.allow(member), await makeKey(member.headers)];
    expect(key.body.created_by).toBe(member.person.id);
    expect((await makeKey(login.headers)).body.created_by).toBe(member.person.id);
    expect((await makeKey(key.headers)).body.created_by).toBe(key.id);
    const rotated = await send(operator.headers, `/v1/keys/${key.id}/rotate`, "POST", {});
    expect(rotated.body.created_by).toBe(operator.person.id);
    const { data } = (await send(operator.headers, `/v1/admin/audit?target=${key.id}`)).body;
    expect(data.map(({ actor, action }: Record<string, unknown>) => [action, actor])).toEqual([
      ["key.rotated", { type: "person", id: operator.person.id }],
      ["key.created", { type: "person", id: member.person.id }],
    ]);
    // It is the member's still, and ends with the membership.
    expect(await idsOf(member.headers)).toContain(rotated.body.id);
  });

  // hardening: K6
  test("does not let a member's key widen itself or its creator, whatever the role becomes", async () => {
    const member = await people.addMember("member");
    const key = await makeKey(member.headers, { scopes: ["keys:manage", "chat:read"] });
    const sibling = await makeKey(member.headers);
    await people.setRole(member.membership, "owner");
    server.governance.changed();
    const attempts: readonly [method: string, path: string, body: unknown][] = [
      ["PATCH", `/v1/keys/${key.id}`, { scopes: managing }],
      ["PATCH", `/v1/keys/${key.id}`, { scopes: ["keys:manage", "admin:manage"] }],
      ["PATCH", `/v1/keys/${sibling.id}`, { name: "b" }],
      ["POST", `/v1/keys/${sibling.id}/rotate`, {}],
      ["POST", "/v1/keys", { name: "b", scopes: ["chat:write"] }],
      ["POST", "/v1/admin/accounts", { name: "b" }],
    ];
    for (const [method, path, body] of attempts) {
      const answer = await send(key.headers, path, method, body);
      expect([path, answer.status, answer.body.error.code]).toEqual([path, 403, "insufficient_scope"]);
    }
    // The person is an owner now; the key is the member's that it was made by.
    expect(await idsOf(member.headers)).toContain(server.firstKey.record.id);
    expect(await idsOf(key.headers)).not.toContain(server.firstKey.record.id);
    // What is made is behind the key: not narrower by chance, but for as long as that is narrow.
    const child = await makeKey(key.headers, { scopes: ["chat:read"] });
    const { body } = await send(member.headers, `/v1/keys/${child.id}`, "PATCH", { scopes: ["chat:write"] });
    expect(body.error.message).toBe("scopes: chat:write is not among the scopes of what this key was made with.");
  });

  test("applies a lost or gained role to the account's keys within a second", async () => {
    const member = await people.addMember("member");
    const login = await people.allow(member);
    for (const headers of [member.headers, login.headers]) {
      expect(await idsOf(headers)).not.toContain(server.firstKey.record.id);
      // Another process would change it thus.
      await people.setRole(member.membership, "admin");
      await until(async () => (await idsOf(headers)).includes(server.firstKey.record.id), "admin", 1_500);
      await people.setRole(member.membership, "member");
      await until(async () => !(await idsOf(headers)).includes(server.firstKey.record.id), "member", 1_500);
    }
  });
});

describe("the end of a membership", () => {
  test("ends a member's keys, their children and logins with the membership, but not an owner's keys of the account", async () => {
    const [member, owner] = [await people.addMember("member"), await people.addMember("owner")];
    const ways = await waysOf(member);
    const grandchild = await makeKey(ways[2] ?? {});
    const ownersKey = await makeKey(owner.headers);
    const [ownersLogin, madeByLogin] = [await people.allow(owner), await makeKey((await people.allow(owner)).headers)];
    await people.addMember("owner");
    for (const { membership } of [member, owner]) expect(await people.removeMembership(membership)).toBe("done");
    server.governance.changed();
    for (const headers of [...ways.slice(1), grandchild.headers, ownersLogin.headers]) {
      expect((await send(headers, "/v1/models")).status).toBe(401);
    }
    for (const { headers } of [member, owner]) {
      expect((await send(headers, "/v1/models")).body.error.message).toContain("not a member of an account");
    }
    for (const { headers } of [ownersKey, madeByLogin]) expect((await send(headers, "/v1/models")).status).toBe(200);
  });

  test("starts a returning member without any earlier keys", async () => {
    const member = await people.addMember("member");
    const key = await makeKey(member.headers);
    await people.removeMembership(member.membership);
    await people.addMembership(member.person, "member");
    server.governance.changed();
    expect((await send(key.headers, "/v1/models")).status).toBe(401);
    const { body } = await send(member.headers, "/v1/keys");
    expect(body.data.map(({ id, status }: Record<string, unknown>) => [id, status])).toEqual([[key.id, "revoked"]]);
    expect((await send(member.headers, `/v1/keys/${key.id}/rotate`, "POST", {})).status).toBe(400);
  });
});

describe("a login of the command line", () => {
  test("ends a command line login alone and keeps the keys made with it", async () => {
    for (const role of ["member", "admin"] as const) {
      const login = await people.allow(await people.addMember(role));
      const key = await makeKey(login.headers);
      await people.write(() => people.keys.updateKey(login.grantId, { revokedAt: 1 }, people.event("member.updated")));
      server.governance.changed();
      expect((await send(login.headers, "/v1/models")).status).toBe(401);
      expect((await send(key.headers, "/v1/models")).status).toBe(200);
    }
  });

  test("does not let a limited command line login exceed its scopes or create keys that do", async () => {
    const owner = await people.addMember("owner");
    const wider = await makeKey(owner.headers);
    const { headers: reader } = await people.allow(owner, { scopes: ["models:read"] });
    expect((await send(reader, "/v1/keys")).body.error.code).toBe("insufficient_scope");
    const { headers } = await people.allow(owner, { scopes: ["keys:manage"] });
    const rotation = await send(headers, `/v1/keys/${wider.id}/rotate`, "POST", {});
    expect(rotation.body.error.code).toBe("insufficient_scope");
    const creation = await send(headers, "/v1/keys", "POST", { name: "b", scopes: ["chat:write"] });
    expect(creation.body.error.code).toBe("insufficient_scope");
    expect((await send(headers, `/v1/keys/${wider.id}`, "DELETE")).status).toBe(200);
  });
});

test("lets no app of another publisher manage keys, whatever its grant says", async () => {
  const owner = await people.addMember("owner");
  const key = await makeKey(owner.headers);
  const { headers } = await people.allow(owner, { appId: "app_other", scopes: ["keys:manage", "models:read"] });
  expect((await send(headers, "/v1/models")).status).toBe(200);
  const attempts: readonly (readonly [method: string, path: string, body?: unknown])[] = [
    ["GET", "/v1/keys"],
    ["POST", "/v1/keys", { name: "b" }],
    ...onOneKey(key.id),
  ];
  for (const [method, path, body] of attempts) {
    const answer = await send(headers, path, method, body);
    expect([path, answer.status, answer.body.error.code]).toEqual([path, 403, "permission_denied"]);
  }
  // It does not pass for the command line tool either with a token of its own name, or the other way about.
  const { accessToken } = await server.governance.tokens.issueForGrant({
    grant: { id: (await people.allow(owner)).grantId, accountId: people.accountId, environment: "dev" },
    ...{ personId: owner.person.id, appId: "app_other", scopes: ["models:read"], resources: ["/v1"], expiresIn: 60 },
  });
  expect((await send({ authorization: `Bearer ${accessToken}` }, "/v1/models")).status).toBe(401);
});

describe("ownership of stored chats and usage", () => {
  const chat = { model: "upstream-model", store: true, messages: [{ role: "user", content: "Hello" }] };
  const ask = async (headers: Headers) => {
    const { status, body } = await send(headers, "/v1/chat/completions", "POST", chat);
    expect(status).toBe(200);
    return body.id as string;
  };

  test("stores chats as the requesting person's: a member manages the own, an owner all of the account", async () => {
    const [owner, other, member] = [
      await people.addMember("owner"),
      await people.addMember("member"),
      await people.addMember("member"),
    ];
    const ways = await waysOf(member);
    const own: string[] = [];
    for (const headers of ways) own.push(await ask(headers));
    const foreign = [
      await ask(owner.headers),
      await ask(other.headers),
      await ask({ authorization: `Bearer ${server.key}` }),
    ];
    const listed = async (headers: Headers) =>
      (await send(headers, "/v1/chat/completions?limit=100")).body.data.map(({ id }: { id: string }) => id);
    for (const headers of ways) {
      expect((await listed(headers)).sort()).toEqual([...own].sort());
      for (const id of foreign) {
        for (const [method, path, body] of [
          ["GET", "", undefined],
          ["GET", "/messages", undefined],
          ["POST", "", { metadata: { mine: "yes" } }],
          ["DELETE", "", undefined],
        ] as const) {
          expect((await send(headers, `/v1/chat/completions/${id}${path}`, method, body)).status).toBe(404);
        }
      }
    }
    const all = await listed(owner.headers);
    for (const id of [...own, ...foreign]) expect(all).toContain(id);
    // An app reads what it asked itself, of the person who allowed it.
    const app = await people.allow(member, { appId: "app_chat" });
    const asked = await ask(app.headers);
    expect(await listed(app.headers)).toEqual([asked]);
    expect(await listed((await people.allow(other, { appId: "app_chat" })).headers)).toEqual([]);
    expect(await listed(member.headers)).toContain(asked);
    expect((await send(member.headers, `/v1/chat/completions/${own[1]}`, "DELETE")).status).toBe(200);
  });

  test("books requests under the membership or grant, visible by key to its person and to readers of account usage", async () => {
    const [member, other] = [await people.addMember("member"), await people.addMember("member")];
    const app = await people.allow(member, { appId: "app_usage" });
    const login = await people.allow(member);
    for (const { headers } of [member, app, login]) await ask(headers);
    const credential = `${member.membership.id}_dev`;
    const owner = { authorization: `Bearer ${server.key}` };
    expect((await send(other.headers, "/v1/usage?group_by=key,app")).body.data).toEqual([]);
    for (const headers of [member.headers, owner]) {
      const { body } = await send(headers, "/v1/usage?group_by=key,app");
      const rows = body.data.map(({ key, app, requests }: Record<string, unknown>) => [key, app, requests]);
      expect(rows).toContainEqual([credential, null, 1]);
      expect(rows).toContainEqual([app.grantId, "app_usage", 1]);
      expect(rows).toContainEqual([login.grantId, null, 1]);
    }
    // An app sees what it used itself.
    const ofApp = await people.allow(member, { appId: "app_usage" });
    const { body } = await send(ofApp.headers, "/v1/usage");
    expect(body.data.map(({ requests }: Record<string, unknown>) => requests)).toEqual([1]);
    for (const id of [credential, app.grantId, login.grantId]) {
      const own = await send(member.headers, `/v1/keys/${id}/usage`);
      expect(own.body.data.map(({ requests }: Record<string, unknown>) => requests)).toEqual([1]);
      expect((await send(other.headers, `/v1/keys/${id}/usage`)).status).toBe(404);
      expect((await send(owner, `/v1/keys/${id}/usage`)).status).toBe(200);
    }
  });
});
