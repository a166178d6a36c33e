// What costs a row in the database is bounded: access tokens by key, changes of keys by key, and so are conversations.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { type ManualClock, manualClock } from "../support/manual-clock.ts";

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

test("a key makes 120 access tokens at once and two a second from then on; what is refused leaves no trace", async () => {
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

test("a key makes 300 changes of keys at once; reading is free, and a revocation always possible", async () => {
  const made = await server.request("/v1/keys", { body: { name: "Changed" } });
  const { id } = (await made.json()) as { id: string };
  let number = 0;
  const change = () => server.request(`/v1/keys/${id}`, { method: "PATCH", body: { name: `Name ${++number}` } });
  expect(await statuses(350, change)).toEqual({ 200: 299, 429: 51 });
  const refused = await server.request("/v1/keys", { body: { name: "One more" } });
  expect(refused.status).toBe(429);
  expect(await refused.text()).toContain("At most 300 changes per minute. Retry in 1 s.");
  expect((await server.request("/v1/keys")).status).toBe(200);
  expect((await server.request(`/v1/keys/${id}`, { method: "DELETE" })).status).toBe(200);
  clock.advance(60_000);
  expect((await server.request("/v1/keys", { body: { name: "One more" } })).status).toBe(200);
});

test("a key makes 1,200 changes of conversations at once; reading and deleting them is free", async () => {
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

test("a key puts 16 MiB a minute into conversations", async () => {
  const items = [{ role: "user", content: "x".repeat(9_000_000) }];
  const put = () => server.request("/v1/conversations", { body: { items } });
  expect((await put()).status).toBe(200);
  const refused = await put();
  expect(refused.status).toBe(429);
  expect(await refused.text()).toContain("16 MiB together, per minute. Retry in");
  clock.advance(10_000);
  expect((await put()).status).toBe(200);
});
