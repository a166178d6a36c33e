// Scheduled rotation of keys at a running server: due, notified, fetched once, and again for the successor.
import { afterEach, expect, test } from "bun:test";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { shiftedClock } from "../support/manual-clock.ts";
import { mintKeyRecord } from "../support/mint-key.ts";
import { startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";
import { openServerPeople } from "../support/server-people.ts";
import { startWebhookReceiver } from "../support/webhook-receiver.ts";

const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

const day = 86_400;

async function start() {
  const [upstream, receiver] = await Promise.all([startUpstream(), startWebhookReceiver()]);
  const clock = shiftedClock();
  const server = await startHeadrace({
    clock,
    yaml: upstreamYaml(upstream, "webhook_loopback: true\n"),
    notificationTimes: { everyMs: 20 },
  });
  stack.push(upstream, receiver, server);
  return { server, receiver, clock };
}

async function call(server: TestServer, method: string, path: string, body?: unknown, key?: string) {
  const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` };
  const response = await server.request(path, { method, headers, ...(body === undefined ? {} : { body }) });
  // biome-ignore lint/suspicious/noExplicitAny: the test says itself what must be in it
  return { status: response.status, body: (await response.json()) as any };
}

const status = async (server: TestServer, key: string) =>
  (await call(server, "GET", "/v1/models", undefined, key)).status;

test("notifies of a due rotation, hands out the new key once, and ends the old key after the overlap", async () => {
  const { server, receiver, clock } = await start();
  await call(server, "POST", "/v1/webhooks", { url: receiver.url, events: ["key.rotation_due"] });
  const { body: made } = await call(server, "POST", "/v1/keys", {
    name: "ci",
    scopes: ["models:read"],
    rate_limit: 500,
  });
  const path = `/v1/keys/${made.id}`;
  const schedule = { every_days: 30, overlap_seconds: 7 * day };
  const set = await call(server, "PUT", `${path}/rotation`, schedule);
  expect(set.body).toMatchObject({ ...schedule, set_for: "key", next_at: made.created_at + 30 * day, is_due: false });

  clock.shift(29 * day);
  await server.notices.keyWatch.check();
  expect(receiver.received).toEqual([]);
  clock.shift(2 * day);
  await Promise.all([server.notices.keyWatch.check(), server.notices.keyWatch.check()]);
  await server.notices.keyWatch.check();
  await until(() => receiver.received.length > 0, "the owner is notified");
  expect(receiver.received.map(({ body }) => body.type)).toEqual(["key.rotation_due"]);
  const endsAt = receiver.received[0]?.body.data["ends_at"];
  expect((await call(server, "GET", path)).body).toMatchObject({ status: "active", revoked_at: endsAt });
  expect((await call(server, "GET", `${path}/rotation`)).body).toMatchObject({ next_at: null, is_due: true });

  const fetches = await Promise.all([1, 2, 3].map(() => call(server, "POST", `${path}/rotate`, {})));
  expect(fetches.map(({ status }) => status).sort()).toEqual([200, 400, 400]);
  const successor = fetches.find(({ status }) => status === 200)?.body;
  expect(successor).toMatchObject({ replaces: made.id, name: "ci", rate_limit: 500, revoked_at: null });
  expect([await status(server, made.key), await status(server, successor.key)]).toEqual([200, 200]);
  const next = (await call(server, "GET", `/v1/keys/${successor.id}/rotation`)).body;
  expect(next).toMatchObject({ ...schedule, next_at: successor.created_at + 30 * day });

  clock.shift(day + 1);
  expect([await status(server, made.key), await status(server, successor.key)]).toEqual([401, 200]);
});

test("lets owners schedule all keys of their account, and no member or plain key", async () => {
  const { server, clock } = await start();
  const people = openServerPeople(server);
  const [owner, member] = [await people.addMember("owner"), await people.addMember("member")];
  await people.close();
  const put = async (headers: Record<string, string>) => {
    const init = { method: "PUT", headers: { ...headers, "content-type": "application/json" } };
    return (await fetch(`${server.url}/v1/account/key-rotation`, { ...init, body: '{"every_days":90}' })).status;
  };
  const { body: plain } = await call(server, "POST", "/v1/keys", { name: "plain", scopes: ["keys:manage"] });
  expect(await put({ authorization: `Bearer ${plain.key}` })).toBeOneOf([401, 403]);
  expect(await put(member.headers)).toBe(403);
  expect(await put(owner.headers)).toBe(200);
  expect((await call(server, "GET", `/v1/keys/${plain.id}/rotation`)).body).toMatchObject({
    ...{ every_days: 90, overlap_seconds: day, set_for: "account" },
  });
  clock.shift(91 * day);
  await server.notices.keyWatch.check();
  expect((await call(server, "GET", `/v1/keys/${plain.id}/rotation`)).body).toMatchObject({ is_due: true });
  const own = (await call(server, "POST", `/v1/keys/${plain.id}/rotate`, {}, plain.key)).body;
  expect(own).toMatchObject({ replaces: plain.id, revoked_at: null });
});

test("does not let an owner who is no operator end an operator's key by a schedule", async () => {
  const { server, clock } = await start();
  const people = openServerPeople(server);
  const owner = await people.addMember("owner");
  await people.close();
  const { key, record } = await mintKeyRecord(server.dataDir, {
    scopes: ["admin:manage", "keys:manage", "models:read"],
  });
  const put = async (path: string) => {
    const headers = { ...owner.headers, "content-type": "application/json" };
    return (await fetch(`${server.url}/v1${path}`, { method: "PUT", headers, body: '{"every_days":1}' })).status;
  };
  expect(await put("/account/key-rotation")).toBe(200);
  expect(await put(`/keys/${record.id}/rotation`)).toBeOneOf([403, 404]);
  const path = `/v1/keys/${record.id}/rotation`;
  expect((await call(server, "GET", path, undefined, key)).body).toMatchObject({ every_days: null, set_for: null });
  clock.shift(2 * day);
  await server.notices.keyWatch.check();
  expect((await call(server, "GET", path, undefined, key)).body).toMatchObject({ next_at: null, is_due: false });
  clock.shift(2 * day);
  expect(await status(server, key)).toBe(200);
});

test("does not end keys that were made while their maker's rotation was due", async () => {
  const { server, clock } = await start();
  const scopes = ["keys:manage", "models:read"];
  const { body: maker } = await call(server, "POST", "/v1/keys", { name: "maker", scopes });
  await call(server, "PUT", `/v1/keys/${maker.id}/rotation`, { every_days: 30, overlap_seconds: 7 * day });
  clock.shift(31 * day);
  await server.notices.keyWatch.check();
  const make = (body: object) => call(server, "POST", "/v1/keys", { name: "made", scopes, ...body }, maker.key);
  const { body: made } = await make({});
  expect(made.expires_at).toBeNull();
  const { status: asked, body: bounded } = await make({ expires_in: 20 * day });
  expect(asked).toBe(200);
  const longer = { expires_at: bounded.expires_at + day };
  expect((await call(server, "PATCH", `/v1/keys/${bounded.id}`, longer, maker.key)).status).toBe(200);
  expect((await call(server, "POST", `/v1/keys/${maker.id}/rotate`, {})).status).toBe(200);
  // The successor was fetched, so keys that the old key makes from now on end with it.
  const late = (await make({})).body;
  expect(late.expires_at).not.toBeNull();
  clock.shift(8 * day);
  expect(await status(server, maker.key)).toBe(401);
  expect([await status(server, made.key), await status(server, bounded.key)]).toEqual([200, 200]);
  expect(await status(server, late.key)).toBe(401);
});
