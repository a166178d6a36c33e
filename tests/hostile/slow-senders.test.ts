// Clients that send their heads and bodies a byte at a time, or stop: each is gone in bounded time, takes little memory, and others do not wait.
import { afterEach, expect, test } from "bun:test";
import { until } from "../support/headrace.ts";
import { long, withinMs } from "../support/long.ts";
import { startWatchedServer, type WatchedServer } from "../support/watched-server.ts";
import { head, openRaw, type RawConnection } from "./raw-client.ts";
import { goodAnswer, type RawUpstream, rawYaml, startRawUpstream } from "./raw-upstream.ts";

/** How many of each kind. */
const clients = long ? 250 : 50;
const maxBytesEach = 100_000;
/** Requests of others. */
const measured = long ? 1_000 : 100;
/** The long form waits out the server's own. */
const limits = long ? { headMs: 12_000, bodyIdleMs: 30_000 } : { headMs: 700, bodyIdleMs: 700 };
const tickMs = long ? 250 : 50;
/** In which all are heard once. */
const turns = 25;

const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

async function start(): Promise<{ upstream: RawUpstream; server: WatchedServer }> {
  const upstream = await startRawUpstream((socket) => void socket.write(goodAnswer));
  stack.push(upstream);
  const server = await startWatchedServer({ yaml: rawYaml(upstream), ...(long ? {} : { httpLimits: limits }) });
  stack.push(server);
  return { upstream, server };
}

const chat = { model: "upstream-model", messages: [{ role: "user", content: "Hi" }] };

async function p99(server: WatchedServer): Promise<number> {
  const tookMs: number[] = [];
  for (let n = 0; n < measured; n++) {
    const startedMs = performance.now();
    const response = await server.request("/v1/chat/completions", { body: chat });
    await response.text();
    tookMs.push(performance.now() - startedMs);
    expect(response.status).toBe(200);
  }
  return tookMs.sort((a, b) => a - b)[Math.floor(measured * 0.99)] ?? 0;
}

const bodyHead = (key: string) =>
  head("POST /v1/chat/completions HTTP/1.1", [
    "Host: 127.0.0.1",
    `Authorization: Bearer ${key}`,
    "Content-Type: application/json",
    "Content-Length: 1000000",
  ]);

/** What each sends at first, then again and again, and how it is told of its end. */
const kinds: Readonly<Record<string, { begin: (key: string) => string; next: string; status: number }>> = {
  "a head that stops": { begin: () => "GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\n", next: "", status: 408 },
  "a head that trickles": { begin: () => "GET /v1/models HTTP/1.1\r\nX: ", next: "x", status: 408 },
  "a body that stops": { begin: (key) => `${bodyHead(key)}{`, next: "", status: 400 },
  "a body that trickles": { begin: (key) => `${bodyHead(key)}{`, next: " ", status: 400 },
};

// hardening: F9
test(`ends ${4 * clients} slow senders of heads and bodies at their deadline with a message`, async () => {
  const { upstream, server } = await start();
  await p99(server);
  const alone = await p99(server);
  await server.beginAnew();
  const before = await server.figures();
  upstream.requests.length = 0;
  const startedMs = performance.now();
  const opened: { connection: RawConnection; kind: string; next: string }[] = [];
  for (const [kind, { begin, next }] of Object.entries(kinds)) {
    const first = begin(server.key);
    const connections = await Promise.all(Array.from({ length: clients }, () => openRaw(server.url)));
    await Promise.all(connections.map((connection) => connection.write(first)));
    for (const connection of connections) opened.push({ connection, kind, next });
  }
  // Some at a time: what this process does in one go, its own measurement waits for.
  let turn = 0;
  const trickle = setInterval(() => {
    turn = (turn + 1) % turns;
    for (let n = turn; n < opened.length; n += turns) {
      const { connection, next } = opened[n] as (typeof opened)[number];
      if (next !== "" && !connection.socket.destroyed) connection.socket.write(next);
    }
  }, tickMs / turns);
  const beside = await p99(server);
  const during = await server.figures();
  // Those of the measurement, and no other.
  expect(upstream.requests).toHaveLength(measured);
  const ends = await Promise.all(
    opened.map(async ({ connection, kind }) => {
      const { closed, answers } = await connection.ended(60_000);
      return { kind, closed, statuses: answers.map(({ status }) => status), tookMs: performance.now() - startedMs };
    }),
  );
  clearInterval(trickle);
  const bytesEach = (during.peakRssBytes - before.rssBytes) / opened.length;
  const last = (part: string) =>
    Math.max(...ends.filter(({ kind }) => kind.includes(part)).map(({ tookMs }) => tookMs));
  console.log(
    `${opened.length} slow senders: heads gone after ${Math.round(last("head"))} ms, bodies after ${Math.round(last("body"))} ms, ${Math.round(bytesEach / 1000)} kB each, p99 of others ${alone.toFixed(1)} -> ${beside.toFixed(1)} ms`,
  );
  for (const { kind, closed, statuses } of ends)
    expect([kind, closed, statuses]).toEqual([kind, true, [kinds[kind]?.status ?? 0]]);
  expect(last("head")).toBeLessThan(withinMs(limits.headMs + 2_000));
  expect(last("body")).toBeLessThan(withinMs(limits.bodyIdleMs + 2_000));
  expect(bytesEach).toBeLessThan(maxBytesEach);
  expect(beside).toBeLessThan(withinMs(2 * alone) + (long ? 5 : 20));
  for (const { connection } of opened) connection.socket.destroy();
  await until(async () => (await server.figures()).descriptors <= before.descriptors + 10, "all sockets are closed");
}, 120_000);
