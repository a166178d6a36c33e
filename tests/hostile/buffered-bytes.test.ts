// Each kind of bytes that the process holds for others: counted while it is held, shown in the metrics, and given back.
import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  type BufferKind,
  bufferedBytes,
  bufferKinds,
  defaultMaxBufferedBytes,
} from "../../src/base/bytes/buffered-bytes.ts";
import { startHeadrace, until } from "../support/headrace.ts";
import { type Gateway, startGateway } from "../support/nodes.ts";
import { head, openRaw, type RawConnection, type RawExchange } from "./raw-client.ts";
import { completion, goodAnswer, type RawUpstream, rawYaml, startRawUpstream, streamHead } from "./raw-upstream.ts";

let upstream: RawUpstream;
let server: Gateway;
const open: RawConnection[] = [];

beforeAll(async () => {
  upstream = await startRawUpstream();
  server = await startGateway({ yaml: rawYaml(upstream) });
});

afterAll(async () => {
  bufferedBytes.maxBytes = defaultMaxBufferedBytes;
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

const chat = (more: object) =>
  JSON.stringify({ model: "upstream-model", messages: [{ role: "user", content: "Hi" }], ...more });

const fields = (length: number) => [
  "Host: 127.0.0.1",
  `Authorization: Bearer ${server.key}`,
  "Content-Type: application/json",
  `Content-Length: ${length}`,
];

async function send(text: string): Promise<RawConnection> {
  const connection = await openRaw(server.url);
  open.push(connection);
  await connection.write(text);
  return connection;
}

const ask = (body: string) => send(head("POST /v1/chat/completions HTTP/1.1", fields(body.length)) + body);
const chunk = (content: string) =>
  `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "upstream-model", choices: [{ index: 0, delta: { content } }] })}\n\n`;
const large = "x".repeat(300_000);

/** What makes the process hold bytes of a kind; each is still held when it returns. */
const ways: Readonly<Partial<Record<BufferKind, () => Promise<unknown>>>> = {
  heads: () => send(`GET /v1/models HTTP/1.1\r\nX-Long: ${large.slice(0, 10_000)}`),
  requests: () => send(`${head("POST /v1/chat/completions HTTP/1.1", fields(1_000_000))}{${" ".repeat(200_000)}`),
  answers: async () => {
    upstream.script((socket) => void socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n{${large}`));
    await ask(chat({}));
  },
  events: async () => {
    upstream.script((socket) => void socket.write(`${streamHead}data: ${large}`));
    await ask(chat({ stream: true }));
  },
  chats: async () => {
    upstream.script((socket) => void socket.write(streamHead + chunk(large)));
    await ask(chat({ stream: true, store: true }));
  },
  unsent: async () => {
    const message = { role: "assistant", content: "x".repeat(15_000_000) };
    const text = JSON.stringify({ ...completion, choices: [{ index: 0, message, finish_reason: "stop" }] });
    upstream.script((socket) => void socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${text.length}\r\n\r\n${text}`));
    (await ask(chat({}))).socket.pause();
  },
};

/** `received` is held while the event loop has something else to do, `tunnels` while a node's answer is not taken, `continued` and `cache` for models with such policies: theirs are tests of the parts. */
test("covers every kind of buffered bytes with a test", () => {
  expect([...Object.keys(ways), "received", "tunnels", "continued", "cache"].toSorted()).toEqual(
    [...bufferKinds].toSorted(),
  );
});

async function metrics(): Promise<string> {
  const headers = { authorization: `Bearer ${server.operator}` };
  return await (await fetch(`${server.url}/metrics`, { headers })).text();
}

async function shown(kind: BufferKind): Promise<number> {
  const text = await metrics();
  return Number(new RegExp(`^headrace_held_bytes\\{kind="${kind}"\\} (\\d+)$`, "m").exec(text)?.[1] ?? Number.NaN);
}

// hardening: F13
test.each(Object.entries(ways))("counts buffered bytes of the kind %s and releases them", async (kind, hold) => {
  const before = bufferedBytes.byKind[kind as BufferKind];
  await hold();
  await until(() => bufferedBytes.byKind[kind as BufferKind] >= before + 9_000, `${kind} are held`);
  expect(await shown(kind as BufferKind)).toBeGreaterThanOrEqual(9_000);
  for (const { socket } of open.splice(0)) socket.destroy();
  await until(() => bufferedBytes.byKind[kind as BufferKind] === before, `${kind} are given back`);
});

test("shows the memory bound and its refusals in the metrics", async () => {
  const text = await metrics();
  expect(text).toContain(`headrace_held_bytes_limit ${bufferedBytes.maxBytes}\n`);
  for (const bound of ["key", "account", "process"]) {
    expect(text).toMatch(new RegExp(`^headrace_held_bytes_refused_total\\{bound="${bound}"\\} \\d+$`, "m"));
  }
});

test("refuses a body without memory for it before reading, and still delivers the answer to a client that sends it all", async () => {
  await using small = await startHeadrace({
    yaml: rawYaml(upstream, "", "limits: { held_bytes: 16777216, body_bytes: 1048576 }\n"),
  });
  upstream.script(() => {});
  const begin = head("POST /v1/chat/completions HTTP/1.1", [
    "Host: 127.0.0.1",
    `Authorization: Bearer ${small.key}`,
    "Content-Type: application/json",
    "Content-Length: 1000000",
  ]);
  const bodies: RawConnection[] = [];
  for (let n = 0; n < 4; n++) {
    const connection = await openRaw(small.url);
    bodies.push(connection);
    await connection.write(`${begin}${" ".repeat(999_999)}`);
  }
  await until(() => bufferedBytes.byKind.requests >= 3_900_000, "four bodies are held");
  const late = await openRaw(small.url);
  await late.write(`${begin}${" ".repeat(1_000_000)}`);
  const { answers, closed } = await late.ended();
  expect([answers[0]?.status, answers[0]?.headers["retry-after"], closed]).toEqual([429, "1", true]);
  for (const { socket } of [...bodies, late]) socket.destroy();
  await until(() => bufferedBytes.byKind.requests === 0, "all is given back");
});

// hardening: F13
test("refuses a rate-limited key at the request head without reading or counting the body", async () => {
  const made = await server.request("/v1/keys", { body: { name: "one a minute", rate_limit: 1 } });
  const { key } = (await made.json()) as { key: string };
  upstream.script((socket) => void socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"));
  const headers = { authorization: `Bearer ${key}` };
  const body = JSON.parse(chat({}));
  await (await server.request("/v1/chat/completions", { body, headers })).text();
  const connection = await openRaw(server.url);
  const lines = fields(5_000_000).map((line) =>
    line.startsWith("Authorization") ? `Authorization: Bearer ${key}` : line,
  );
  await connection.write(`${head("POST /v1/chat/completions HTTP/1.1", lines)}{"model":`);
  const { answers, closed } = await connection.ended();
  expect([answers[0]?.status, closed]).toEqual([429, true]);
  expect(Number(answers[0]?.headers["retry-after"])).toBeGreaterThan(50);
  expect(answers[0]?.headers["x-ratelimit-remaining-requests"]).toBe("0");
  expect(JSON.parse(answers[0]?.body ?? "{}").error.message).toContain("1 request per minute");
});

test("charges unauthenticated unfinished heads to one account, so that keys are served and the server stays ready", async () => {
  await using small = await startHeadrace({
    yaml: rawYaml(upstream, "", "limits: { held_bytes: 16777216, body_bytes: 1048576 }\n"),
  });
  upstream.script((socket) => void socket.write(goodAnswer));
  const first = `GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`;
  const unfinished = `GET /healthz HTTP/1.1\r\nX-Long: ${"x".repeat(29_000)}`;
  const connections = await Promise.all(Array.from({ length: 300 }, () => openRaw(small.url)));
  const most = (bufferedBytes.maxBytes * 7) / 8 / 3;
  // Every other one behind a request that is answered. They are looked at while they come: each is held for 12 s at most.
  const written = Promise.all(connections.map(({ write }, n) => write(n % 2 ? first + unfinished : unfinished)));
  await until(() => bufferedBytes.byKind.heads > most - 100_000, "all that may be held is");
  expect(bufferedBytes.byKind.heads).toBeLessThanOrEqual(most);
  expect(bufferedBytes.isFull).toBe(false);
  const answer = await small.request("/v1/chat/completions", { body: JSON.parse(chat({})) });
  expect(answer.status).toBe(200);
  await written;
  const refused = async () => (await Promise.all(connections.map((one) => one.answered(1, 0)))).filter(isRefused);
  await until(async () => (await refused()).length >= 120, "those for whom there is no room are refused");
  expect(bufferedBytes.byKind.heads).toBeLessThanOrEqual(most);
  for (const { socket } of connections) socket.destroy();
  await until(() => bufferedBytes.byKind.heads === 0, "all is given back");
});

function isRefused({ answers }: RawExchange): boolean {
  const last = answers.at(-1);
  return last?.status === 503 && last.headers["retry-after"] !== undefined;
}
