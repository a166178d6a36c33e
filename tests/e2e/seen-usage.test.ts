// What members see of an account's usage, requests, conversations and statistics: their own, unless an owner allowed more.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import openapi from "../../docs/reference/openapi.json";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { registerApp } from "../support/oauth-apps.ts";
import { chatScript, json, type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";
import { openServerPeople, type ServerPeople, type SignedInMember } from "../support/server-people.ts";

type Headers = Record<string, string>;

/** Whoever uses something; all of it is marked by `mark`: models, tags, metadata and what is said. */
interface User {
  mark: string;
  headers: Headers;
  requestId: string;
  chatId: string;
  responseId: string;
  conversationId: string;
  fileId: string;
  batchId: string;
  keyId: string;
}

const marks = ["m-account", "m-ada", "m-bob", "m-eve"] as const;

let upstream: ScriptedUpstream;
let server: TestServer;
let people: ServerPeople;
let users: Record<(typeof marks)[number], User>;
/** Who looks: each sees what these users did, and no more. */
let viewers: readonly { name: string; headers: Headers; sees: readonly (typeof marks)[number][] }[];
/** What the account's app was used for by each. */
let appTokens: Record<"m-ada" | "m-bob", Headers>;
let appId: string;
let ada: SignedInMember;
let owner: SignedInMember;

beforeAll(async () => {
  upstream = await startUpstream();
  const model = (mark: string) =>
    `  - { id: ${mark}, environments: [dev], price: { input: 1000, output: 2000 }, deployments: [{ upstream: up, model: ${mark} }] }\n`;
  server = await startHeadrace({ yaml: upstreamYaml(upstream, `models:\n${marks.map(model).join("")}`) });
  people = openServerPeople(server);
  owner = await people.addMember("owner");
  const admin = await people.addMember("admin");
  ada = await people.addMember("member");
  const bob = await people.addMember("member");
  const eve = await people.addMember("member");
  appId = (await registerApp(server, { name: "Notes", scopes: ["chat:read", "chat:write", "usage:read"] })).id;
  const logins = { ada: await people.allow(ada), bob: await people.allow(bob), eve: await people.allow(eve) };
  const apps = { "m-ada": await people.allow(ada, { appId }), "m-bob": await people.allow(bob, { appId }) };
  appTokens = { "m-ada": apps["m-ada"].headers, "m-bob": apps["m-bob"].headers };
  for (const mark of ["m-ada", "m-bob"] as const) await chat(mark, appTokens[mark]);
  const account = { authorization: `Bearer ${server.key}` };
  users = {
    "m-account": await use("m-account", account),
    "m-ada": await use("m-ada", logins.ada.headers),
    "m-bob": await use("m-bob", logins.bob.headers),
    "m-eve": await use("m-eve", logins.eve.headers),
  };
  expect((await letSee(eve, true, owner)).status).toBe(200);
  const keyOf = async (login: Headers) => ({ authorization: `Bearer ${(await makeKey(login)).key}` });
  viewers = [
    { name: "a member at the dashboard", headers: ada.reading, sees: ["m-ada"] },
    { name: "a member with headrace login", headers: logins.ada.headers, sees: ["m-ada"] },
    { name: "a member's key", headers: await keyOf(logins.ada.headers), sees: ["m-ada"] },
    { name: "a key that a member's key made", headers: await keyOf(await keyOf(logins.ada.headers)), sees: ["m-ada"] },
    { name: "an owner at the dashboard", headers: owner.reading, sees: marks },
    { name: "an admin at the dashboard", headers: admin.reading, sees: marks },
    { name: "a key of the account", headers: account, sees: marks },
    { name: "a member who sees all, at the dashboard", headers: eve.reading, sees: marks },
    { name: "a member who sees all, with headrace login", headers: logins.eve.headers, sees: marks },
    { name: "a key of a member who sees all", headers: await keyOf(logins.eve.headers), sees: marks },
  ];
}, 60_000);

afterAll(async () => {
  people.close();
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

async function makeKey(headers: Headers, more: object = {}): Promise<{ key: string; id: string }> {
  const scopes = ["chat:read", "chat:write", "models:read", "usage:read", "keys:manage"];
  const made = await server.request("/v1/keys", { headers, body: { name: "Key", scopes, ...more } });
  expect(made.status).toBe(200);
  return (await made.json()) as { key: string; id: string };
}

async function chat(mark: string, headers: Headers): Promise<{ requestId: string; chatId: string }> {
  upstream.script(chatScript());
  const answer = await server.request("/v1/chat/completions", {
    headers: { ...headers, "x-headrace-tags": `tag-${mark}` },
    body: { model: mark, store: true, metadata: { of: mark }, messages: [{ role: "user", content: `I am ${mark}` }] },
  });
  expect(answer.status).toBe(200);
  const { id } = (await answer.json()) as { id: string };
  return { requestId: answer.headers.get("x-request-id") ?? "", chatId: id };
}

/** Does all that leaves something behind: chats, responses, conversations, failures, refusals. */
async function use(mark: string, headers: Headers): Promise<User> {
  const post = async (path: string, body: object, by = headers) => {
    const answer = await server.request(path, { headers: by, body });
    return { status: answer.status, body: (await answer.json()) as { id: string } };
  };
  const { requestId, chatId } = await chat(mark, headers);
  const response = await post("/v1/responses", { model: mark, input: `I am ${mark}`, store: true });
  expect(response.status).toBe(200);
  const item = { type: "message", role: "user", content: `I am ${mark}` };
  const conversation = await post("/v1/conversations", { items: [item], metadata: { of: mark } });
  expect(conversation.status).toBe(200);
  const form = new FormData();
  form.set("purpose", "batch");
  // A line that is wrong: nothing of it is used.
  form.set("file", new File([`"${mark}"`], `${mark}.jsonl`));
  const uploaded = await fetch(`${server.url}/v1/files`, { method: "POST", headers, body: form });
  expect(uploaded.status).toBe(200);
  const { id: fileId } = (await uploaded.json()) as { id: string };
  const batch = await post("/v1/batches", {
    ...{ input_file_id: fileId, endpoint: "/v1/chat/completions", completion_window: "24h", metadata: { of: mark } },
  });
  expect(batch.status).toBe(200);
  const key = await makeKey(headers, { name: mark, rate_limit: 1, rate_limit_window: 3_600 });
  const byKey = { authorization: `Bearer ${key.key}` };
  const messages = [{ role: "user", content: `I am ${mark}` }];
  expect((await post("/v1/chat/completions", { model: mark, messages }, byKey)).status).toBe(200);
  expect((await post("/v1/chat/completions", { model: mark, messages }, byKey)).status).toBe(429);
  expect((await post("/v1/chat/completions", { model: `none-${mark}`, messages })).status).toBe(404);
  upstream.script((_request, res) => json(res, 400, { error: { message: `no ${mark}` } }));
  expect((await post("/v1/chat/completions", { model: mark, messages })).status).toBe(400);
  return {
    ...{ mark, headers, requestId, chatId, responseId: response.body.id, conversationId: conversation.body.id },
    ...{ fileId, batchId: batch.body.id },
    keyId: key.id,
  };
}

/** What an owner says of a member, by whoever tries. A session goes without the key that other requests have. */
function letSee(member: SignedInMember, sees: boolean, by: SignedInMember): Promise<Response> {
  return fetch(`${server.url}/v1/members/${member.membership.id}`, {
    method: "PATCH",
    headers: { ...by.headers, "content-type": "application/json" },
    body: JSON.stringify({ sees_all_usage: sees }),
  });
}

async function read(path: string, headers: Headers): Promise<{ status: number; text: string }> {
  const response = await fetch(server.url + path, { headers });
  return { status: response.status, text: await response.text() };
}

const others = ({ sees }: { sees: readonly string[] }) => marks.filter((mark) => !sees.includes(mark));

/** For the names of paths. */
const nobody: User = {
  ...{ mark: "mark", headers: {}, requestId: "{id}", chatId: "{id}", responseId: "{id}", conversationId: "{id}" },
  ...{ fileId: "{id}", batchId: "{id}" },
  keyId: "{id}",
};

/** Paths that list what several did: whoever sees it finds the marks of all, and a member that of the own alone. */
const lists = [
  "/v1/usage?group_by=model&start=2020-01-01",
  "/v1/usage?group_by=model,key,app,tag&bucket=month",
  "/v1/usage?group_by=tag&bucket=hour",
  "/v1/requests?limit=200",
  "/v1/requests?outcome=failed",
  "/v1/requests?outcome=refused",
  "/v1/requests?stream=false",
  "/v1/overview?group_by=model",
  "/v1/overview?group_by=model&range=7d",
  "/v1/overview?group_by=model&range=30d",
  "/v1/refusals",
  "/v1/statement?group_by=model",
  "/v1/statement?group_by=key,model,tag",
  "/v1/statement?group_by=person,model",
];

/** Paths that name what one did, or filter by it. */
const ofOne: readonly ((user: User) => string)[] = [
  ({ keyId }) => `/v1/usage?group_by=model&key=${keyId}`,
  ({ mark }) => `/v1/usage?group_by=model&model=${mark}`,
  ({ mark }) => `/v1/usage?group_by=model,tag&tag=tag-${mark}`,
  ({ keyId }) => `/v1/keys/${keyId}/usage?group_by=model`,
  ({ keyId }) => `/v1/requests?key=${keyId}`,
  ({ mark }) => `/v1/requests?model=${mark}`,
  ({ mark }) => `/v1/requests?tag=tag-${mark}`,
  ({ mark }) => `/v1/requests?model=none-${mark}&outcome=refused`,
  ({ requestId }) => `/v1/requests/${requestId}`,
  ({ keyId }) => `/v1/statement?group_by=model&key=${keyId}`,
  ({ mark }) => `/v1/statement?group_by=model,tag&tag=tag-${mark}`,
];

/** What was said is the person's own, whoever sees its figures. */
const conversations: readonly ((user: User) => string)[] = [
  ({ mark }) => `/v1/chat/completions?model=${mark}`,
  ({ chatId }) => `/v1/chat/completions/${chatId}`,
  ({ chatId }) => `/v1/chat/completions/${chatId}/messages`,
  ({ responseId }) => `/v1/responses/${responseId}`,
  ({ responseId }) => `/v1/responses/${responseId}/input_items`,
  ({ conversationId }) => `/v1/conversations/${conversationId}`,
  ({ conversationId }) => `/v1/conversations/${conversationId}/items`,
  () => "/v1/files",
  ({ fileId }) => `/v1/files/${fileId}`,
  ({ fileId }) => `/v1/files/${fileId}/content`,
  () => "/v1/batches",
  ({ batchId }) => `/v1/batches/${batchId}`,
];

/** Routes that show nothing of what somebody used, or that are not for members at all. */
const elsewhere = [
  // What holds for the caller itself, names and settings of what there is to use, and of oneself; what is one's own alone.
  ...[
    "/v1/models",
    "/v1/models/{model}",
    "/v1/model-status",
    "/v1/tiers",
    "/v1/limits",
    "/v1/prices",
    "/v1/session",
    "/v1/sessions",
  ],
  ...[
    "/v1/session/notices",
    "/v1/passkeys",
    "/v1/authorizations",
    "/v1/authorizations/{id}",
    "/v1/tools/connections",
    "/v1/apps",
    "/v1/apps/{id}",
    "/v1/keys",
    "/v1/keys/{id}",
    "/v1/keys/{id}/rotation",
    "/v1/account/key-rotation",
    "/v1/limit-requests",
  ],
  // Sessions of tools: each is of whoever began it.
  ...["/mcp", "/mcp/{server}"],
  // WebSockets: each is one conversation.
  ...["/v1/responses", "/v1/realtime"],
  // Batches, found as all others are, in another form.
  ...["/v1/messages/batches", "/v1/messages/batches/{id}", "/v1/messages/batches/{id}/results"],
  // An item of a conversation, which is found first.
  "/v1/conversations/{id}/items/{item}",
  ...["/healthz", "/health", "/v1/health", "/ping", "/readyz", "/openapi.json", "/docs/api"],
  ...["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource/mcp/{server}"],
  ...["/.well-known/jwks.json", "/.well-known/oauth-authorization-server", "/.well-known/oauth-protected-resource/v1"],
  "/.well-known/oauth-client/{server}",
];
/** For owners and admins, who see all of the account. */
const forManagers = [
  ...["/v1/webhooks", "/v1/members", "/v1/invitations", "/v1/audit"],
  ...["/v1/account/end-users", "/v1/account/end-users/{id}"],
];

test("covers every GET route, so that a new one declares its visibility", () => {
  const template = (path: string) => new URL(path, "http://localhost").pathname;
  const looked = [...lists, ...[...ofOne, ...conversations].map((path) => path(nobody))].map((path) =>
    decodeURIComponent(template(path)),
  );
  const known = new Set([...looked, ...elsewhere, ...forManagers, "/v1/apps/{id}/usage", "/v1/account"]);
  const isKnown = (path: string) =>
    known.has(path) ||
    path.startsWith("/v1/admin/") ||
    path.startsWith("/v1/webhooks/") ||
    path.startsWith("/v1/members/");
  const readable = Object.entries(openapi.paths).filter(([, methods]) => "get" in methods);
  expect(readable.map(([path]) => path).filter((path) => !isKnown(path))).toEqual([]);
});

describe("visibility of usage and requests", () => {
  test.each(lists)("lists in %s only the caller's visible records, as JSON and CSV", async (path) => {
    for (const viewer of viewers) {
      for (const accept of ["application/json", "text/csv"]) {
        // Refused and failed requests are written a moment later.
        const { text } = await until(async () => {
          const answer = await read(path, { ...viewer.headers, accept });
          expect(answer.status).toBe(200);
          return viewer.sees.every((mark) => answer.text.includes(mark)) ? answer : undefined;
        }, `${path}, ${accept}, shows ${viewer.sees} to ${viewer.name}`);
        for (const mark of others(viewer)) expect(`${viewer.name}: ${text}`).not.toContain(mark);
      }
    }
  });

  test("limits totals without groups to the caller's visible records", async () => {
    const requests = async (query: string, headers: Headers) => {
      const { data } = JSON.parse((await read(`/v1/usage?bucket=month&${query}`, headers)).text) as {
        data: { requests: number }[];
      };
      return data.reduce((sum, row) => sum + row.requests, 0);
    };
    for (const { name, headers, sees } of viewers) {
      // A chat, a response, one by a key and one that failed; and by the app of two.
      const expected = sees.length * 4 + sees.filter((mark) => mark in appTokens).length;
      expect([name, await requests("", headers)]).toEqual([name, expected]);
      const { usage } = JSON.parse((await read("/v1/overview", headers)).text) as {
        usage: { sum: { requests: number } };
      };
      expect([name, usage.sum.requests]).toEqual([name, expected]);
      for (const query of ["", "?group_by=tag", "?group_by=person"]) {
        const { total } = JSON.parse((await read(`/v1/statement${query}`, headers)).text) as {
          total: { requests: number };
        };
        expect([name, query, total.requests]).toEqual([name, query, expected]);
      }
    }
  });

  test.each(ofOne.map((path) => [path(nobody), path] as const))(
    "hides another owner's record in %s like a missing one",
    async (_, path) => {
      for (const viewer of viewers) {
        for (const mark of marks) {
          const { status, text } = await read(path(users[mark]), viewer.headers);
          const seen = viewer.sees.includes(mark);
          // Members manage their own keys alone, also who sees all usage: the report by `key` is for them.
          if (seen && status !== 404) expect(`${viewer.name}: ${text}`).toContain(mark);
          if (!seen)
            expect(`${viewer.name}: ${text.replace(/"message":"[^"]*"|"of":\{[^}]*\}/, "")}`).not.toContain(mark);
          for (const other of others(viewer)) {
            if (other !== mark) expect(`${viewer.name}: ${text}`).not.toContain(other);
          }
        }
      }
    },
  );

  test("answers another owner's request id like an unknown one", async () => {
    const never = await read(`/v1/requests/${Bun.randomUUIDv7()}`, ada.reading);
    const refused = await read(`/v1/requests/${users["m-bob"].requestId}`, ada.reading);
    expect(refused).toEqual(never);
    expect(refused.status).toBe(404);
  });

  test("names no other member in a member's statement, and refuses another's statement", async () => {
    for (const { name, headers, sees } of viewers.filter((one) => one.sees.length === 1)) {
      const { text } = await read("/v1/statement?group_by=person,key", headers);
      expect(name + text).not.toContain(owner.person.id);
      expect(sees).toEqual(["m-ada"]);
      const refused = await read(`/v1/statement?person=${owner.person.id}`, headers);
      expect([name, refused.status]).toEqual([name, 400]);
    }
    // Who sees all figures is told no names that only owners and admins know.
    const named = async (headers: Headers) => {
      const { text } = await read("/v1/statement?group_by=person", headers);
      const { lines } = JSON.parse(text) as { lines: { person: string | null; person_name: string | null }[] };
      return lines.find(({ person }) => person === ada.person.id)?.person_name;
    };
    expect(await named(users["m-eve"].headers)).toBeNull();
    expect(await named(ada.reading)).toBe(ada.person.name);
    expect(await named(owner.reading)).toBe(ada.person.name);
  });

  test("does not page into another owner's list", async () => {
    const { next } = JSON.parse((await read("/v1/requests?limit=1", owner.reading)).text) as { next: string };
    const { text } = await read(`/v1/requests?limit=200&cursor=${encodeURIComponent(next)}`, ada.reading);
    for (const mark of marks.filter((one) => one !== "m-ada")) expect(text).not.toContain(mark);
  });

  test("shows an app only its own usage for the person who allowed it", async () => {
    for (const [mark, headers] of Object.entries(appTokens)) {
      for (const path of [
        "/v1/usage?group_by=model",
        "/v1/statement?group_by=model",
        "/v1/requests",
        "/v1/overview?group_by=model",
        "/v1/refusals",
      ]) {
        const { status, text } = await read(path, headers);
        expect(status).toBe(200);
        for (const other of marks.filter((one) => one !== mark)) expect(text).not.toContain(other);
        if (!path.includes("refusals")) expect(text).toContain(mark);
      }
    }
  });

  test("shows members only their own part of an account's unlimited usage", async () => {
    interface Answer {
      quota: { usage_of: string; tokens: { used: number } };
    }
    const quota = async (headers: Headers) => (JSON.parse((await read("/v1/account", headers)).text) as Answer).quota;
    const used = async (headers: Headers) => (await quota(headers)).tokens.used;
    const [all, own] = [await used(owner.reading), await used(ada.reading)];
    expect([(await quota(owner.reading)).usage_of, (await quota(ada.reading)).usage_of]).toEqual(["account", "caller"]);
    expect(own).toBeGreaterThan(0);
    expect(own).toBeLessThan(all);
    for (const { name, headers, sees } of viewers) {
      expect([name, await used(headers)]).toEqual([name, sees.length === marks.length ? all : own]);
    }
  });
});

describe("visibility of stored content", () => {
  test.each(conversations.map((path) => [path(nobody), path] as const))(
    "finds %s only for the member who wrote it, even against a role that sees all usage",
    async (_, path) => {
      const readers = [
        { headers: ada.reading, mark: "m-ada" },
        { headers: users["m-ada"].headers, mark: "m-ada" },
        // Who sees all figures sees no more of what was said.
        { headers: users["m-eve"].headers, mark: "m-eve" },
      ];
      for (const { headers, mark } of readers) {
        for (const user of Object.values(users)) {
          const { text } = await read(path(user), headers);
          const shown = text.replaceAll(/"message":"[^"]*"/g, "");
          if (user.mark === mark) expect(text).toContain(mark);
          else expect(shown).not.toContain(`I am ${user.mark}`);
          if (user.mark !== mark && !path(user).includes("?model=")) expect(shown).not.toContain(user.mark);
        }
      }
    },
  );
});

test("keeps owner and admin pages from members, whatever usage they see", async () => {
  const paths = Object.entries(openapi.paths)
    .filter(([path, methods]) => "get" in methods && (path.startsWith("/v1/admin/") || forManagers.includes(path)))
    .map(([path]) => path.replaceAll(/\{\w+\}/g, "x"));
  for (const path of [...paths, `/v1/apps/${appId}/usage`]) {
    for (const { headers } of [ada, users["m-eve"]].map((who) => ({
      headers: "reading" in who ? who.reading : who.headers,
    }))) {
      expect([path, (await read(path, headers)).status]).toEqual([path, path.includes("/apps/") ? 404 : 403]);
    }
  }
});

test("lets only an owner grant and withdraw the view of others' usage, at once", async () => {
  const admin = await people.addMember("admin");
  const someone = await people.addMember("member");
  const change = (by: SignedInMember, sees: boolean) => letSee(someone, sees, by);
  expect((await change(admin, true)).status).toBe(403);
  expect((await change(someone, true)).status).toBe(403);
  const sees = async () => (await read("/v1/usage?group_by=model", someone.reading)).text.includes("m-bob");
  expect(await sees()).toBe(false);
  expect(await (await change(owner, true)).json()).toMatchObject({ role: "member", sees_all_usage: true });
  expect(await sees()).toBe(true);
  expect((await change(owner, false)).status).toBe(200);
  expect(await sees()).toBe(false);
  const { text } = await read("/v1/audit?limit=5", owner.reading);
  expect(text).toContain('"sees_all_usage":{"before":true,"after":false}');
});

test("ends a member's view of others' usage with the role, and lets it be granted again", async () => {
  const someone = await people.addMember("member");
  const change = async (body: object) => {
    const answer = await fetch(`${server.url}/v1/members/${someone.membership.id}`, {
      method: "PATCH",
      headers: { ...owner.headers, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return answer.json();
  };
  expect(await change({ sees_all_usage: true })).toMatchObject({ sees_all_usage: true });
  expect(await change({ role: "admin" })).toMatchObject({ role: "admin", sees_all_usage: false });
  expect(await change({ role: "member" })).toMatchObject({ role: "member", sees_all_usage: false });
  expect((await read("/v1/usage?group_by=model", someone.reading)).text).not.toContain("m-bob");
  await change({ role: "admin" });
  expect(await change({ role: "member", sees_all_usage: true })).toMatchObject({ sees_all_usage: true });
  expect((await read("/v1/usage?group_by=model", someone.reading)).text).toContain("m-bob");
});
