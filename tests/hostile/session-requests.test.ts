// Requests with a session's cookie: only from pages of this server, and only for what the person may do in an account.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { invalidApiKeyMessage } from "../../src/base/invalid-api-key.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { openServerPeople, type ServerPeople, type SignedInMember } from "../support/server-people.ts";
import { raw } from "./raw-client.ts";

let server: TestServer;
let people: ServerPeople;
let owner: SignedInMember;

beforeAll(async () => {
  server = await startHeadrace({ yaml: "cors:\n  origins: [https://friend.example]\n" });
  people = openServerPeople(server);
  owner = await people.addMember("owner");
});

afterAll(async () => {
  await people.close();
  await server[Symbol.asyncDispose]();
});

interface Answer {
  status: number;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: each test says what must be in it
  body: any;
}

async function send(path: string, headers: Record<string, string>, method = "GET", body?: unknown): Promise<Answer> {
  const response = await fetch(server.url + path, {
    method,
    headers: { ...headers, ...(body === undefined ? {} : { "content-type": "application/json" }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, headers: response.headers, body: await response.json() };
}

const detailOf = (answer: Answer) =>
  server.logged("request").find((line) => line["id"] === answer.headers.get("x-request-id"))?.["detail"];

describe("reading with a session cookie", () => {
  test("accepts a session cookie from our page, a typed address and a program without a site", async () => {
    for (const more of [
      {},
      { "sec-fetch-site": "same-origin" },
      { "sec-fetch-site": "none" },
      { origin: server.url },
    ]) {
      const { status, headers } = await send("/v1/keys", { ...owner.reading, ...(more as Record<string, string>) });
      expect([status, headers.get("cache-control")]).toEqual([200, "no-store"]);
    }
  });

  test.each<[string, Record<string, string>, string]>([
    ["another site", { "sec-fetch-site": "cross-site" }, "sec_fetch_site"],
    ["another port or name of the same site", { "sec-fetch-site": "same-site" }, "sec_fetch_site"],
    ["a site in a word that is none", { "sec-fetch-site": "Same-Origin" }, "sec_fetch_site"],
    ["a foreign origin, where the browser tells no site", { origin: "https://evil.example" }, "origin"],
    ["an origin that CORS is open to", { origin: "https://friend.example" }, "origin"],
    ["an origin that is kept secret", { origin: "null" }, "origin"],
    ["our address by another scheme", { origin: "https://127.0.0.1" }, "origin"],
  ])("refuses a session cookie to %s", async (_who, more, reason) => {
    for (const path of ["/v1/keys", "/v1/models", "/v1/usage"]) {
      const answer = await send(path, { ...owner.reading, ...more });
      expect(answer.status).toBe(403);
      expect(answer.body.error.code).toBe("permission_denied");
      expect(detailOf(answer)).toBe(reason);
      expect(answer.headers.get("access-control-allow-credentials")).toBeNull();
    }
  });

  test("treats HEAD with a session cookie like GET", async () => {
    const head = (more: Record<string, string>) =>
      fetch(`${server.url}/v1/keys`, { method: "HEAD", headers: { ...owner.reading, ...more } });
    expect((await head({})).status).toBe(200);
    expect((await head({ "sec-fetch-site": "cross-site" })).status).toBe(403);
  });
});

describe("changing with a session cookie", () => {
  const changes: readonly [method: string, path: string, body?: unknown][] = [
    ["POST", "/v1/keys", { name: "By a page" }],
    ["PATCH", "/v1/keys/key_none", { name: "Other" }],
    ["DELETE", "/v1/keys/key_none", undefined],
    ["PUT", "/v1/admin/tiers/none", {}],
    ["POST", "/v1/chat/completions", { model: "none", messages: [{ role: "user", content: "x" }] }],
  ];
  const without = (name: string) => Object.fromEntries(Object.entries(owner.headers).filter(([key]) => key !== name));

  test.each(changes)("requires the page's origin and CSRF token for %s %s", async (method, path, body) => {
    const stranger = await people.addMember("owner");
    const wrong: [Record<string, string>, string][] = [
      [without("origin"), "origin"],
      [{ ...owner.headers, origin: "https://evil.example" }, "origin"],
      [{ ...owner.headers, origin: "null" }, "origin"],
      [{ ...owner.headers, origin: server.url.replace("127.0.0.1", "localhost") }, "origin"],
      [{ ...owner.headers, origin: `${server.url}/` }, "origin"],
      [{ ...owner.headers, origin: `${server.url}, ${server.url}` }, "origin"],
      [{ ...owner.headers, "sec-fetch-site": "same-site" }, "sec_fetch_site"],
      [without("x-csrf-token"), "csrf_token"],
      [{ ...owner.headers, "x-csrf-token": "" }, "csrf_token"],
      [{ ...owner.headers, "x-csrf-token": "x".repeat(43) }, "csrf_token"],
      [{ ...owner.headers, "x-csrf-token": stranger.headers["x-csrf-token"] ?? "" }, "csrf_token"],
    ];
    const before = (
      await people.keys.listKeys({ accountId: people.accountId, environment: "dev" }, { after: undefined, limit: 99 })
    ).length;
    for (const [headers, reason] of wrong) {
      const answer = await send(path, headers, method, body);
      expect([answer.status, detailOf(answer)]).toEqual([403, reason]);
    }
    const after = await people.keys.listKeys(
      { accountId: people.accountId, environment: "dev" },
      { after: undefined, limit: 99 },
    );
    expect(after).toHaveLength(before);
    // With both it is the endpoint's to answer.
    const { status, body: answer } = await send(path, owner.headers, method, body);
    expect(status === 403 ? answer.error.code : "passed").not.toBe("permission_denied");
  });

  test("gives a page whose name was rebound to this machine no session", async () => {
    const { host } = new URL(server.url);
    const lines = (name: string) => [
      "POST /v1/keys HTTP/1.1",
      `Host: ${name}`,
      `Origin: http://${name}`,
      `Cookie: ${owner.headers["cookie"]}`,
      `X-CSRF-Token: ${owner.headers["x-csrf-token"]}`,
      "Content-Type: application/json",
      "Content-Length: 12",
      "Connection: close",
      "",
      '{"name":"a"}',
    ];
    const rebound = await raw(server.url, lines("evil.example:80").join("\r\n"));
    expect(rebound.answers[0]?.status).toBe(403);
    expect((await raw(server.url, lines(host).join("\r\n"))).answers[0]?.status).toBe(200);
  });
});

describe("a session cookie beside another credential is ignored", () => {
  test.each<[string, (key: string) => Record<string, string>, number]>([
    ["a good key", (key) => ({ authorization: `Bearer ${key}` }), 200],
    ["a good key in X-API-Key", (key) => ({ "x-api-key": key }), 200],
    ["a wrong key", () => ({ authorization: "Bearer sk_dev_hr_x" }), 401],
    ["an empty Authorization", () => ({ authorization: "" }), 401],
    ["Basic", () => ({ authorization: "Basic eDp5" }), 401],
    ["an empty X-API-Key", () => ({ "x-api-key": "" }), 401],
  ])("%s", async (_what, credential, status) => {
    const foreign = { origin: "https://evil.example", "sec-fetch-site": "cross-site" };
    for (const cookie of [owner.reading, {}]) {
      const headers = { ...(cookie as Record<string, string>), ...foreign, ...credential(server.key) };
      expect((await send("/v1/keys", headers)).status).toBe(status);
    }
    const made = await send("/v1/keys", { ...owner.headers, ...credential(server.key) }, "POST", { name: "By a key" });
    expect(made.status).toBe(status);
    if (status === 200) expect(made.body.created_by).toBe(server.firstKey.record.id);
  });
});

describe("an invalid session", () => {
  const refused = {
    message: invalidApiKeyMessage,
    type: "invalid_request_error",
    code: "invalid_api_key",
  };

  test("answers an unknown token, a truncated one and two session cookies like a wrong key", async () => {
    const { cookie = "" } = owner.reading;
    const [name] = cookie.split("=");
    const attempts = [
      `${name}=${"A".repeat(43)}`,
      `${name}=`,
      cookie.slice(0, -1),
      `${cookie}; ${name}=${"A".repeat(43)}`,
      `__Host-${cookie}`,
      `x${cookie}`,
      `a="${cookie}"`,
    ];
    for (const attempt of attempts) {
      const { status, body } = await send("/v1/keys", { ...owner.headers, cookie: attempt });
      expect([status, body.error]).toEqual([401, refused]);
    }
    expect((await send("/v1/keys", { cookie: `theme=dark; ${cookie}; b=c` })).status).toBe(200);
  });

  test("ends a session at once without ending the person's others", async () => {
    const member = await people.addMember("admin");
    const other = await people.startSession(member.person);
    expect((await send("/v1/keys", member.reading)).status).toBe(200);
    await people.write(() =>
      people.sessionStore.end(member.sessionId, member.person.id, people.event("person.updated")),
    );
    const { status, body } = await send("/v1/keys", member.reading);
    expect([status, body.error]).toEqual([401, refused]);
    expect((await send("/v1/keys", other.reading)).status).toBe(200);
  });

  test("writes no session token to the log", async () => {
    const [, token = "?"] = (owner.reading["cookie"] ?? "").split("=");
    expect(server.logText()).not.toContain(token);
    expect(server.logText()).not.toContain(owner.headers["x-csrf-token"] ?? "?");
  });
});

describe("the account and environment of a session", () => {
  test("refuses a session another account by name like an unknown one", async () => {
    const elsewhere = await people.addAccount();
    const stranger = await people.addMember("owner", { account: elsewhere });
    const attempt = (account: string) => send("/v1/keys", { ...stranger.reading, "headrace-account": account });
    const [foreign, none] = [await attempt(people.accountId), await attempt("acct_none")];
    expect([foreign.status, foreign.body.error]).toEqual([403, none.body.error]);
    expect((await attempt("")).status).toBe(403);
    expect((await attempt(elsewhere)).status).toBe(200);

    await people.addMembership(stranger.person, "member");
    const made = await send("/v1/keys", { ...stranger.headers, "headrace-account": people.accountId }, "POST", {
      name: "Here",
    });
    expect(made.status).toBe(200);
    const record = (await people.keys.findChainById(made.body.id))?.keys[0];
    expect([record?.accountId, record?.personId]).toEqual([people.accountId, stranger.person.id]);
  });

  test("creates and lists keys in the named environment of a session", async () => {
    const made = await send("/v1/keys", { ...owner.headers, "headrace-environment": "test" }, "POST", { name: "T" });
    expect([made.body.environment, made.body.prefix]).toEqual(["test", "sk_test_hr_"]);
    expect((await send(`/v1/keys/${made.body.id}`, owner.reading)).status).toBe(404);
    const there = { ...owner.reading, "headrace-environment": "test" };
    expect((await send(`/v1/keys/${made.body.id}`, there)).status).toBe(200);
    for (const wrong of ["prod", "", "DEV", "test, live"]) {
      const { status, body } = await send("/v1/keys", { ...owner.reading, "headrace-environment": wrong });
      expect([status, body.error.message]).toEqual([400, "Headrace-Environment: must be one of live, test, dev."]);
    }
  });

  test("reports a suspended account to its members, who may use another, and not to its keys", async () => {
    const closed = await people.addAccount("suspended");
    const member = await people.addMember("owner", { account: closed });
    const { status, body } = await send("/v1/keys", member.reading);
    expect([status, body.error.code]).toEqual([403, "permission_denied"]);
    expect(body.error.message).toContain("is suspended");
    await people.addMembership(member.person, "owner");
    expect((await send("/v1/keys", { ...member.reading, "headrace-account": people.accountId })).status).toBe(200);
    const login = await people.allow(member);
    expect((await send("/v1/keys", login.headers)).status).toBe(401);
  });

  test("says so to a signed-in person without a membership", async () => {
    const person = await people.addPerson("nobody", true);
    const { reading } = await people.startSession(person, null);
    for (const path of ["/v1/keys", "/v1/admin/accounts"]) {
      const { status, body } = await send(path, reading);
      expect([status, body.error.message]).toEqual([
        403,
        "You are not a member of an account. Ask an account owner for an invitation.",
      ]);
    }
  });
});

describe("an operator", () => {
  test("lets an operator act by a browser session, not by a login, until the role is withdrawn", async () => {
    const operator = await people.addMember("member", { isOperator: true });
    const login = await people.allow(operator);
    expect((await send("/v1/admin/accounts", operator.reading)).status).toBe(200);
    expect((await send("/v1/admin/accounts", login.headers)).body.error.code).toBe("insufficient_scope");
    expect((await send("/v1/admin/accounts", owner.reading)).body.error.code).toBe("insufficient_scope");
    const made = await send("/v1/admin/accounts", operator.headers, "POST", { name: "Made by a person" });
    expect(made.status).toBe(200);
    const unsafe = { ...operator.headers, origin: "https://evil.example" };
    expect((await send("/v1/admin/accounts", unsafe, "POST", { name: "No" })).status).toBe(403);
    const key = await send(`/v1/admin/accounts/${made.body.id}/keys`, operator.headers, "POST", {
      name: "First",
      environment: "live",
    });
    expect(key.body.created_by).toBe(operator.person.id);
    const { body: log } = await send(`/v1/admin/audit?target=${key.body.id}`, operator.reading);
    expect(log.data[0].actor).toEqual({ type: "person", id: operator.person.id });

    await people.addPerson("another operator", true);
    const change = { setOperator: { personId: operator.person.id, isOperator: false } };
    expect(await people.write(() => people.people.apply(change, people.event("person.updated")))).toBe("done");
    expect((await send("/v1/admin/accounts", operator.reading)).body.error.code).toBe("insufficient_scope");
  });

  test("lets an operator end members and apps as such, not as keys", async () => {
    const operator = await people.addMember("owner", { isOperator: true });
    const { grantId } = await people.allow(owner);
    for (const id of [`${owner.membership.id}_dev`, grantId]) {
      expect((await send(`/v1/admin/keys/${id}`, operator.headers, "DELETE")).status).toBe(404);
      expect((await send(`/v1/keys/${id}`, operator.headers, "DELETE")).status).toBe(404);
    }
    expect((await send("/v1/keys", owner.reading)).status).toBe(200);
  });
});
