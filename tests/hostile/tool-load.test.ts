// Clients of tools in numbers: what many calls and many sessions leave behind in a process, and what the last ones cost beside the first.

import { heapStats } from "bun:jsc";
import { afterEach, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { McpServer } from "@modelcontextprotocol/server";
import { bufferedBytes } from "../../src/base/bytes/buffered-bytes.ts";
import type { Garbage } from "../fixtures/watched-server.ts";
import { until } from "../support/headrace.ts";
import { long, withinMs } from "../support/long.ts";
import { type McpFixture, startMcpServer } from "../support/mcp/mcp-server.ts";
import { askRaw, beginRaw, callRaw, type RawSession } from "../support/mcp/raw-tools.ts";
import { stdioServer } from "../support/mcp/stdio-server.ts";
import { toolsYaml } from "../support/mcp/tool-world.ts";
import { joinNode, startGateway } from "../support/nodes.ts";
import { startWatchedServer, type WatchedServer } from "../support/watched-server.ts";
import { head, openRaw, type RawConnection } from "./raw-client.ts";

const calls = long ? 10_000 : 400;
const nodeCalls = long ? 5_000 : 200;
const sessions = long ? 2_000 : 64;
/** One owner may have so many. */
const ofOneKey = 32;
const callers = 8;

const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

const said = (text: string) => ({ content: [{ type: "text" as const, text }] });

function makeServer(): McpServer {
  const server = new McpServer({ name: "many", version: "1" }, { capabilities: { tools: { listChanged: true } } });
  server.registerTool("say", { description: "Says something." }, () => said("x".repeat(1_000)));
  server.registerTool("fail", { description: "Fails." }, () => ({ ...said("No."), isError: true }));
  return server;
}

async function start() {
  const eras = ["legacy", "modern"] as const;
  const servers = eras.map((era) => startMcpServer(makeServer, { eras: era }));
  stack.push(...servers);
  const yaml = toolsYaml(eras.map((name, at) => ({ name, url: servers[at]?.url, max_concurrency: 64 })));
  const server = await startWatchedServer({ yaml });
  stack.push(server);
  const key = async () => {
    const made = await server.request("/v1/keys", { body: { name: "many", scopes: ["tools:use"] } });
    return ((await made.json()) as { key: string }).key;
  };
  return { server, key, legacy: servers[0] as McpFixture };
}

/** Objects that something still leads to; texts are left out, as this server keeps its log as one. */
function objectsIn(full: Garbage["full"]): number {
  return Object.entries(full).reduce((sum, [type, count]) => (type === "string" ? sum : sum + count), 0);
}

/** What a process that is at rest has. */
async function left(server: WatchedServer) {
  // What is on its way to the database is there within a moment.
  await Bun.sleep(1_500);
  const objects = objectsIn((await server.collect()).full);
  return { objects, ...(await server.figures()) };
}

/** By clients of both revisions at servers of both, some of which fail, know no such tool, or leave. */
async function callMany(server: WatchedServer, key: string, count: number): Promise<void> {
  // What it was told last is kept for it for as long as it lasts.
  const session = await beginRaw(`${server.url}/mcp`, key);
  const at = (name: string) => `${server.url}/mcp/${name}`;
  let next = 0;
  const one = async (index: number): Promise<void> => {
    const name = index % 10 === 1 ? "fail" : "say";
    const place = index % 4 < 2 ? "legacy" : "modern";
    if (index % 20 === 2) {
      const answer = await callRaw(at(place), "none", { key });
      expect(answer.message.error).toMatchObject({ code: -32602 });
    } else if (index % 20 === 3) {
      await callRaw(at(place), name, { key, signal: AbortSignal.timeout(1) }).catch(() => undefined);
    } else {
      const { message } =
        index % 2 === 0
          ? await session.ask("tools/call", { name: `${place}_${name}`, arguments: {} })
          : await askRaw(at(place), "tools/call", { name, arguments: { index } }, { key });
      expect(message.result?.["content"]).toBeDefined();
    }
  };
  const caller = async () => {
    while (next < count) await one(next++);
  };
  await Promise.all(Array.from({ length: callers }, caller));
  await session.end();
}

test(`leaves no object, byte or descriptor after ${calls} tool calls, at constant cost`, async () => {
  const { server, key } = await start();
  const own = await key();
  // What the first ones make the server load and compile is no growth.
  await callMany(server, own, Math.min(calls, 1_000));
  const before = await left(server);
  const costs: number[] = [];
  const parts = 4;
  for (let part = 0; part < parts; part++) {
    await server.beginAnew();
    await callMany(server, own, calls / parts);
    costs.push((await server.figures()).cpuMs / (calls / parts));
  }
  const after = await left(server);
  console.log(
    `${calls} calls: ${before.objects} objects became ${after.objects}, ${(before.rssBytes / 1e6).toFixed(0)} MB became ${(after.rssBytes / 1e6).toFixed(0)}; ms of processor a call: ${costs.map((ms) => ms.toFixed(2)).join(", ")}`,
  );
  expect(after.objects - before.objects).toBeLessThan(0.1 * calls + 2_000);
  expect(after.bufferedBytes).toBeLessThanOrEqual(before.bufferedBytes);
  expect(after.descriptors).toBeLessThan(before.descriptors + 20);
  const [first = 0] = costs;
  expect(costs.at(-1)).toBeLessThan((long ? 1.5 : 3) * first);
}, 600_000);

interface LiveSession {
  session: RawSession;
  stream: RawConnection;
  /** What its stream told. */
  text: string;
}

async function openSession(url: string, key: string): Promise<LiveSession> {
  const session = await beginRaw(url, key);
  // It is told of what it has seen.
  expect((await session.ask("tools/list")).message.result).toBeDefined();
  // This process may have no more than some hundred requests by `fetch` at a time.
  const stream = await openRaw(url);
  const live: LiveSession = { session, stream, text: "" };
  stream.socket.on("data", (bytes: Buffer) => {
    live.text += bytes.toString("latin1");
  });
  const fields = [`Authorization: Bearer ${key}`, `Mcp-Session-Id: ${session.id}`, "Mcp-Protocol-Version: 2025-11-25"];
  const lines = ["Host: 127.0.0.1", "Accept: text/event-stream", ...fields];
  await stream.write(head(`GET ${new URL(url).pathname} HTTP/1.1`, lines));
  await until(() => live.text.includes("\r\n\r\n"), "the stream begins");
  expect(live.text).toStartWith("HTTP/1.1 200");
  return live;
}

async function openSessions(url: string, keys: readonly string[]): Promise<LiveSession[]> {
  const all: LiveSession[] = [];
  for (let at = 0; at < sessions; at += ofOneKey) {
    const own = keys[at / ofOneKey] ?? "";
    const count = Math.min(ofOneKey, sessions - at);
    all.push(...(await Promise.all(Array.from({ length: count }, () => openSession(url, own)))));
  }
  return all;
}

test(`notifies ${sessions} MCP sessions with streams of a change without delaying others, and frees them at the end`, async () => {
  const { server, key, legacy } = await start();
  const url = `${server.url}/mcp`;
  const keys: string[] = [];
  for (let at = 0; at < sessions; at += ofOneKey) keys.push(await key());
  const other = await key();
  await callRaw(url, "legacy_say", { key: other });
  const wave = async () => {
    const [beforeMs, live] = [performance.now(), await openSessions(url, keys)];
    const openedMs = performance.now() - beforeMs;
    for (const { session } of live.slice(0, ofOneKey)) {
      const { message } = await session.ask("tools/call", { name: "modern_say", arguments: {} });
      expect(message.result).toBeDefined();
    }
    await server.beginAnew();
    const during = await server.figures();
    legacy.notifier.toolsChanged();
    const isNotified = ({ text }: LiveSession) => text.includes("notifications/tools/list_changed");
    await until(() => live.every(isNotified), "each stream is told", 20_000);
    const beside: number[] = [];
    for (let i = 0; i < 20; i++) beside.push((await callRaw(url, "legacy_say", { key: other })).ms);
    for (let at = 0; at < live.length; at += ofOneKey) {
      const ended = await Promise.all(live.slice(at, at + ofOneKey).map(({ session }) => session.end()));
      expect(ended.filter(({ status }) => status !== 200)).toEqual([]);
    }
    await until(() => live.every(({ text }) => text.endsWith("0\r\n\r\n")), "each stream has ended");
    for (const { stream } of live) stream.socket.destroy();
    return { during, openedMs, besideMs: beside.toSorted((a, b) => a - b)[10] ?? 0 };
  };
  const first = await wave();
  const before = await left(server);
  const second = await wave();
  const after = await left(server);
  console.log(
    `${sessions} sessions: ${(second.during.rssBytes / 1e6).toFixed(0)} MB with them, ${(before.rssBytes / 1e6).toFixed(0)} and ${(after.rssBytes / 1e6).toFixed(0)} MB after a wave; ${before.objects} objects became ${after.objects}; a call beside them ${first.besideMs.toFixed(1)} and ${second.besideMs.toFixed(1)} ms; opened in ${first.openedMs.toFixed(0)} and ${second.openedMs.toFixed(0)} ms`,
  );
  expect(after.objects - before.objects).toBeLessThan(5 * sessions + 2_000);
  expect(after.descriptors).toBeLessThan(before.descriptors + 20);
  expect(after.bufferedBytes).toBeLessThanOrEqual(before.bufferedBytes);
  expect(second.besideMs).toBeLessThan(withinMs(50));
}, 600_000);

/** Gateway, node and clients are one process: whatever any of them keeps is seen. */
async function leftHere() {
  await Bun.sleep(1_500);
  Bun.gc(true);
  const [objects, rssBytes] = [objectsIn(heapStats().objectTypeCounts), process.memoryUsage.rss()];
  return { objects, rssBytes, held: bufferedBytes.total, descriptors: readdirSync("/proc/self/fd").length };
}

test(`leaves nothing at either end after ${nodeCalls} calls through a node's tunnel, at constant cost`, async () => {
  const places = ["program", "web"];
  const gateway = await startGateway({
    yaml: toolsYaml(places.map((name) => ({ name, node: { node: "gpu-1", server: name }, max_concurrency: 64 }))),
  });
  stack.push(gateway);
  const web = startMcpServer(makeServer, { eras: "modern" });
  stack.push(web);
  const shared = [
    { name: "program", command: stdioServer },
    { name: "web", url: web.url },
  ];
  const yaml = toolsYaml(shared.map((one) => ({ ...one, share: true })));
  stack.push(await joinNode(gateway, { demo: true, models: ["*"], yaml }));
  const made = await gateway.request("/v1/keys", { body: { name: "many", scopes: ["tools:use"] } });
  const { key } = (await made.json()) as { key: string };
  const callAll = async (count: number): Promise<number> => {
    const before = process.cpuUsage();
    let next = 0;
    const caller = async () => {
      while (next < count) {
        const isOfProgram = next++ % 2 === 0;
        const [place, name] = isOfProgram ? ["program", "test_simple_text"] : ["web", "say"];
        const { message } = await callRaw(`${gateway.url}/mcp/${place}`, name, { key });
        expect(message.result?.["content"]).toBeDefined();
      }
    };
    await Promise.all(Array.from({ length: callers }, caller));
    web.requests.length = 0;
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000 / count;
  };
  await callAll(Math.min(nodeCalls, 1_000));
  const before = await leftHere();
  const costs: number[] = [];
  const parts = 4;
  for (let part = 0; part < parts; part++) costs.push(await callAll(nodeCalls / parts));
  const after = await leftHere();
  console.log(
    `${nodeCalls} calls through a node: ${before.objects} objects became ${after.objects}, ${(before.rssBytes / 1e6).toFixed(0)} MB became ${(after.rssBytes / 1e6).toFixed(0)}; ms of processor a call, of all ends: ${costs.map((ms) => ms.toFixed(2)).join(", ")}`,
  );
  expect(after.objects - before.objects).toBeLessThan(0.1 * nodeCalls + 2_000);
  expect(after.held).toBeLessThanOrEqual(before.held);
  expect(after.descriptors).toBeLessThan(before.descriptors + 20);
  const [first = 0] = costs;
  expect(costs.at(-1)).toBeLessThan((long ? 1.5 : 3) * first);
}, 600_000);
