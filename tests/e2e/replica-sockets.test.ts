// Connections that are open at one replica end once another replica ends their credential.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type GatedUpstream, startGatedUpstream } from "../support/gated-upstream.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { withinMs } from "../support/long.ts";
import { beginRaw, envelope, modern, postRaw } from "../support/mcp/raw-tools.ts";
import { operated } from "../support/operated.ts";
import { makeOperatorKey } from "../support/operator-key.ts";
import { freshDatabase } from "../support/postgres.ts";
import { type RealtimeUpstream, startRealtimeUpstream } from "../support/realtime-upstream.ts";

let upstream: RealtimeUpstream;
let gated: GatedUpstream;
let one: TestServer;
let other: TestServer;
let env: Record<string, string>;

beforeAll(async () => {
  upstream = startRealtimeUpstream(["talker"]);
  gated = await startGatedUpstream();
  const yaml = `upstreams: [{ name: up, url: "${upstream.url}" }, { name: gated, url: "${gated.url}" }]
models:
  - { id: talker, capabilities: { realtime: true }, deployments: [{ upstream: up, model: talker }] }
  - { id: gated, deployments: [{ upstream: gated, model: upstream-model }] }
`;
  env = { HEADRACE_DATABASE_URL: await freshDatabase(), HEADRACE_SECRET: "7b".repeat(32) };
  one = await startHeadrace({ yaml, env });
  other = await startHeadrace({ yaml, env });
});
afterAll(async () => {
  await one[Symbol.asyncDispose]();
  await other[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await gated[Symbol.asyncDispose]();
});

const paths = ["/v1/responses", "/v1/realtime?model=talker"];

/** WebSockets at the first replica, once they are open, and the close codes that they end with. */
async function open(credential: string): Promise<{ closed: Promise<number[]> }> {
  let opened = 0;
  const closed = paths.map(async (path) => {
    const headers = { authorization: `Bearer ${credential}` };
    const socket = new WebSocket(`${one.url.replace("http", "ws")}${path}`, { headers } as never);
    await new Promise((resolve, reject) => {
      socket.onopen = resolve;
      socket.onerror = reject;
    });
    opened++;
    return await new Promise<number>((resolve) => {
      socket.onclose = ({ code }) => resolve(code);
    });
  });
  await until(() => opened === paths.length, "they are open");
  return { closed: Promise.all(closed) };
}

async function newKey(scopes = ["chat:write"]): Promise<{ id: string; key: string }> {
  const made = await one.request("/v1/keys", { body: { name: "sockets", scopes } });
  return (await made.json()) as { id: string; key: string };
}

async function tokenOf(key: string): Promise<string> {
  const made = await one.request("/v1/auth/token", { body: { api_key: key } });
  return ((await made.json()) as { access_token: string }).access_token;
}

const endings: Readonly<Record<string, object>> = {
  "is revoked": { method: "DELETE" },
  "loses its scope": { method: "PATCH", body: { scopes: ["models:read"] } },
};

test.each(Object.keys(endings))("closes WebSockets within 3 s once their key %s at another replica", async (ending) => {
  const { id, key } = await newKey();
  const all = [await open(key), await open(await tokenOf(key))];
  const since = performance.now();
  const headers = { authorization: `Bearer ${one.key}` };
  expect((await other.request(`/v1/keys/${id}`, { ...endings[ending], headers })).status).toBe(200);
  expect(await Promise.all(all.map(({ closed }) => closed))).toEqual([
    [1008, 1008],
    [1008, 1008],
  ]);
  expect(performance.now() - since).toBeLessThan(withinMs(3_000));
});

test("closes WebSockets within 5 s once another replica revokes the signing key of their token", async () => {
  const { key } = await newKey();
  const { closed } = await open(await tokenOf(key));
  const { admin } = await operated(other, await makeOperatorKey(one.dataDir, [], env));
  const since = performance.now();
  expect((await admin("POST", "/signing-keys/rotate", { revoke: true })).status).toBe(200);
  expect(await closed).toEqual([1008, 1008]);
  expect(performance.now() - since).toBeLessThan(withinMs(5_000));
});

/** Streams at the first replica that a token opens: both of MCP, and the events of a background response. */
async function openStreams(token: string): Promise<Response[]> {
  const url = `${one.url}/mcp`;
  const session = await beginRaw(url, token);
  const method = "subscriptions/listen";
  const params = { notifications: { toolsListChanged: true }, _meta: envelope() };
  const headers = { authorization: `Bearer ${token}` };
  const body = { model: "gated", input: "Hi", background: true };
  const made = await one.request("/v1/responses", { headers, body });
  const { id } = (await made.json()) as { id: string };
  return await Promise.all([
    session.listen(new AbortController().signal),
    postRaw(url, { jsonrpc: "2.0", id: 0, method, params }, { key: token, headers: modern(method) }),
    one.request(`/v1/responses/${id}?stream=true`, { headers }),
  ]);
}

test("closes streams of MCP and background responses once another replica revokes the signing key of their token", async () => {
  const { key } = await newKey(["chat:read", "chat:write", "tools:use"]);
  const streams = await openStreams(await tokenOf(key));
  expect(streams.map(({ status }) => status)).toEqual([200, 200, 200]);
  const ends = streams.map((stream) =>
    stream.text().then(
      () => "ended",
      () => "cut off",
    ),
  );
  const { admin } = await operated(other, await makeOperatorKey(one.dataDir, [], env));
  const since = performance.now();
  expect((await admin("POST", "/signing-keys/rotate", { revoke: true })).status).toBe(200);
  // A response without its last event must not look whole.
  expect(await Promise.all(ends)).toEqual(["ended", "ended", "cut off"]);
  expect(performance.now() - since).toBeLessThan(withinMs(15_000));
  expect(gated.open()).toBe(1);
  gated.finish();
});
