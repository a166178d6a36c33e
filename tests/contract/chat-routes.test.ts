// The endpoints for stored chats over a real database: shapes, errors that name the field, who sees what.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { NewChat } from "../../src/domain/models/stored-chat.ts";
import type { Principal } from "../../src/domain/principal.ts";
import { chatRoutes } from "../../src/http/api/chat-routes.ts";
import type { ScopedRoute } from "../../src/http/exchange/route.ts";
import { MemoryLimits } from "../../src/limits/memory/memory-limits.ts";
import { Throttle } from "../../src/policy/throttle.ts";
import { type Database, openDatabase } from "../../src/storage/sql/database.ts";
import { SqlChatStore } from "../../src/storage/tables/chats/chat-store.ts";
import { ContentQueue } from "../../src/storage/tables/chats/content-queue.ts";
import { deletedChat, storedChat, storedMessage } from "../../src/wire/stored-chats.ts";
import { exchangeFor, incoming, responseOf } from "../support/exchange.ts";
import { withinMs } from "../support/long.ts";
import { accountFor, principalFor } from "../support/principal.ts";

const list = "/v1/chat/completions";
const silent = { info() {}, warn() {}, error() {} };
let nowSeconds: number;
let directory: string;
let db: Database;
let queue: ContentQueue<NewChat>;
let routes: ScopedRoute[];

const clock = { nowSeconds: () => nowSeconds, monotonicMs: () => performance.now() };

beforeEach(async () => {
  nowSeconds = 1_800_000_000;
  directory = mkdtempSync(join(tmpdir(), "headrace-chat-routes-"));
  db = await openDatabase(join(directory, "headrace.db"));
  const chats = new SqlChatStore(db);
  queue = new ContentQueue({ what: "chat", store: chats, log: silent, retentionDays: () => 30 });
  routes = chatRoutes({
    chats,
    chatWriter: queue,
    clock,
    throttle: new Throttle(new MemoryLimits({ clock, ledger: { readTotals: async () => {} } })),
    requestLimits: () => ({ bodyBytes: 10_000, depth: 8 }),
  });
});

afterEach(async () => {
  await queue.close();
  await db.close();
  rmSync(directory, { recursive: true, force: true });
});

type Json = Record<string, unknown>;
type Who = Pick<Principal, "environment" | "appId"> & { account: string };
const me: Who = { account: "acct_1", environment: "live", appId: null };

/** What the server does with a route, but for keys: the principal is given. */
async function call(
  method: string,
  target: string,
  body?: unknown,
  who: Who = me,
): Promise<{ status: number; body: Json }> {
  const [path = ""] = target.split("?");
  const parts = path.slice(list.length).split("/").filter(Boolean);
  const pattern = [list, ...(parts.length > 0 ? [":id"] : []), ...parts.slice(1)].join("/");
  const route = routes.find((candidate) => candidate.method === method && candidate.path === pattern);
  const req = incoming({ method, target, body });
  const exchange = exchangeFor(req, { params: { id: parts[0] ?? "" } });
  const { environment, appId } = who;
  const principal = principalFor({ environment, appId, account: accountFor({ id: who.account }) });
  const response = await responseOf(() => {
    if (!route) throw new Error(`no route ${method} ${pattern}`);
    return route.handle(exchange, principal);
  });
  return { status: response.status, body: (await response.json()) as Json };
}

function store(id: string, more: Partial<NewChat> = {}): void {
  const completion = {
    id,
    object: "chat.completion",
    created: nowSeconds,
    model: "m",
    choices: [{ index: 0, message: { role: "assistant", content: "Hello" }, finish_reason: "stop" }],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  };
  const chat: NewChat = {
    id,
    accountId: "acct_1",
    environment: "live",
    keyId: "key_1",
    appId: null,
    personId: null,
    model: "m",
    createdAt: nowSeconds,
    expiresAt: nowSeconds + 86_400,
    metadata: {},
    parameters: {},
    completion,
    messages: [{ role: "user", content: "Hi" }],
    ...more,
  };
  queue.add(chat, 1_000);
}

function idsOf({ body }: { body: Json }): unknown[] {
  return (body["data"] as Json[]).map(({ id }) => id);
}

async function refusal(method: string, target: string, body?: unknown, who?: Who): Promise<string> {
  const answer = await call(method, target, body, who);
  const { code, message } = answer.body["error"] as { code: string; message: string };
  return `${answer.status} ${code} ${message}`;
}

test("requires chat:read on every stored chat route", () => {
  expect(routes.map(({ method, path, access }) => `${method} ${path} ${access}`)).toEqual([
    `GET ${list} chat:read`,
    `GET ${list}/:id chat:read`,
    `POST ${list}/:id chat:read`,
    `DELETE ${list}/:id chat:read`,
    `GET ${list}/:id/messages chat:read`,
  ]);
});

test("shows a search's results so far, and continues after last_id however few there are", async () => {
  for (let i = 0; i < 1_010; i++) {
    store(`c${String(i).padStart(4, "0")}`, { messages: [{ role: "user", content: i === 1_005 ? "A Mill" : "Hi" }] });
    // The queue holds no more than a thousand.
    if (i === 500) await queue.flush();
  }
  const first = await call("GET", `${list}?search=mill`);
  expect(first.body).toEqual({ object: "list", data: [], first_id: null, last_id: "c0999", has_more: true });
  const second = await call("GET", `${list}?search=mill&after=${first.body["last_id"]}`);
  expect([idsOf(second), second.body["last_id"], second.body["has_more"]]).toEqual([["c1005"], "c1005", false]);
  const must = "search: must be 1 to 200 characters, in any case, that a message or the answer contains (got";
  expect(await refusal("GET", `${list}?search=`)).toStartWith(`400 invalid_request ${must}`);
  expect(await refusal("GET", `${list}?search=${"x".repeat(201)}`)).toStartWith(`400 invalid_request ${must}`);
});

describe("a stored chat", () => {
  test("returns a stored chat as its completion with metadata, request id and parameters, and null for absent ones", async () => {
    store("chatcmpl-0190", { metadata: { topic: "t" }, parameters: { temperature: 0.5, user: "u", max_tokens: 9 } });
    const { status, body } = await call("GET", `${list}/chatcmpl-0190`);
    expect(status).toBe(200);
    expect(body).toEqual({
      id: "chatcmpl-0190",
      object: "chat.completion",
      created: nowSeconds,
      model: "m",
      choices: [{ index: 0, message: { role: "assistant", content: "Hello" }, finish_reason: "stop" }],
      usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
      request_id: "req_0190",
      metadata: { topic: "t" },
      input_user: "u",
      temperature: 0.5,
      max_tokens: 9,
      top_p: null,
      presence_penalty: null,
      frequency_penalty: null,
      seed: null,
      tools: null,
      tool_choice: null,
      response_format: null,
      service_tier: null,
    });
    expect(storedChat.safeParse(body).error).toBeUndefined();
  });

  test("does not let parameters replace a stored chat's own members", async () => {
    store("a", { parameters: { id: "b", object: "x", choices: [], usage: 1, metadata: 1, request_id: "req_b" } });
    expect((await call("GET", `${list}/a`)).body).toMatchObject({
      id: "a",
      object: "chat.completion",
      choices: [{ index: 0 }],
      request_id: "a",
      metadata: {},
    });
  });

  test("answers the same 404 on every route for an unknown, expired, deleted or foreign chat", async () => {
    store("expired", { expiresAt: nowSeconds });
    store("deleted");
    store("foreign", { accountId: "acct_2" });
    store("elsewhere", { environment: "test" });
    await call("DELETE", `${list}/deleted`);
    for (const id of ["unknown", "expired", "deleted", "foreign", "elsewhere"]) {
      const said = `404 not_found There is no stored chat completion \`${id}\`.`;
      expect(await refusal("GET", `${list}/${id}`)).toStartWith(said);
      expect(await refusal("GET", `${list}/${id}/messages`)).toStartWith(said);
      expect(await refusal("POST", `${list}/${id}`, { metadata: {} })).toStartWith(said);
      expect(await refusal("DELETE", `${list}/${id}`)).toStartWith(said);
    }
    store("of-key");
    expect(await refusal("GET", `${list}/of-key`, undefined, { ...me, appId: "app_1" })).toStartWith("404 not_found");
  });

  test("answers a chat's deletion as clients expect", async () => {
    store("a");
    const { body } = await call("DELETE", `${list}/a`);
    expect(body).toEqual({ id: "a", object: "chat.completion.deleted", deleted: true });
    expect(deletedChat.safeParse(body).error).toBeUndefined();
    expect(idsOf(await call("GET", list))).toEqual([]);
  });
});

describe("metadata of stored chats", () => {
  test("replaces chat metadata as a whole, and removes it with null", async () => {
    store("a", { metadata: { old: "1" } });
    expect((await call("POST", `${list}/a`, { metadata: { new: "2" } })).body).toMatchObject({
      id: "a",
      metadata: { new: "2" },
    });
    expect((await call("POST", `${list}/a`, { metadata: null })).body["metadata"]).toEqual({});
    expect((await call("GET", `${list}/a`)).body["metadata"]).toEqual({});
  });

  test("refuses chat metadata beyond the limits by field, without its value", async () => {
    store("a");
    const update = (body: unknown) => refusal("POST", `${list}/a`, body);
    const many = Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`k${i}`, "v"]));
    expect(await update({})).toBe("400 invalid_request metadata: is required and must be an object, or null.");
    expect(await update({ metadata: [] })).toStartWith("400 invalid_request metadata: must be an object");
    expect(await update({ metadata: many })).toBe("400 invalid_request metadata: must have at most 16 names (got 17).");
    expect(await update({ metadata: { k: 1 } })).toContain("metadata.k: must be a string of at most 512 characters");
    expect(await update({ metadata: { k: "v".repeat(513) } })).toContain("metadata.k: must be a string of at most 512");
    expect(await update({ metadata: { ["k".repeat(65)]: "v" } })).toContain(
      "metadata: its names must each be a string of at most 64 characters",
    );
    const full = Object.fromEntries(Array.from({ length: 16 }, (_, i) => [`${i}`.padStart(64, "k"), "v".repeat(512)]));
    expect((await call("POST", `${list}/a`, { metadata: full })).status).toBe(200);
  });
});

describe("the list of stored chats", () => {
  beforeEach(() => {
    for (let i = 0; i < 25; i++) {
      store(`c${String(i).padStart(2, "0")}`, {
        createdAt: nowSeconds + i,
        model: i % 2 === 0 ? "even" : "odd",
        metadata: { five: String(i % 5), all: "yes & no" },
      });
    }
  });

  test("lists 20 chats a page, oldest first, including chats not yet stored", async () => {
    const { status, body } = await call("GET", list);
    expect(status).toBe(200);
    expect(body).toMatchObject({ object: "list", first_id: "c00", last_id: "c19", has_more: true });
    expect(idsOf({ body })).toHaveLength(20);
    const rest = await call("GET", `${list}?after=c19`);
    expect(rest.body).toMatchObject({ first_id: "c20", last_id: "c24", has_more: false });
  });

  test("filters the chat list by limit, order, model and metadata, also combined", async () => {
    expect(idsOf(await call("GET", `${list}?limit=2&order=desc`))).toEqual(["c24", "c23"]);
    expect(idsOf(await call("GET", `${list}?limit=2&order=desc&after=c23`))).toEqual(["c22", "c21"]);
    expect(idsOf(await call("GET", `${list}?model=odd&limit=2`))).toEqual(["c01", "c03"]);
    expect(idsOf(await call("GET", `${list}?metadata[five]=3`))).toEqual(["c03", "c08", "c13", "c18", "c23"]);
    const encoded = `metadata%5Bfive%5D=3&metadata%5Ball%5D=${encodeURIComponent("yes & no")}`;
    expect(idsOf(await call("GET", `${list}?${encoded}&model=even`))).toEqual(["c08", "c18"]);
    const none = await call("GET", `${list}?model=none`);
    expect(none.body).toEqual({ object: "list", data: [], first_id: null, last_id: null, has_more: false });
  });

  test("refuses an unknown parameter of the chat list by name", async () => {
    for (const [query, said] of [
      ["limit=0", "limit: must be a whole number from 1 to 100"],
      ["limit=101", "limit: must be"],
      ["limit=x", "limit: must be"],
      ["order=up", "order: must be asc (oldest first) or desc (newest first)"],
      ["after=nobody", "after: must be the id of a stored chat completion"],
      ["before=c01", "before: is no parameter"],
      [
        `metadata[k]=${"v".repeat(513)}`,
        "metadata[k]: must be a string of at most 512 characters (got 513 characters).",
      ],
      [`metadata[${"k".repeat(65)}]=v`, "its name must have at most 64 characters (got 65)."],
      [Array.from({ length: 17 }, (_, i) => `metadata[k${i}]=v`).join("&"), "metadata: must have at most 16 names"],
    ]) {
      const answer = await refusal("GET", `${list}?${query}`);
      expect(answer).toStartWith("400 invalid_request ");
      expect(answer).toContain(said ?? "");
    }
  });
});

describe("messages of a stored chat", () => {
  const messages = [
    { role: "system", content: "Be brief." },
    { role: "user", name: "ann", content: [{ type: "text", text: "What is it?" }] },
    { role: "assistant", content: null, tool_calls: [{ id: "t", type: "function" }] },
    { role: "tool", tool_call_id: "t", content: "4 degrees" },
  ];

  test("returns a chat's messages in request order with ids, and content parts separately", async () => {
    store("a", { messages });
    const { body } = await call("GET", `${list}/a/messages`);
    expect(body).toEqual({
      object: "list",
      data: [
        { id: "a-0", role: "system", content: "Be brief.", content_parts: null },
        { id: "a-1", role: "user", name: "ann", content: null, content_parts: messages[1]?.content },
        { id: "a-2", role: "assistant", content: null, content_parts: null, tool_calls: messages[2]?.tool_calls },
        { id: "a-3", role: "tool", tool_call_id: "t", content: "4 degrees", content_parts: null },
      ],
      first_id: "a-0",
      last_id: "a-3",
      has_more: false,
    });
    for (const message of body["data"] as Json[]) expect(storedMessage.safeParse(message).error).toBeUndefined();
  });

  test("pages the messages of a chat in both orders", async () => {
    store("a", { messages });
    const page = async (query: string) => {
      const { body } = await call("GET", `${list}/a/messages?${query}`);
      return [idsOf({ body }), body["has_more"]];
    };
    expect(await page("limit=3")).toEqual([["a-0", "a-1", "a-2"], true]);
    expect(await page("limit=3&after=a-2")).toEqual([["a-3"], false]);
    expect(await page("order=desc&limit=2&after=a-3")).toEqual([["a-2", "a-1"], true]);
    expect(await page("after=a-3")).toEqual([[], false]);
    expect(await refusal("GET", `${list}/a/messages?after=b-0`)).toStartWith("400 invalid_request after: must be");
  });
});

test("answers 503 with a retry time while the database is away", async () => {
  await db.unsafe("ALTER TABLE stored_chats RENAME TO gone");
  expect(await refusal("GET", list)).toBe(
    "503 service_unavailable Stored chats cannot be reached at the moment. Retry in 5 s.",
  );
});

test("refuses an account's ninth concurrent search until one ends", async () => {
  const search = () => call("GET", `${list}?search=nothing`);
  const refused = (await Promise.all(Array.from({ length: 11 }, search))).filter(({ status }) => status === 429);
  expect(refused).toHaveLength(3);
  const message =
    "8 searches of stored chats of this account are under way. Retry in 1 s, or when one of them has ended.";
  expect(refused[0]?.body["error"]).toMatchObject({ code: "rate_limit_exceeded", message });
  expect((await search()).status).toBe(200);
});

/** Counts how many chats are read at a time. */
class CountingStore extends SqlChatStore {
  most = 0;
  #running = 0;

  override async find(...asked: Parameters<SqlChatStore["find"]>) {
    this.most = Math.max(this.most, ++this.#running);
    await new Promise(setImmediate);
    this.#running--;
    return await super.find(...asked);
  }
}

test("reads the chats to update two at a time", async () => {
  const chats = new CountingStore(db);
  store("chatcmpl-a");
  await queue.flush();
  routes = chatRoutes({
    chats,
    chatWriter: queue,
    clock,
    throttle: new Throttle(new MemoryLimits({ clock, ledger: { readTotals: async () => {} } })),
    requestLimits: () => ({ bodyBytes: 10_000, depth: 8 }),
  });
  const label = () => call("POST", `${list}/chatcmpl-a`, { metadata: {} });
  const answers = await Promise.all(Array.from({ length: 20 }, label));
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  expect(chats.most).toBe(2);
});

test("waits at most a second for a slow store", async () => {
  const slow = chatRoutes({
    chats: new SqlChatStore(db),
    chatWriter: { flush: () => new Promise(() => {}) },
    clock,
    throttle: new Throttle(new MemoryLimits({ clock, ledger: { readTotals: async () => {} } })),
    requestLimits: () => ({ bodyBytes: 10_000, depth: 8 }),
  });
  routes = slow;
  const startedMs = performance.now();
  expect((await call("GET", list)).status).toBe(200);
  expect(performance.now() - startedMs).toBeLessThan(withinMs(2_000));
});
