// Clients of tools that mean harm, or are broken: what is somebody else's is not there for them, and what they take is bounded.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { bufferedBytes } from "../../src/base/bytes/buffered-bytes.ts";
import { setUp } from "../support/browser.ts";
import { until } from "../support/headrace.ts";
import { shiftedClock } from "../support/manual-clock.ts";
import { type HostileServer, startHostileServer, streamed, toolText } from "../support/mcp/hostile-server.ts";
import { askRaw, beginRaw, callRaw, envelope, modern, postRaw, sendRaw, sessionRaw } from "../support/mcp/raw-tools.ts";
import { startToolWorld, type ToolWorld } from "../support/mcp/tool-world.ts";
import { registerApp, signInTo } from "../support/oauth-apps.ts";

const clock = shiftedClock();
let tools: HostileServer;
let world: ToolWorld;
let url: string;
let [ann, ben] = ["", ""];
/** Ends calls that wait for it. */
const waits: (() => void)[] = [];

beforeAll(async () => {
  tools = startHostileServer(({ id, method, params }) => {
    const { how } = (params["arguments"] ?? {}) as { how?: string };
    if (method !== "tools/call" || how === undefined) return undefined;
    const answer = { jsonrpc: "2.0", id, result: toolText("Said again.") };
    if (how === "ask") return asking(answer);
    return new Promise((resolve) => {
      waits.push(() => resolve(streamed([answer])));
    });
  });
  world = await startToolWorld([{ name: "tools", url: tools.url, timeout_seconds: 20 }], { clock });
  url = world.at();
  [ann, ben] = [await world.key(), await world.key()];
});

afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await tools[Symbol.asyncDispose]();
});

/** Asks, and never answers. */
function asking(_answer: object): Response {
  const params = { message: "Who?", requestedSchema: { type: "object", properties: {} } };
  return streamed([{ jsonrpc: "2.0", id: "ask", method: "elicitation/create", params }], { open: true });
}

const works = async (key: string) => {
  const { message } = await callRaw(url, "tools_echo", { key });
  expect(message.result).toMatchObject({ content: [{ text: "Said again." }] });
};

const waiting = { name: "tools_echo", arguments: { how: "wait" } };

// hardening: F15
test.each([
  ['"params":{"name":"tools_echo","Name":"other"}', "params.Name"],
  ['"Params":{"name":"other"},"params":{"name":"tools_echo"}', "Params"],
  ['"Method":"ping","params":{"name":"tools_echo"}', "Method"],
  ['"params":{"name":"tools_echo","name":"other"}', "params.name"],
])("refuses a tool call that its server may read differently: %s", async (members, param) => {
  const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call",${members}}`;
  const headers = {
    authorization: `Bearer ${ann}`,
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
  };
  const response = await fetch(url, { method: "POST", headers, body });
  expect([response.status, (await response.json()) as unknown]).toMatchObject([400, { error: { param } }]);
});

/** What has come of a stream so far, and whether it has ended. */
function follow(stream: Response): { text: string; isOver: boolean } {
  const state = { text: "", isOver: false };
  const reading = async () => {
    for await (const bytes of stream.body ?? []) state.text += Buffer.from(bytes).toString();
  };
  reading().then(
    () => {
      state.isOver = true;
    },
    () => {
      state.isOver = true;
    },
  );
  return state;
}

async function ownKey(): Promise<{ id: string; key: string }> {
  const made = await world.server.request("/v1/keys", { body: { name: "own", scopes: ["tools:use"] } });
  return (await made.json()) as { id: string; key: string };
}

describe("an MCP session", () => {
  test("hides an MCP session from another key in every method, and continues it for its own", async () => {
    const session = await beginRaw(url, ann);
    const stolen = sessionRaw(url, ben, session.id);
    expect((await stolen.ask("tools/list")).status).toBe(404);
    expect((await stolen.listen(AbortSignal.timeout(5_000))).status).toBe(404);
    expect((await stolen.end()).status).toBe(404);
    // At another address of the same gateway it is another endpoint.
    expect((await sessionRaw(world.at("tools"), ann, session.id).ask("tools/list")).status).toBe(404);
    expect((await session.ask("tools/list")).message.result).toBeDefined();
    await session.end();
    expect((await session.ask("tools/list")).status).toBe(404);
  });

  test("ends an MCP session and its streams with its key", async () => {
    const { id, key } = await ownKey();
    const session = await beginRaw(url, key);
    const [client, params] = [new AbortController(), { notifications: { toolsListChanged: true } }];
    const open = follow(await session.listen(client.signal));
    const listening = postRaw(
      url,
      { jsonrpc: "2.0", id: 1, method: "subscriptions/listen", params: { ...params, _meta: envelope() } },
      { key, headers: modern("subscriptions/listen"), signal: client.signal },
    );
    const subscribed = follow(await listening);
    await until(() => subscribed.text.includes("acknowledged"), "it listens");
    await Bun.sleep(6_000);
    expect([open.isOver, subscribed.isOver]).toEqual([false, false]);
    expect((await world.server.request(`/v1/keys/${id}`, { method: "DELETE" })).ok).toBe(true);
    await until(() => open.isOver && subscribed.isOver, "both streams end");
    expect((await session.ask("tools/list")).status).toBe(401);
    client.abort();
  }, 30_000);

  test("refuses to resume an MCP session by another's last event", async () => {
    const [mine, other] = [await beginRaw(url, ann), await beginRaw(url, ann)];
    const client = new AbortController();
    const answer = await other.ask("tools/call", waiting, { signal: AbortSignal.timeout(500) }).catch(() => undefined);
    expect(answer).toBeUndefined();
    const seen = follow(await mine.listen(client.signal, { "last-event-id": "1" }));
    waits.pop()?.();
    await Bun.sleep(500);
    expect(seen.text).not.toContain("Said again.");
    client.abort();
  });

  test("limits an MCP session to one stream, unique request ids and a number of concurrent requests", async () => {
    const session = await beginRaw(url, ann);
    const client = new AbortController();
    const first = await session.listen(client.signal);
    expect([first.status, (await session.listen(client.signal)).status]).toEqual([200, 409]);
    const one = session.ask("tools/call", waiting, { id: "same" });
    await until(() => waits.length > 0, "the call waits");
    expect((await session.ask("ping", {}, { id: "same" })).status).toBe(400);
    waits.pop()?.();
    expect((await one).message.result).toBeDefined();
    waits.length = 0;
    const many = Array.from({ length: 100 }, (_, at) => session.ask("tools/call", waiting, { id: `many-${at}` }));
    const statuses: number[] = [];
    for (const asked of many) asked.then(({ status }) => statuses.push(status)).catch(() => statuses.push(0));
    await until(() => statuses.filter((status) => status === 429).length === 36, "64 wait, and no more");
    await works(ben);
    await session.end();
    client.abort();
  }, 30_000);

  test("ignores another session's cancellation in an MCP session", async () => {
    const [mine, other] = [await beginRaw(url, ann), await beginRaw(url, ben)];
    waits.length = 0;
    const call = mine.ask("tools/call", waiting, { id: 77 });
    await until(() => waits.length > 0, "the call waits");
    const cancelled = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 77 } };
    const headers = { "mcp-session-id": other.id, "mcp-protocol-version": "2025-11-25" };
    expect((await postRaw(url, cancelled, { key: ben, headers })).status).toBe(202);
    await Bun.sleep(200);
    waits.pop()?.();
    expect((await call).message.result).toBeDefined();
  });

  test("absorbs a flood of notifications in an MCP session", async () => {
    const session = await beginRaw(url, ann);
    const headers = { "mcp-session-id": session.id, "mcp-protocol-version": "2025-11-25" };
    const message = { jsonrpc: "2.0", method: "notifications/roots/list_changed" };
    const flood = Array.from({ length: 500 }, () => postRaw(url, message, { key: ann, headers }));
    await works(ben);
    const statuses = await Promise.all(flood.map(async (answer) => (await answer).status));
    expect(statuses.every((status) => status === 202 || status === 429)).toBe(true);
    await session.end();
  });
});

test("keeps a few of 1,000 vanished sessions of one owner, keeps others' sessions, and releases the memory", async () => {
  const bens = await beginRaw(url, ben);
  const { id, key } = await ownKey();
  await works(key);
  const [held, rss] = [bufferedBytes.total, process.memoryUsage.rss()];
  const ids: string[] = [];
  for (let at = 0; at < 1_000; at += 50) {
    const begun = await Promise.all(Array.from({ length: 50 }, () => beginRaw(url, key)));
    ids.push(...begun.map((session) => session.id));
  }
  const alive = await Promise.all(ids.map(async (one) => (await sessionRaw(url, key, one).ask("ping")).status));
  expect(alive.filter((status) => status === 200).length).toBe(32);
  expect((await bens.ask("tools/list")).message.result).toBeDefined();
  await works(ben);
  expect(process.memoryUsage.rss() - rss).toBeLessThan(200 * 1024 * 1024);
  await bens.end();
  await world.server.request(`/v1/keys/${id}`, { method: "DELETE" });
  await until(() => bufferedBytes.total <= held, "what they held is given back");
}, 60_000);

describe("an MCP access token", () => {
  test("refuses an API token for MCP, and points to the right authorization", async () => {
    const olga = await setUp(world.server);
    const app = await registerApp(world.server, { scopes: ["models:read", "tools:use"] });
    const { access_token: ofApi } = await signInTo(app, world.server, olga, "models:read");
    const list = (at: string, key: string) => askRaw(at, "tools/list", {}, { key });
    const refused = await list(url, ofApi);
    expect(refused.status).toBe(401);
    expect(refused.headers.get("www-authenticate")).toContain("/.well-known/oauth-protected-resource/mcp");
  });

  test("refuses an expired token for MCP, and ends its streams", async () => {
    const made = await world.server.request("/v1/auth/token", { body: { api_key: ben, expires_in: 600 } });
    const { access_token: token } = (await made.json()) as { access_token: string };
    const session = await beginRaw(url, token);
    const stream = follow(await session.listen(AbortSignal.timeout(20_000)));
    await Bun.sleep(6_000);
    expect(stream.isOver).toBe(false);
    clock.shift(700);
    const refused = await session.ask("tools/list");
    expect(refused.status).toBe(401);
    expect(refused.headers.get("www-authenticate")).toContain("invalid_token");
    await until(() => stream.isOver, "its stream ends");
  }, 30_000);
});

describe("another caller's suspended call", () => {
  test("accepts an answer to a suspended call only from its caller for its request, with an unforged state", async () => {
    const ask = { name: "tools_echo", arguments: { how: "ask" } };
    const asked = await askRaw(url, "tools/call", ask, { key: ann, capabilities: { elicitation: { form: {} } } });
    const state = asked.message.result?.["requestState"];
    expect(asked.message.result).toMatchObject({ resultType: "input_required" });
    const inputResponses = { ask_1: { action: "accept", content: {} } };
    const again = (key: string, requestState: unknown, params: object = ask) =>
      askRaw(url, "tools/call", { ...params, requestState, inputResponses }, { key });
    for (const forged of [
      await again(ben, state),
      await again(ann, `held_${crypto.randomUUID()}`),
      await again(ann, `${String(state)}x`),
    ]) {
      expect(forged.message.error).toMatchObject({ code: -32602 });
      expect(forged.message.error?.message).toContain("requestState");
    }
  });
});

describe("a malformed MCP request", () => {
  const list = { jsonrpc: "2.0", id: 1, method: "tools/list", params: { _meta: envelope() } };
  const call = { ...list, method: "tools/call", params: { ...waiting, _meta: envelope() } };
  const deep = `${"[".repeat(5_000)}${"]".repeat(5_000)}`;
  const headers = { ...modern("tools/list") };
  const named = { ...modern("tools/call"), "mcp-name": "tools_echo" };
  test.each<[string, unknown, Record<string, string>, number]>([
    ["of a web page elsewhere", list, { ...headers, origin: "https://evil.example" }, 403],
    ["that is 5 MB long", JSON.stringify({ ...list, x: "x".repeat(5_000_000) }), headers, 413],
    ["that is 5,000 deep", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"a":${deep}}}`, headers, 400],
    ["of a revision that there is not", list, { ...headers, "mcp-protocol-version": "2099-01-01" }, 400],
    ["whose method is another one in its header", list, { ...headers, "mcp-method": "tools/call" }, 400],
    ["whose name is another one in its header", call, { ...named, "mcp-name": "tools_other" }, 400],
    ["without the name in a header", call, modern("tools/call"), 400],
    ["that is a batch", JSON.stringify([list, list]), headers, 400],
    ["that is no object", "17", headers, 400],
    ["that is half", '{"jsonrpc":"2.0",', headers, 400],
    ["that is not JSON", JSON.stringify(list), { ...headers, "content-type": "text/plain" }, 415],
    ["for a session that is a script", { ...list, params: {} }, { "mcp-session-id": "<script>" }, 404],
  ])("refuses an MCP request %s without disturbing others", async (_, body, more, status) => {
    const asked = tools.asked.length;
    const answer = await sendRaw(url, body, { key: ann, headers: more });
    expect(answer.status).toBe(status);
    expect(tools.asked.length).toBe(asked);
    await works(ben);
  });
});
