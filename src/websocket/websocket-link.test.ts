// Both ends of a WebSocket: messages arrive whole and in order, ends are reported, and other implementations
// understand the gateway's frames.
import { expect, test } from "bun:test";
import {
  connectTo,
  startWebSocketServer,
  testProtocol,
  until,
} from "../../tests/support/websocket/websocket-fixture.ts";

const sizes = [0, 1, 2, 125, 126, 127, 65_535, 65_536, 70_000, 131_072, 1_000_000];

test("delivers messages of every size completely and in order, in both directions", async () => {
  await using server = startWebSocketServer((link, listener) => {
    listener.onMessage = (bytes) => link.send(bytes);
  });
  const { link, listener } = await connectTo(server.url);
  for (const size of sizes) link.send(Buffer.alloc(size, size % 251));
  await until(() => listener.messages.length === sizes.length, "the echoes", 10_000);
  for (const [index, size] of sizes.entries()) {
    expect(listener.messages[index]?.equals(Buffer.alloc(size, size % 251))).toBe(true);
  }
  link.close(1000, "done");
  await until(() => listener.end && server.listeners[0]?.end, "both ends");
  expect(listener.end).toEqual({ code: 1000, reason: "done" });
  expect(server.listeners[0]?.end).toEqual({ code: 1000, reason: "done" });
});

test("sends a message of two parts as one, with bytes that may change at once", async () => {
  await using server = startWebSocketServer();
  const { link } = await connectTo(server.url);
  const [first, second] = [Buffer.from("ab"), Buffer.from("cdef")];
  link.send(first, second);
  first.fill("x");
  second.fill("x");
  link.send(first);
  await until(() => server.listeners[0]?.messages.length === 2, "the messages");
  expect(server.listeners[0]?.messages.map(String)).toEqual(["abcdef", "xx"]);
});

test("delivers the server's close code and reason, and nothing afterwards", async () => {
  await using server = startWebSocketServer((link) => {
    link.send(Buffer.from("first"));
    link.close(4403, `revoked ${"ä".repeat(100)}`);
    link.send(Buffer.from("never"));
  });
  const { listener } = await connectTo(server.url);
  await until(() => listener.end, "the end");
  expect(listener.messages.map(String)).toEqual(["first"]);
  expect(listener.end?.code).toBe(4403);
  expect(listener.end?.reason).toBe(`revoked ${"ä".repeat(57)}`);
});

test("ends with 1006 when the other end is cut off", async () => {
  await using server = startWebSocketServer();
  const { link } = await connectTo(server.url);
  await until(() => server.listeners[0], "the link");
  link.terminate();
  await until(() => server.listeners[0]?.end, "the end");
  expect(server.listeners[0]?.end?.code).toBe(1006);
  expect(server.listeners[0]?.ends).toBe(1);
});

test("counts unread bytes as unsent, and notifies when they are gone", async () => {
  await using server = startWebSocketServer();
  const { link } = await connectTo(server.url);
  await until(() => server.links[0], "the link");
  const [far] = server.links;
  if (!far) throw new Error("no link");
  for (let index = 0; index < 64; index++) far.send(Buffer.alloc(1024 * 1024));
  expect(far.unsentBytes).toBeGreaterThan(1024 * 1024);
  await until(() => server.listeners[0]?.drains, "the drain", 10_000);
  expect(far.unsentBytes).toBe(0);
  link.close(1000, "");
});

test("exchanges messages between Bun's client and the gateway's server", async () => {
  await using server = startWebSocketServer((link, listener) => {
    listener.onMessage = (bytes) => link.send(bytes);
  });
  const socket = new WebSocket(server.url.href.replace("http", "ws"), testProtocol);
  socket.binaryType = "arraybuffer";
  const received: ArrayBuffer[] = [];
  const closed = new Promise<CloseEvent>((resolve) => socket.addEventListener("close", resolve));
  socket.addEventListener("message", (event) => void received.push(event.data as ArrayBuffer));
  await new Promise((resolve) => socket.addEventListener("open", resolve));
  expect(socket.protocol).toBe(testProtocol);
  for (const size of sizes) socket.send(Buffer.alloc(size, size % 251));
  await until(() => received.length === sizes.length, "the echoes", 10_000);
  for (const [index, size] of sizes.entries()) {
    expect(Buffer.from(received[index] as ArrayBuffer).equals(Buffer.alloc(size, size % 251))).toBe(true);
  }
  const pong = new Promise((resolve) => socket.addEventListener("pong", resolve));
  // With the DOM's types loaded `WebSocket` has the type of a browser's, which has no `ping`.
  (socket as Bun.WebSocket).ping("hello");
  await pong;
  socket.close(4001, "bye");
  const event = await closed;
  expect([event.code, event.reason, event.wasClean]).toEqual([4001, "bye", true]);
  expect(server.listeners[0]?.end).toEqual({ code: 4001, reason: "bye" });
});

test("sends close codes to Bun's client, and refuses its text messages", async () => {
  await using server = startWebSocketServer((link, listener) => {
    listener.onMessage = () => link.close(4404, "unknown node");
  });
  for (const [message, code, reason] of [
    [Buffer.from("x"), 4404, "unknown node"],
    ["text", 1003, "only binary messages are taken here"],
  ] as const) {
    const socket = new WebSocket(server.url.href.replace("http", "ws"), testProtocol);
    const closed = new Promise<CloseEvent>((resolve) => socket.addEventListener("close", resolve));
    socket.addEventListener("open", () => socket.send(message));
    const event = await closed;
    expect([event.code, event.reason]).toEqual([code, reason]);
  }
});

test("exchanges messages between the gateway's client and Bun's server", async () => {
  const ends: unknown[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: (request, it) =>
      it.upgrade(request, { headers: { "sec-websocket-protocol": testProtocol } })
        ? undefined
        : new Response("no", { status: 400 }),
    websocket: {
      open: (socket) => void socket.ping("are you there"),
      message(socket, message) {
        if (message.toString() === "close") socket.close(4002, "as asked");
        else socket.send(message);
      },
      pong: (_socket, data) => void ends.push(data.toString()),
      close: (_socket, code, reason) => void ends.push([code, reason]),
    },
  });
  try {
    const { link, listener } = await connectTo(server.url);
    for (const size of sizes) link.send(Buffer.alloc(size, size % 251));
    await until(() => listener.messages.length === sizes.length, "the echoes", 10_000);
    for (const [index, size] of sizes.entries()) {
      expect(listener.messages[index]?.equals(Buffer.alloc(size, size % 251))).toBe(true);
    }
    link.close(4000, "our end");
    await until(() => listener.end, "our end");
    const other = await connectTo(server.url);
    other.link.send(Buffer.from("close"));
    await until(() => other.listener.end, "its end");
    expect(other.listener.end).toEqual({ code: 4002, reason: "as asked" });
    expect(ends).toContain("are you there");
    expect(ends).toContainEqual([4000, "our end"]);
  } finally {
    await server.stop(true);
  }
});
