// Requests that cost a row in the database are bounded by key and by account: access tokens, changes of keys, conversations.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { type ManualClock, manualClock } from "../support/manual-clock.ts";
import { accountFor, keyRecordFor, principalFor } from "../support/principal.ts";

let clock: ManualClock;
let server: TestServer;

beforeEach(async () => {
  clock = manualClock();
  server = await startHeadrace({ clock });
});

afterEach(() => server[Symbol.asyncDispose]());

/** How many of `count` requests at once came to which status. */
async function statuses(count: number, send: () => Promise<Response>): Promise<Record<number, number>> {
  const seen: Record<number, number> = {};
  await Promise.all(
    Array.from({ length: count }, async () => {
      const { status } = await send();
      seen[status] = (seen[status] ?? 0) + 1;
    }),
  );
  return seen;
}

const auditRows = () => server.governance.audit.list({}, { after: undefined, limit: 1_000 });

test("limits a key to 120 access tokens at once and two a second after, and leaves no trace of refused ones", async () => {
  const issue = () => server.request("/v1/auth/token", { body: { api_key: server.key } });
  const before = (await auditRows()).length;
  expect(await statuses(200, issue)).toEqual({ 200: 120, 429: 80 });
  expect((await auditRows()).length - before).toBe(120);
  const refused = await issue();
  expect(refused.headers.get("retry-after")).toBe("1");
  expect(await refused.json()).toMatchObject({ error: { code: "rate_limit_exceeded" } });
  clock.advance(1_000);
  expect(await statuses(10, issue)).toEqual({ 200: 2, 429: 8 });
});

test("limits a key to 300 key changes at once, but not reads or revocations", async () => {
  const made = await server.request("/v1/keys", { body: { name: "Changed" } });
  const { id } = (await made.json()) as { id: string };
  let number = 0;
  const change = () => server.request(`/v1/keys/${id}`, { method: "PATCH", body: { name: `Name ${++number}` } });
  expect(await statuses(350, change)).toEqual({ 200: 299, 429: 51 });
  const refused = await server.request("/v1/keys", { body: { name: "One more" } });
  expect(refused.status).toBe(429);
  expect(await refused.text()).toContain(
    "At most 300 changes per minute by a key, and 3000 by all keys of its account. Retry in 1 s.",
  );
  expect((await server.request("/v1/keys")).status).toBe(200);
  expect((await server.request(`/v1/keys/${id}`, { method: "DELETE" })).status).toBe(200);
  clock.advance(60_000);
  expect((await server.request("/v1/keys", { body: { name: "One more" } })).status).toBe(200);
});

test("limits a key to 1,200 conversation changes at once, but not reads or deletions", async () => {
  const made = await server.request("/v1/conversations", { body: {} });
  const path = `/v1/conversations/${((await made.json()) as { id: string }).id}`;
  let number = 0;
  const items = [{ role: "user", content: "Hi" }];
  const change = () =>
    ++number % 2 === 0
      ? server.request(path, { body: { metadata: {} } })
      : server.request(`${path}/items`, { body: { items } });
  expect(await statuses(1_300, change)).toEqual({ 200: 1_199, 429: 101 });
  expect((await server.request("/v1/conversations", { body: {} })).status).toBe(429);
  expect((await server.request(`${path}/items`)).status).toBe(200);
  clock.advance(1_000);
  expect(await statuses(30, change)).toEqual({ 200: 20, 429: 10 });
  expect((await server.request(path, { method: "DELETE" })).status).toBe(200);
});

test("limits a key to 16 MiB a minute into conversations", async () => {
  const items = [{ role: "user", content: "x".repeat(9_000_000) }];
  const put = () => server.request("/v1/conversations", { body: { items } });
  expect((await put()).status).toBe(200);
  const refused = await put();
  expect(refused.status).toBe(429);
  expect(await refused.text()).toContain("16 MiB together, per minute by a key, and 4800 by all keys");
  clock.advance(10_000);
  expect((await put()).status).toBe(200);
});

const principalOf = (key: string, account = "acct_1") =>
  principalFor({ account: accountFor({ id: account }), keys: [keyRecordFor({ id: key, limitId: key })] });

/** Counts the keys of one account that do that `count` times at once, until one is refused. */
async function keysUntilRefused(what: "token" | "change" | "conversation", count: number) {
  const { throttle } = server.governance;
  for (let made = 0; made < 100; made++) {
    for (let i = 0; i < count; i++) {
      const refusal = await throttle.require(what, principalOf(`key_${made}`)).then(
        () => undefined,
        (error: Error) => error,
      );
      if (refusal) return { made, refusal };
    }
  }
  throw new Error("None of 100 keys was refused.");
}

test.each([
  ["token", 120, 50],
  ["change", 300, 10],
  ["conversation", 1_200, 4],
] as const)("applies a %s budget per minute to all keys of an account together", async (what, ofKey, keys) => {
  const { made, refusal } = await keysUntilRefused(what, ofKey);
  expect(made).toBe(keys);
  expect(refusal).toMatchObject({ code: "rate_limit_exceeded" });
  expect(refusal.message).toContain(`At most ${ofKey} `);
  await server.governance.throttle.require(what, principalOf("key_other", "acct_other"));
});

test("limits the bytes that all keys of an account put into conversations within a minute", async () => {
  const { throttle } = server.governance;
  const bytes = 16 * 1024 * 1024;
  const put = (key: string, account?: string) => throttle.require("conversation", principalOf(key, account), bytes);
  for (const key of ["key_1", "key_2", "key_3", "key_4"]) await put(key);
  await expect(put("key_5")).rejects.toMatchObject({ code: "rate_limit_exceeded" });
  await put("key_5", "acct_other");
});

test("limits a key's metadata changes of stored chats like its conversation changes", async () => {
  const label = () => server.request("/v1/chat/completions/chatcmpl-none", { body: { metadata: {} } });
  expect(await statuses(1_210, label)).toEqual({ 404: 1_200, 429: 10 });
});

test("refuses one byte more than 16 MiB a minute into conversations", async () => {
  const put = (bytes: number) => server.governance.throttle.require("conversation", principalOf("key_1"), bytes);
  await put(16 * 1024 * 1024 - 1);
  await put(1);
  await expect(put(1)).rejects.toMatchObject({ code: "rate_limit_exceeded" });
});
