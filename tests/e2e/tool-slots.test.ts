// The places of an MCP server: one queue for calls and lists, in which nobody waits for ever, nor for a second place.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { until } from "../support/headrace.ts";
import { answered, type HostileServer, startHostileServer, toolText } from "../support/mcp/hostile-server.ts";
import { askRaw, callRaw } from "../support/mcp/raw-tools.ts";
import { startToolWorld, type ToolWorld } from "../support/mcp/tool-world.ts";
import { operated } from "../support/operated.ts";
import { makeOperatorKey } from "../support/operator-key.ts";

let server: HostileServer;
let world: ToolWorld;
/** Calls that are held, by what ends them; while `isHolding` each is. */
const held: (() => void)[] = [];
let isHolding = false;
/** What it is asked at a time, and the most of it. */
let [underWay, most] = [0, 0];

beforeAll(async () => {
  server = startHostileServer(async ({ id, method, request }) => {
    if (request.method !== "POST" || !["tools/call", "tools/list"].includes(method)) return undefined;
    most = Math.max(most, ++underWay);
    const { promise, resolve } = Promise.withResolvers<void>();
    if (method === "tools/call" && isHolding) held.push(resolve);
    else setTimeout(resolve, 10);
    await promise;
    underWay--;
    return method === "tools/call" ? answered(id, toolText("Said again.")) : undefined;
  });
  world = await startToolWorld([{ name: "small", url: server.url, max_concurrency: 1, timeout_seconds: 20 }]);
});

afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

/** From here on nothing is held. */
function letGo(): void {
  isHolding = false;
  for (const end of held.splice(0)) end();
}

test("counts tool lists like calls, and serves them before the next call of a busy caller", async () => {
  const [greedy, other] = [await world.key(), await world.key()];
  // It has its connection.
  await askRaw(world.at("small"), "prompts/list", {}, { key: other });
  await callRaw(world.at("small"), "echo", { key: greedy });
  isHolding = true;
  const calls = Array.from({ length: 20 }, () => callRaw(world.at("small"), "echo", { key: greedy }));
  await until(() => held.length === 1, "one is under way");
  let isListed = false;
  const listed = askRaw(world.at("small"), "tools/list", {}, { key: other }).then((answer) => {
    isListed = true;
    return answer;
  });
  await Bun.sleep(200);
  expect(isListed).toBe(false);
  let ended = 0;
  for (; !isListed; ended++) {
    await until(() => held.length > 0 || isListed, "the next one is under way");
    held.shift()?.();
  }
  expect((await listed).message.result).toMatchObject({ tools: [{ name: "echo" }] });
  // Those that wait are 19.
  expect(ended).toBeLessThan(10);
  letGo();
  for (const { message } of await Promise.all(calls)) expect(message.result).toMatchObject(toolText("Said again."));
  expect(most).toBe(1);
});

test("reports a tool list without a slot in time like a call, and lists other servers without it", async () => {
  const [busy, other] = [await world.key(), await world.key()];
  isHolding = true;
  const call = callRaw(world.at("small"), "echo", { key: busy });
  await until(() => held.length === 1, "it is under way");
  const [alone, ofAll] = await Promise.all([
    askRaw(world.at("small"), "tools/list", {}, { key: other }),
    askRaw(world.at(), "tools/list", {}, { key: await world.key() }),
  ]);
  const full = "The MCP server `small` has its 1 calls at a time, and no place became free. Retry in 1 s.";
  expect(alone.message.error).toMatchObject({ message: full, data: { retry_after_seconds: 1 } });
  expect(ofAll.message.result).toMatchObject({ tools: [] });
  letGo();
  expect((await call).status).toBe(200);
});

test("needs only one slot for a search, a call through it, and a server test beside a call", async () => {
  const key = await world.key();
  const args = { name: "call_tool", arguments: { name: "small_echo", arguments: {} } };
  const through = await askRaw(`${world.at()}?tools=search`, "tools/call", args, { key });
  expect(through.message.result).toMatchObject(toolText("Said again."));
  isHolding = true;
  const call = callRaw(world.at("small"), "echo", { key });
  await until(() => held.length === 1, "it is under way");
  const { admin } = await operated(world.server, await makeOperatorKey(world.server.dataDir, []));
  expect((await admin("POST", "/tool-server-tests", { name: "small" })).body).toMatchObject({
    ok: true,
    tools: [{ name: "echo" }],
  });
  letGo();
  expect((await call).status).toBe(200);
});
