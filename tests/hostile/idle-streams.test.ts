// Thousands of streams that are open and silent: little memory each, others are served at once, and with none to spare it is 503.
import { afterEach, expect, test } from "bun:test";
import { until } from "../support/headrace.ts";
import { long, withinMs } from "../support/long.ts";
import { chunk } from "../support/scripted-upstream.ts";
import { startWatchedServer, type WatchedOptions, type WatchedServer } from "../support/watched-server.ts";
import { head, openRaw, type RawConnection } from "./raw-client.ts";
import { goodAnswer, type RawUpstream, rawYaml, startRawUpstream, streamHead } from "./raw-upstream.ts";

const open = long ? 9_000 : 500;
const maxBytesEach = 25_000;
const requestMs = 10;

const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

/** Begins each stream with one event and is silent then, until `finish`. */
async function start(options: Partial<WatchedOptions> = {}) {
  const silent: (() => void)[] = [];
  const upstream = await startRawUpstream((socket, { body }) => {
    if (!body.includes('"stream":true')) return void socket.write(goodAnswer);
    socket.write(streamHead + chunk({ role: "assistant", content: "begun" }));
    silent.push(() => socket.end(`${chunk({ content: " and ended" })}${chunk({}, "stop")}data: [DONE]\n\n`));
  });
  stack.push(upstream);
  const yaml = rawYaml(upstream, ", max_concurrency: 20000", "limits: { open_requests_per_key: 20000 }\n");
  const server = await startWatchedServer({ yaml, ...options });
  stack.push(server);
  const finish = () => {
    for (const end of silent.splice(0)) end();
  };
  return { upstream, server, finish };
}

const chat = { model: "upstream-model", messages: [{ role: "user", content: "Hi" }] };

async function openStream(server: WatchedServer): Promise<RawConnection> {
  const connection = await openRaw(server.url);
  const body = JSON.stringify({ ...chat, stream: true });
  const lines = ["Host: 127.0.0.1", `Authorization: Bearer ${server.key}`, "Content-Type: application/json"];
  await connection.write(
    head("POST /v1/chat/completions HTTP/1.1", [...lines, `Content-Length: ${body.length}`]) + body,
  );
  return connection;
}

async function openStreams(server: WatchedServer, upstream: RawUpstream, count: number): Promise<RawConnection[]> {
  const connections: RawConnection[] = [];
  const streams = () => upstream.requests.filter(({ body }) => body.includes('"stream":true')).length;
  const before = streams();
  while (connections.length < count) {
    const wave = Math.min(250, count - connections.length);
    connections.push(...(await Promise.all(Array.from({ length: wave }, () => openStream(server)))));
    await until(() => streams() === before + connections.length, `${connections.length} streams run`, 20_000);
  }
  return connections;
}

/** Milliseconds of small requests, one after the other, shortest first. */
async function times(server: WatchedServer, count: number): Promise<number[]> {
  const tookMs: number[] = [];
  for (let n = 0; n < count; n++) {
    const startedMs = performance.now();
    const response = await server.request("/v1/chat/completions", { body: chat });
    await response.text();
    tookMs.push(performance.now() - startedMs);
    expect(response.status).toBe(200);
  }
  return tookMs.sort((a, b) => a - b);
}

// hardening: F26
test(`holds ${open} idle streams in 25 kB each, answers a new request within 10 ms, and continues each stream`, async () => {
  const { upstream, server, finish } = await start();
  // What the first streams make the server load and compile is not the cost of one.
  const first = await openStreams(server, upstream, 50);
  await times(server, 300);
  finish();
  await Promise.all(first.map((connection) => connection.answered()));
  for (const { socket } of first) socket.destroy();
  await server.beginAnew();
  const before = await server.figures();

  const connections = await openStreams(server, upstream, open);
  await server.beginAnew();
  const during = await server.figures();
  const tookMs = await times(server, 100);
  const late = tookMs[Math.floor(tookMs.length * 0.95)] ?? 0;
  const bytesEach = (during.rssBytes - before.rssBytes) / open;
  console.log(
    `${open} silent streams: ${(bytesEach / 1000).toFixed(1)} kB each, ${during.descriptors} descriptors; a request ${tookMs[50]?.toFixed(1)} ms (p95 ${late.toFixed(1)})`,
  );
  // With so few, what is measured is also what the allocator rounds up to.
  expect(bytesEach).toBeLessThan(long ? maxBytesEach : 2 * maxBytesEach);
  expect(late).toBeLessThan(withinMs(requestMs));

  finish();
  const ends = await Promise.all(connections.map((connection) => connection.answered(1, 30_000)));
  const whole = ends.filter(
    ({ answers }) => answers[0]?.body.includes(" and ended") && answers[0].body.includes("[DONE]"),
  );
  expect(whole).toHaveLength(open);
  for (const { socket } of connections) socket.destroy();
  await until(async () => (await server.figures()).descriptors < before.descriptors + 20, "all sockets are closed");
}, 120_000);

// hardening: F27
test("answers 503 without spare descriptors, keeps its connections, and recovers", async () => {
  const { upstream, server, finish } = await start({ within: ["/usr/bin/prlimit", "--nofile=240:240"] });
  const tried = await Promise.allSettled(Array.from({ length: 150 }, () => openStream(server)));
  // The kernel itself refuses some, where the server is slow to take them.
  const connections = tried.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  expect(connections.length).toBeGreaterThan(100);
  const begun = () => upstream.requests.filter(({ body }) => body.includes('"stream":true')).length;
  await until(() => begun() > 20, "some streams run");
  // Refused at once, or cut where even the refused ones are many.
  const refused = await until(async () => {
    const states = await Promise.all(connections.map((connection) => connection.answered(1, 1)));
    const over = states.filter(({ answers, closed }) => answers.length > 0 || closed);
    return over.length + begun() === connections.length ? over : undefined;
  }, "the others are refused");
  const answered = refused.flatMap(({ answers }) => answers);
  console.log(`of 150 streams with 240 descriptors ${begun()} run, ${answered.length} are answered 503`);
  expect(answered.length).toBeGreaterThan(10);
  for (const { status, headers, body } of answered) {
    expect([status, headers["retry-after"]]).toEqual([503, "5"]);
    expect(JSON.parse(body)).toMatchObject({ error: { code: "service_unavailable" } });
  }
  const runs = begun();
  finish();
  const ends = await Promise.all(connections.map((connection) => connection.answered(1, 10_000)));
  expect(ends.filter(({ answers }) => answers[0]?.body.includes("[DONE]"))).toHaveLength(runs);
  for (const { socket } of connections) socket.destroy();
  await until(
    async () => (await server.request("/v1/chat/completions", { body: chat })).status === 200,
    "it serves again",
  );
}, 60_000);
