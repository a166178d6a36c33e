// The request endpoints over a real database: what is answered, who sees which request, and what a wrong parameter gets.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { NewChat } from "../../src/domain/models/stored-chat.ts";
import type { Principal } from "../../src/domain/principal.ts";
import type { RefusedRequest } from "../../src/domain/usage/refused-request.ts";
import type { TrailStep } from "../../src/domain/usage/trail.ts";
import type { UsageRecord } from "../../src/domain/usage/usage.ts";
import { requestRoutes } from "../../src/http/api/usage/request-routes.ts";
import type { ScopedRoute } from "../../src/http/exchange/route.ts";
import { openApiDocument } from "../../src/http/reference/openapi.ts";
import { SqlRequestLog } from "../../src/ledger/request-log.ts";
import { catchUp } from "../../src/ledger/usage/usage-rows.ts";
import { openUsageWriter } from "../../src/ledger/usage/usage-writer.ts";
import { RequestHistory } from "../../src/policy/records/request-history.ts";
import { type Database, openDatabase } from "../../src/storage/sql/database.ts";
import { SqlChatStore } from "../../src/storage/tables/chats/chat-store.ts";
import { accounts, apiKeys } from "../../src/storage/tables/credential-rows.ts";
import { SqlRefusedRequests } from "../../src/storage/tables/refused-request-store.ts";
import { SqlToolContents } from "../../src/storage/tables/tools/tool-content-store.ts";
import { exchangeFor, incoming, responseOf } from "../support/exchange.ts";
import { manualClock } from "../support/manual-clock.ts";
import { noSeal } from "../support/no-seal.ts";
import { accountFor, keyRecordFor, principalFor } from "../support/principal.ts";
import { answerMismatches } from "./json-schema.ts";

const start = Date.UTC(2026, 8, 1) / 1000;
const clock = manualClock(start + 86_400);

let directory: string;
let db: Database;
let chats: SqlChatStore;
let routes: ScopedRoute[];
let flush: () => Promise<void> = async () => {};
let keptSince: number | null = null;

const record = (id: string, more: Partial<UsageRecord> = {}): UsageRecord => ({
  requestId: `req_${id}`,
  at: start,
  accountId: "acct_1",
  keyId: "key_1",
  appId: null,
  environment: "live",
  operation: "chat",
  model: "m",
  stream: false,
  outcome: "completed",
  errorCode: null,
  promptTokens: 10,
  completionTokens: 5,
  estimated: false,
  nanoUsd: null,
  capped: false,
  upstream: "up",
  durationMs: 100,
  firstTokenMs: null,
  queueMs: 0,
  ...more,
});

const refusal = (id: string, more: Partial<RefusedRequest> = {}): RefusedRequest => ({
  requestId: `req_${id}`,
  at: start,
  accountId: "acct_1",
  keyId: "key_1",
  appId: null,
  environment: "live",
  operation: "chat",
  model: "m",
  stream: false,
  errorCode: "rate_limit_exceeded",
  message: "The rate limit of the key is reached: 1 request per minute. Retry in 3 seconds.",
  durationMs: 1,
  ...more,
});

const step = (more: Partial<TrailStep>): TrailStep => ({
  upstream: "up",
  upstreamModel: "up/m",
  model: "m",
  result: "refused",
  status: null,
  reason: null,
  startedMs: 0,
  durationMs: 10,
  ...more,
});

const streamed = record("streamed", {
  at: start + 5,
  stream: true,
  completionTokens: 101,
  nanoUsd: 437_400,
  durationMs: 2_750,
  firstTokenMs: 250,
  queueMs: 12,
});

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "headrace-request-routes-"));
  db = await openDatabase(join(directory, "headrace.db"));
  chats = new SqlChatStore(db);
  await add([
    streamed,
    record("failed", {
      ...{ at: start + 4, outcome: "failed", errorCode: "upstream_error", upstream: null, keyId: "key_2" },
      trail: [
        step({ status: 500, reason: "out of memory" }),
        step({ upstream: "other", result: "unreachable", startedMs: 10, reason: "connect ECONNREFUSED 10.0.0.7:8000" }),
        // Stands for 12 more attempts that a long trail leaves out.
        step({ status: 429, startedMs: 20, leftOut: 12 }),
        step({ upstream: null, upstreamModel: null, result: "queue_full", startedMs: 30, durationMs: 0 }),
      ],
    }),
    record("of_app", { at: start + 3, appId: "app_1", keyId: "grt_1", model: "other" }),
    record("embedding", { at: start + 2, operation: "embedding", estimated: true, capped: true }),
    record("mine", { at: start + 1 }),
    record("of_test", { environment: "test" }),
    record("of_2", { accountId: "acct_2" }),
  ]);
  await chats.insert([
    chatOf("streamed"),
    chatOf("of_2", { accountId: "acct_2" }),
    chatOf("mine", { personId: "usr_1" }),
  ]);
  const refused = new SqlRefusedRequests(db);
  await refused.add([
    refusal("over", { at: start + 4, keyId: "key_2", stream: true }),
    refusal("of_app_2", { at: start + 3, appId: "app_2", errorCode: "model_not_found" }),
    refusal("unread", { at: start, model: null, stream: null, errorCode: "insufficient_scope" }),
    refusal("over_in_2", { accountId: "acct_2" }),
  ]);
  const idle = { flush: async () => {} };
  routes = requestRoutes({
    requestHistory: new RequestHistory(new SqlRequestLog(db, clock), refused),
    ledger: { flush: () => flush() },
    refusedRequests: idle,
    retention: { keptSince: () => keptSince },
    chats,
    chatWriter: idle,
    toolContents: new SqlToolContents(db, () => noSeal),
    toolContentWriter: idle,
    clock,
    requestLimits: () => ({ bodyBytes: 10_000, depth: 8 }),
  });
});

afterAll(async () => {
  await db.close();
  rmSync(directory, { recursive: true, force: true });
});

async function add(records: readonly UsageRecord[]): Promise<void> {
  const writer = await openUsageWriter(db);
  await writer.insert(records, 10_000);
  await catchUp(writer, 10_000);
  writer.close();
}

function chatOf(id: string, more: Partial<NewChat> = {}): NewChat {
  return {
    id: `chatcmpl-${id}`,
    accountId: "acct_1",
    environment: "live",
    keyId: "key_1",
    appId: null,
    personId: null,
    model: "m",
    createdAt: start,
    expiresAt: start + 30 * 86_400,
    metadata: {},
    parameters: {},
    completion: {},
    messages: [],
    ...more,
  };
}

// biome-ignore lint/suspicious/noExplicitAny: what an answer is made of is what the tests are about.
type Body = any;

async function get(target: string, as: Partial<Principal> = {}): Promise<{ status: number; body: Body }> {
  const id = /^\/v1\/requests\/([^?]+)/.exec(target)?.[1];
  const route = routes.find(({ path }) => path === (id === undefined ? "/v1/requests" : "/v1/requests/:id"));
  if (!route) throw new Error("no route");
  const exchange = exchangeFor(incoming({ target }), { params: id === undefined ? {} : { id } });
  const response = await responseOf(() => route.handle(exchange, principalFor(as)));
  return { status: response.status, body: await response.json() };
}

const everything = ["streamed", "over", "failed", "of_app_2", "of_app", "embedding", "mine", "unread"];

const ids = ({ body }: { body: Body }) => body.data.map(({ id }: { id: string }) => id.slice("req_".length));

describe("GET /v1/requests", () => {
  test("says how long requests are kept if earlier ones are requested", async () => {
    keptSince = start + 3;
    expect((await get(`/v1/requests?start=${start + 3}`)).body).not.toHaveProperty("kept_since");
    const { body } = await get(`/v1/requests?start=${start + 2}`);
    expect(body.kept_since).toBe(keptSince);
    expect(ids({ body })).toEqual(["streamed", "over", "failed", "of_app_2", "of_app"]);
    keptSince = null;
  });

  test("returns every figure of a request, newest first, and null for unknown ones", async () => {
    const { status, body } = await get("/v1/requests");
    expect(status).toBe(200);
    expect(body).toMatchObject({ object: "list", next: null, searched_to: null });
    expect(ids({ body })).toEqual(everything);
    expect(body.data[0]).toEqual({
      object: "request",
      id: "req_streamed",
      at: start + 5,
      operation: "chat",
      model: "m",
      key: "key_1",
      app: null,
      stream: true,
      tags: [],
      outcome: "completed",
      error_code: null,
      error_status: null,
      error_message: null,
      prompt_tokens: 10,
      completion_tokens: 101,
      ...{ cached_tokens: 0, cache_write_tokens: 0, reasoning_tokens: 0 },
      total_tokens: 111,
      estimated: false,
      capped: false,
      from_cache: false,
      cost: 0.000_437_4,
      upstream: "up",
      attempts: 1,
      queue_ms: 12,
      first_token_ms: 250,
      duration_ms: 2_750,
      tokens_per_second: 40,
    });
    expect(body.data[2]).toMatchObject({ outcome: "failed", error_code: "upstream_error", cost: null, upstream: null });
    expect(body.data[2]).toMatchObject({ error_status: 502, error_message: null, attempts: 15 });
    expect(body.data[5]).toMatchObject({
      first_token_ms: null,
      tokens_per_second: null,
      estimated: true,
      capped: true,
      from_cache: false,
    });
  });

  test("lists refused requests with the client's error and without usage", async () => {
    const { body } = await get("/v1/requests?limit=2");
    expect(body.data[1]).toEqual({
      ...body.data[0],
      ...{ id: "req_over", at: start + 4, key: "key_2", outcome: "refused" },
      ...{ error_code: "rate_limit_exceeded", error_status: 429, error_message: refusal("").message },
      ...{ prompt_tokens: 0, completion_tokens: 0, total_tokens: 0, cost: null, upstream: null, attempts: 0 },
      ...{ queue_ms: 0, first_token_ms: null, duration_ms: 1, tokens_per_second: null },
    });
    const { data } = (await get("/v1/requests?outcome=refused")).body;
    expect(data.at(-1)).toMatchObject({ id: "req_unread", model: null, stream: null, error_status: 403 });
  });

  test("pages requests by `next` from newest to oldest, and says how far back it looked", async () => {
    const seen: string[] = [];
    const searched: (number | null)[] = [];
    let next: string | null = "";
    while (next !== null) {
      const answer = await get(`/v1/requests?limit=2${next === "" ? "" : `&cursor=${next}`}`);
      seen.push(...ids(answer));
      searched.push(answer.body.searched_to);
      next = answer.body.next;
    }
    expect(searched).toEqual([start + 4, start + 3, start + 2, null]);
    expect(seen).toEqual(everything);
  });

  const filters: [query: string, found: string[]][] = [
    ["model=other", ["of_app"]],
    ["key=key_2", ["over", "failed"]],
    ["app=app_1", ["of_app"]],
    ["app=app_2", ["of_app_2"]],
    ["outcome=failed", ["failed"]],
    ["outcome=cancelled", []],
    ["outcome=refused", ["over", "of_app_2", "unread"]],
    ["outcome=refused&key=key_2", ["over"]],
    ["outcome=completed&key=key_2", []],
    ["stream=true", ["streamed", "over"]],
    ["stream=false&key=key_1", ["of_app_2", "embedding", "mine"]],
    ["start=2026-09-01T00:00:03Z&end=2026-09-01T00:00:05Z", ["over", "failed", "of_app_2", "of_app"]],
    [`end=${start + 3}`, ["embedding", "mine", "unread"]],
    ["key=key_none", []],
  ];
  test.each(filters)("filters requests by ?%s", async (query, found) => {
    expect(ids(await get(`/v1/requests?${query}`))).toEqual(found);
  });

  test("limits requests to the credential's account and environment, and an app to its own", async () => {
    expect(ids(await get("/v1/requests", { environment: "test" }))).toEqual(["of_test"]);
    expect(ids(await get("/v1/requests", { account: accountFor({ id: "acct_2" }) }))).toEqual(["over_in_2", "of_2"]);
    expect(ids(await get("/v1/requests", { appId: "app_1" }))).toEqual(["of_app"]);
    expect(ids(await get("/v1/requests", { appId: "app_2" }))).toEqual(["of_app_2"]);
    expect(ids(await get("/v1/requests?app=app_1", { appId: "app_2" }))).toEqual([]);
    expect(ids(await get("/v1/requests?app=app_2", { appId: "app_1" }))).toEqual([]);
  });

  const wrong = [
    ["limit=0", "limit: must be a whole number from 1 to 200"],
    ["limit=201", "limit: must be a whole number from 1 to 200"],
    ["outcome=lost", "outcome: must be one of completed, failed, cancelled, interrupted, refused"],
    ["stream=1", "stream: must be true or false"],
    ["start=yesterday", "start: must be Unix seconds or an ISO 8601 date"],
    ["start=10&end=10", "start: must be before end"],
    ["key=", "key: must be the id of a key"],
    ["page=2", "page: is no parameter of this endpoint"],
    ["cursor=x", "cursor: must be the `next` of a page of this list"],
    [`cursor=${Buffer.from('[-1,""]').toString("base64url")}`, "cursor: must be"],
    [`cursor=${Buffer.from('[1,"",2]').toString("base64url")}`, "cursor: must be"],
    [`cursor=${Buffer.from('{"at":1}').toString("base64url")}`, "cursor: must be"],
  ] as const;
  test.each(wrong)("refuses ?%s of the request list by name", async (query, message) => {
    const { status, body } = await get(`/v1/requests?${query}`);
    expect([status, body.error.code]).toEqual([400, "invalid_request"]);
    expect(body.error.message).toStartWith(message);
  });

  test("lists requests that just ended, even if the database cannot be written", async () => {
    const as = { account: accountFor({ id: "acct_late" }) };
    flush = async () => {
      await Bun.sleep(10);
      await add([record("late", { accountId: "acct_late" })]);
    };
    expect(ids(await get("/v1/requests", as))).toEqual(["late"]);
    flush = () => Promise.reject(new Error("disk full"));
    expect(ids(await get("/v1/requests", as))).toEqual(["late"]);
    flush = async () => {};
  });
});

describe("GET /v1/requests/{id}", () => {
  test("returns a request as in the list, with its chat", async () => {
    const [listed] = (await get("/v1/requests?limit=1")).body.data;
    const { status, body } = await get("/v1/requests/req_streamed");
    const { trail, ...others } = body;
    expect([status, others]).toEqual([
      200,
      { ...listed, usage_details: null, chat: "chatcmpl-streamed", tool_content: null },
    ]);
    expect(trail).toEqual([
      {
        ...{ server: 1, model: "m", result: "answered", status: null, started_ms: 12, duration_ms: 2_738 },
        ...{ upstream: null, upstream_model: null, reason: null, left_out: 0 },
      },
    ]);
  });

  // hardening: O9
  test("names model servers and their messages only to operators, and numbers them for others", async () => {
    const known = [
      { server: 1, result: "refused", status: 500, started_ms: 0, duration_ms: 10 },
      { server: 2, result: "unreachable", status: null, started_ms: 10 },
      { server: 1, result: "refused", status: 429, left_out: 12 },
      { server: null, result: "queue_full" },
    ];
    const operator = await get("/v1/requests/req_failed", { scopes: new Set(["usage:read", "admin:manage"]) });
    expect(operator.body.trail).toMatchObject(known);
    expect(operator.body.trail).toMatchObject([
      { upstream: "up", upstream_model: "up/m", reason: "out of memory" },
      { upstream: "other", reason: "connect ECONNREFUSED 10.0.0.7:8000" },
      {},
      { upstream: null, upstream_model: null, reason: null },
    ]);
    const ofApp = await get("/v1/requests/req_of_app", {
      ...{ appId: "app_1", scopes: new Set(["usage:read", "admin:manage"] as const) },
    });
    expect(ofApp.body.trail[0]).toMatchObject({ server: 1, result: "answered", upstream: null });
    const { body } = await get("/v1/requests/req_failed");
    expect(body.trail).toMatchObject(known);
    for (const hidden of ["other", "memory", "ECONNREFUSED", "10.0.0.7", "up/m"]) {
      expect(JSON.stringify(body)).not.toContain(hidden);
    }
  });

  test("finds a refused request without a trail for its owner only", async () => {
    const { status, body } = await get("/v1/requests/req_over");
    expect([status, body.outcome, body.trail, body.chat]).toEqual([200, "refused", [], null]);
    expect((await get("/v1/requests/req_over_in_2")).status).toBe(404);
    expect((await get("/v1/requests/req_over", { appId: "app_1" })).status).toBe(404);
    expect((await get("/v1/requests/req_of_app_2", { appId: "app_2" })).status).toBe(200);
  });

  test("links no chat that was not stored, has expired, or is not readable to the caller", async () => {
    const chat = async (id: string, as: Partial<Principal> = {}) => (await get(`/v1/requests/${id}`, as)).body.chat;
    expect(await chat("req_failed")).toBeNull();
    expect(await chat("req_embedding")).toBeNull();
    const own = keyRecordFor({ personId: "usr_1" });
    await db`INSERT INTO accounts ${db(accounts.row(accountFor()))}`;
    await db`INSERT INTO api_keys ${db(apiKeys.row(own))}`;
    const of = (personId: string): Partial<Principal> => ({ keys: [keyRecordFor({ personId })] });
    expect([await chat("req_mine"), await chat("req_mine", of("usr_1"))]).toEqual(["chatcmpl-mine", "chatcmpl-mine"]);
    expect(await chat("req_streamed", of("usr_1"))).toBeNull();
    expect((await get("/v1/requests/req_mine", of("usr_2"))).status).toBe(404);
    await chats.delete(
      { accountId: "acct_1", environment: "live", appId: null, personId: null },
      "chatcmpl-mine",
      start,
    );
    expect(await chat("req_mine")).toBeNull();
    clock.jump(40 * 86_400);
    expect(await chat("req_streamed")).toBeNull();
    clock.jump(-40 * 86_400);
  });

  test.each(["req_none", "req_of_2", "req_of_test", "streamed", "%00"])(
    "returns 404 for an unknown or another owner's request: %s",
    async (id) => {
      const { status, body } = await get(`/v1/requests/${id}`);
      expect([status, body.error.code]).toEqual([404, "not_found"]);
    },
  );

  test("finds only an app's own requests", async () => {
    expect((await get("/v1/requests/req_of_app", { appId: "app_1" })).status).toBe(200);
    expect((await get("/v1/requests/req_streamed", { appId: "app_1" })).status).toBe(404);
    expect((await get("/v1/requests/req_of_app", { appId: "app_2" })).status).toBe(404);
  });
});

test("requires usage:read on both request routes, with answers that fit the OpenAPI document", async () => {
  expect(new Set(routes.map((route) => route.access))).toEqual(new Set(["usage:read"]));
  const document = openApiDocument(routes, "1.0.0");
  const answers = [
    ["/v1/requests", (await get("/v1/requests")).body],
    ["/v1/requests/{id}", (await get("/v1/requests/req_streamed")).body],
    ["/v1/requests/{id}", (await get("/v1/requests/req_embedding")).body],
    ["/v1/requests/{id}", (await get("/v1/requests/req_failed")).body],
    ["/v1/requests/{id}", (await get("/v1/requests/req_unread")).body],
  ] as const;
  for (const [path, body] of answers) {
    expect(answerMismatches(document, ["get", path, 200], body)).toEqual([]);
  }
});
