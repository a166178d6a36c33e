// Connections that outlive their request, over real sockets: what one key may hold, what is left to others, and what ends them.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { withinMs } from "../support/long.ts";
import { operated } from "../support/operated.ts";
import { chatScript, type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

const connections = 64;
let upstream: ScriptedUpstream;
let server: TestServer;

beforeAll(async () => {
  upstream = await startUpstream();
  server = await startHeadrace({ yaml: upstreamYaml(upstream), httpLimits: { connections } });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

interface Opened {
  socket: WebSocket;
  events: { type: string; error?: { code: string } }[];
  closed: Promise<number>;
}

/** Rejects where no WebSocket is opened. */
async function open(key: string, at = server): Promise<Opened> {
  const socket = new WebSocket(`${at.url.replace("http", "ws")}/v1/responses`, {
    headers: { authorization: `Bearer ${key}` },
  } as never);
  const events: Opened["events"] = [];
  socket.onmessage = ({ data }) => events.push(JSON.parse(String(data)) as Opened["events"][number]);
  await new Promise((resolve, reject) => {
    socket.onopen = resolve;
    socket.onerror = () => reject(new Error("It was not opened."));
  });
  const closed = new Promise<number>((resolve) => {
    socket.onclose = ({ code }) => resolve(code);
  });
  return { socket, events, closed };
}

async function openAll(key: string, most: number, at = server): Promise<Opened[]> {
  const tried = await Promise.allSettled(Array.from({ length: most }, () => open(key, at)));
  return tried.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
}

async function closeAll(opened: readonly Opened[]): Promise<void> {
  for (const { socket } of opened) socket.close();
  await Promise.all(opened.map(({ closed }) => closed));
}

async function newKey(at = server, more: object = {}): Promise<{ id: string; key: string }> {
  const made = await at.request("/v1/keys", { body: { name: "sockets", ...more } });
  return (await made.json()) as { id: string; key: string };
}

// long-lived: responseSocket.key, responseSocket.account
// hardening: L9
test("limits Responses WebSockets of a key to an eighth of the connections, and of an account to a quarter", async () => {
  const keys = [await newKey(), await newKey(), await newKey()];
  const first = await openAll(keys[0]?.key ?? "", 30);
  expect(first).toHaveLength(connections / 8);
  const second = await openAll(keys[1]?.key ?? "", 20);
  const third = await openAll(keys[2]?.key ?? "", 8);
  expect(first.length + second.length + third.length).toBe(connections / 4);
  const refused = await server.request("/v1/responses", {
    headers: {
      ...{ connection: "Upgrade", upgrade: "websocket", "sec-websocket-version": "13" },
      ...{ "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==", authorization: `Bearer ${keys[0]?.key}` },
    },
  });
  expect(refused.status).toBe(429);
  expect(await refused.text()).toContain("long-lived connections open");
  // Requests go on all the while.
  const answer = await server.request("/v1/responses", { body: { model: "upstream-model", input: "Hi" } });
  expect(answer.status).toBe(200);
  await closeAll([...first, ...second, ...third]);
  const again = await until(async () => await open(keys[0]?.key ?? "").catch(() => undefined), "the slots are free");
  await closeAll([again]);
});

test("counts an idle Responses WebSocket as an open request of its key, in the same slot as its messages", async () => {
  await using few = await startHeadrace({
    yaml: `${upstreamYaml(upstream)}limits: { open_requests_per_key: 2 }\n`,
  });
  upstream.script(chatScript());
  const { key } = await newKey(few);
  const one = await open(key, few);
  one.socket.send(JSON.stringify({ type: "response.create", model: "upstream-model", input: "Hi", store: false }));
  await until(() => one.events.some(({ type }) => type === "response.completed"), "the response ends");
  const two = await openAll(key, 4, few);
  expect(two.length).toBeLessThanOrEqual(1);
  await closeAll([one, ...two]);
});

// long-lived: responseSocket.credential
// hardening: L9
test("ends idle Responses WebSockets within 2 s of their key's revocation, with the reason", async () => {
  const { id, key } = await newKey();
  const opened = await openAll(key, 8);
  expect(opened).toHaveLength(8);
  const since = performance.now();
  expect((await server.request(`/v1/keys/${id}`, { method: "DELETE" })).status).toBe(200);
  expect(await Promise.all(opened.map(({ closed }) => closed))).toEqual(opened.map(() => 1008));
  expect(performance.now() - since).toBeLessThan(withinMs(2_000));
  for (const { events } of opened)
    expect(events).toMatchObject([{ type: "error", error: { code: "invalid_api_key" } }]);
});

test("ends an idle Responses WebSocket when its key expires", async () => {
  const expires = Math.floor(Date.now() / 1000) + 2;
  const { key } = await newKey(server, { expires_at: expires });
  const [one] = await openAll(key, 1);
  expect(await one?.closed).toBe(1008);
  expect(Date.now() / 1000).toBeGreaterThanOrEqual(expires);
});

test("ends an idle Responses WebSocket when the signing key of its token is revoked", async () => {
  await using replaced = await startHeadrace({ yaml: upstreamYaml(upstream) });
  const made = await replaced.request("/v1/auth/token", { body: { api_key: replaced.key } });
  const { access_token: token } = (await made.json()) as { access_token: string };
  const [one] = await openAll(token, 1, replaced);
  await Bun.sleep(1_500);
  expect(one?.events).toEqual([]);
  const { admin } = await operated(replaced);
  expect((await admin("POST", "/signing-keys/rotate", { revoke: true })).status).toBe(200);
  expect(await one?.closed).toBe(1008);
  expect(one?.events).toMatchObject([{ type: "error", error: { code: "invalid_api_key" } }]);
});

test("ends an idle Responses WebSocket when its key loses chat access", async () => {
  const { id, key } = await newKey(server, { scopes: ["chat:write", "models:read"] });
  const [one] = await openAll(key, 1);
  await server.request(`/v1/keys/${id}`, { method: "PATCH", body: { scopes: ["models:read"] } });
  expect(await one?.closed).toBe(1008);
  expect(one?.events).toMatchObject([{ type: "error", error: { code: "insufficient_scope" } }]);
});

test("records no key use for a silent idle Responses WebSocket", async () => {
  const { id, key } = await newKey();
  const openedAt = Math.floor(Date.now() / 1000);
  const opened = await open(key);
  await Bun.sleep(3_500);
  await closeAll([opened]);
  const usedAt = await until(async () => {
    const record = (await (await server.request(`/v1/keys/${id}`)).json()) as { last_used_at: number | null };
    return record.last_used_at ?? undefined;
  }, "the use of the key is recorded");
  expect(usedAt).toBeWithin(openedAt, openedAt + 2);
});

// long-lived: responseSocket.server
test("closes an idle Responses WebSocket with 1001 when the server stops", async () => {
  const stopping = await startHeadrace({ yaml: upstreamYaml(upstream) });
  const one = await open(stopping.key, stopping);
  await stopping.close();
  expect(await one.closed).toBe(1001);
  await stopping[Symbol.asyncDispose]();
});

// hardening: L9
test("limits idle Responses WebSockets with two workers, and ends them with their key", async () => {
  await using two = await startHeadrace({
    yaml: upstreamYaml(upstream),
    flags: { workers: "2" },
    httpLimits: { connections },
  });
  const { id, key } = await newKey(two);
  const opened = await openAll(key, 20, two);
  expect(opened).toHaveLength(connections / 8);
  await two.request(`/v1/keys/${id}`, { method: "DELETE" });
  expect(await Promise.all(opened.map(({ closed }) => closed))).toEqual(opened.map(() => 1008));
});
