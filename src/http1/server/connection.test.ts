// The bytes that a connection writes to a socket that accepts any part of them: complete, in order, framed, and within
// deadlines.
import { expect, test } from "bun:test";
import { connectionServer, idleSocket } from "../../../tests/support/http1/connection-fixture.ts";
import type { Reply } from "../message.ts";
import { Connection } from "./connection.ts";
import { defaultLimits } from "./server-limits.ts";
import { turnOutput } from "./turn-output.ts";

const turn = () => new Promise((resolve) => setImmediate(resolve));
const unsentMs = 4_000_000;
let nowMs = 1_000;

/** Returns a connection whose request was read. Its socket accepts `room` bytes, and returns -1 if that is negative. */
function answering({ room = Number.POSITIVE_INFINITY, method = "GET" } = {}) {
  const writes: string[] = [];
  const socket = {
    ...idleSocket,
    room,
    terminated: false,
    write(bytes: Buffer, start: number, length: number): number {
      if (socket.room < 0) return -1;
      const taken = Math.min(length, socket.room);
      socket.room -= taken;
      writes.push(bytes.toString("latin1", start, start + taken));
      return taken;
    },
    terminate() {
      socket.terminated = true;
    },
  };
  const replies: Reply[] = [];
  const connection = new Connection(
    connectionServer({
      limits: { ...defaultLimits(), unsentMs },
      clock: { exactMs: () => nowMs, monotonicMs: () => nowMs },
      onRequest: (_request, reply) => void replies.push(reply),
      requestBegan: () => turnOutput.requestBegan(),
      requestEnded: () => turnOutput.requestEnded(),
    }),
    socket,
  );
  connection.data(Buffer.from(`${method} / HTTP/1.1\r\nHost: a\r\n\r\n`));
  const [reply] = replies;
  if (!reply) throw new Error("No request was read.");
  return {
    connection,
    socket,
    reply,
    writes,
    /** Returns the bytes after the head. */
    body: () => writes.join("").replace(/^.*?\r\n\r\n/s, ""),
    [Symbol.dispose]: () => connection.destroy(),
  };
}

/** Returns a connection with a stream that has begun and whose head was sent. */
async function streaming(setting: Parameters<typeof answering>[0] = {}) {
  const it = answering(setting);
  const stream = it.reply.stream(200, {});
  await turn();
  await turn();
  return { ...it, stream };
}

test("writes no body after the head of an answer to HEAD", async () => {
  using it = await streaming({ method: "HEAD" });
  it.stream.writeAround("a", Buffer.from("bcd"), 0, 3, "e");
  it.stream.end("f");
  await turn();
  expect(it.body()).toBe("");
});

test("writes no empty chunk, which would end the body", async () => {
  using it = await streaming();
  const bytes = Buffer.from("abc");
  it.stream.writeAround("", bytes, 1, 1, "");
  it.stream.writeAround("", bytes, 0, 3, "");
  await turn();
  expect(it.body()).toBe("3\r\nabc\r\n");
});

test("writes a piece larger than the gathering buffer as one chunk", async () => {
  using it = await streaming();
  it.stream.writeAround("<", Buffer.alloc(300_000, "x"), 0, 300_000, ">");
  await turn();
  expect(it.body()).toBe(`493e2\r\n<${"x".repeat(300_000)}>\r\n`);
});

test("writes pieces that fill the gathering buffer exactly", async () => {
  using other = await streaming();
  using it = await streaming();
  const bytes = Buffer.alloc(16_380, "x");
  for (let n = 0; n < 15; n++) it.stream.writeAround("", bytes, 0, 16_376, "");
  it.stream.writeAround("", bytes, 0, 16_380, "");
  await turn();
  const chunk = `3ff8\r\n${"x".repeat(16_376)}\r\n`;
  expect(it.body() === `${chunk.repeat(15)}3ffc\r\n${"x".repeat(16_380)}\r\n`).toBe(true);
  expect(other.body()).toBe("");
});

test("sends pieces of one turn together if other connections are answered too", async () => {
  using other = await streaming();
  using it = await streaming();
  const before = it.writes.length;
  for (let n = 0; n < 2; n++) it.stream.writeAround("", Buffer.from("abc"), 0, 3, "");
  expect(it.writes).toHaveLength(before);
  await turn();
  expect(it.writes.slice(before)).toEqual(["3\r\nabc\r\n".repeat(2)]);
  expect(other.body()).toBe("");
});

test("reports the client as behind after a partial write", async () => {
  using it = await streaming({ room: 200 });
  it.stream.writeAround("", Buffer.alloc(500, "x"), 0, 500, "");
  // If servers of other tests answer in the same turn, the bytes leave only at the end of the turn.
  await turn();
  expect(it.connection.behind).toBe(true);
  expect(it.stream.writeAround("", Buffer.from("y"), 0, 1, "")).toBe(false);
  await turn();
  it.socket.room = Number.POSITIVE_INFINITY;
  it.connection.drain();
  expect(it.connection.behind).toBe(false);
  expect(it.body()).toBe(`1f4\r\n${"x".repeat(500)}\r\n1\r\ny\r\n`);
});

test("queues later bytes while the client is behind, even if there is room again", () => {
  using it = answering({ room: 3 });
  it.reply.send(200, {}, "x".repeat(100_000));
  it.socket.room = 50;
  it.connection.sendContinue();
  expect(it.writes.join("")).toBe("HTT");
  it.socket.room = Number.POSITIVE_INFINITY;
  it.connection.drain();
  expect(it.writes.join("")).toStartWith("HTTP/1.1 200 OK\r\n");
  expect(it.body() === `${"x".repeat(100_000)}HTTP/1.1 100 Continue\r\n\r\n`).toBe(true);
});

test("discards writes to a closed socket without reporting it as behind", async () => {
  using it = await streaming();
  it.socket.room = -1;
  expect(it.stream.writeAround("", Buffer.from("abc"), 0, 3, "")).toBe(true);
  expect(it.connection.behind).toBe(false);
});

test("does not extend a slow client's deadline by later writes", () => {
  using it = answering({ room: 200 });
  it.reply.send(200, {}, "x".repeat(200_000));
  const sentMs = nowMs;
  nowMs += 30;
  it.connection.sendContinue();
  it.connection.checkDeadline(sentMs + unsentMs - 1);
  expect(it.socket.terminated).toBe(false);
  it.connection.checkDeadline(sentMs + unsentMs);
  expect(it.socket.terminated).toBe(true);
});
