// Upgraded connections: no byte that was read is lost, the server no longer acts on them, and their owner ends them.
import { afterEach, expect, test } from "bun:test";
import { get, post, startTestServer, until } from "../../../tests/support/http1/server-fixture.ts";
import { bufferedBytes } from "../../base/bytes/buffered-bytes.ts";
import type { ByteChannel } from "../byte-channel.ts";
import type { IncomingRequest, Reply } from "../message.ts";
import type { Http1Limits } from "./server-limits.ts";

const heldBefore = bufferedBytes.total;
afterEach(() => until(() => bufferedBytes.total === heldBefore, "all that was held is given back"));

const upgradeHeaders = ["Connection: Upgrade", "Upgrade: echo"];

function startUpgrading(limits: Partial<Http1Limits> = {}, wait?: Promise<void>) {
  const channels: ByteChannel[] = [];
  const closed: number[] = [];
  const received: string[] = [];
  const take = (reply: Reply) => {
    const channel = reply.upgrade({ upgrade: "echo", "x-request-id": "r1" });
    const index = channels.push(channel) - 1;
    received.push("");
    channel.listen({
      data(bytes) {
        received[index] += bytes.toString("latin1");
        channel.write(bytes);
      },
      drained() {},
      closed: () => void closed.push(index),
    });
  };
  const it = startTestServer((request: IncomingRequest, reply: Reply) => {
    if (request.target !== "/up") reply.send(200, {}, "plain");
    else if (wait) void wait.then(() => take(reply));
    else take(reply);
  }, limits);
  return { ...it, channels, closed, received, [Symbol.asyncDispose]: it[Symbol.asyncDispose] };
}

test("hands a connection over after 101, with the bytes sent after the request", async () => {
  await using it = startUpgrading();
  const connection = await it.open();
  await connection.write(`${get("/plain")}${get("/up", upgradeHeaders)}first GET / HTTP/1.1\r\n\r\n`);
  await until(() => it.received[0]?.endsWith("\r\n\r\n"), "the bytes behind the head");
  await connection.write("second");
  await until(() => it.received[0]?.endsWith("second"), "later bytes");
  it.channels[0]?.end();
  const { text, closed } = await connection.ended();
  expect(closed).toBe(true);
  expect(text).toContain(
    "\r\n\r\nplainHTTP/1.1 101 Switching Protocols\r\nupgrade: echo\r\nx-request-id: r1\r\ndate: ",
  );
  expect(text).toEndWith("\r\nconnection: upgrade\r\n\r\nfirst GET / HTTP/1.1\r\n\r\nsecond");
  expect(it.server.pendingRequests).toBe(0);
  expect(it.requests.length).toBe(2);
});

test("delivers bytes that arrived before a late decision to upgrade", async () => {
  const wait = Promise.withResolvers<void>();
  await using it = startUpgrading({ windowBytes: 1024 }, wait.promise);
  const connection = await it.open();
  const sent = "x".repeat(200_000);
  await connection.write(get("/up", upgradeHeaders));
  await until(() => it.requests.length === 1, "the request");
  connection.socket.write(sent);
  await Bun.sleep(20);
  wait.resolve();
  await until(() => it.received[0]?.length === sent.length, "all of it");
});

test("stops without waiting for an upgraded connection, and applies no deadline to it", async () => {
  await using it = startUpgrading({ idleMs: 30, headMs: 30, bodyIdleMs: 30 });
  const connection = await it.open();
  await connection.write(get("/up", upgradeHeaders));
  await until(() => it.channels.length === 1, "the upgrade");
  await it.server.stop();
  await Bun.sleep(100);
  await connection.write("still here");
  await until(() => it.received[0] === "still here", "the echo");
  expect(it.closed).toEqual([]);
  it.server.close();
  await until(() => it.closed.length === 1, "its end by force");
  expect(it.channels[0]?.closed).toBe(true);
});

test("cuts off an upgraded client that reads nothing, and reports a leaving one once", async () => {
  await using it = startUpgrading({ unsentMs: 60 });
  const deaf = await it.open();
  await deaf.write(get("/up", upgradeHeaders));
  await until(() => it.channels.length === 1, "the upgrade");
  deaf.socket.pause();
  it.channels[0]?.write(Buffer.alloc(32_000_000));
  expect(it.channels[0]?.unsentBytes).toBeGreaterThan(0);
  await until(() => it.closed.length === 1, "the cut");
  expect(it.channels[0]?.unsentBytes).toBe(0);
  const leaving = await it.open();
  await leaving.write(get("/up", upgradeHeaders));
  await until(() => it.channels.length === 2, "the second upgrade");
  leaving.socket.destroy();
  await until(() => it.closed.length === 2, "the second end");
  it.channels[1]?.terminate();
  it.channels[1]?.end();
  expect(it.closed).toEqual([0, 1]);
});

test("frees bytes of a paused upgraded connection once the client is gone", async () => {
  let closed = 0;
  await using it = startTestServer(async (_request: IncomingRequest, reply: Reply) => {
    // Meanwhile so many bytes arrive that they are read in slices.
    await Bun.sleep(20);
    const channel = reply.upgrade({ upgrade: "echo" });
    channel.listen({
      data: () => channel.pause(),
      drained() {},
      closed: () => void closed++,
    });
    await Bun.sleep(20);
    channel.resume();
  });
  const connection = await it.open();
  await connection.write(get("/up", upgradeHeaders));
  connection.socket.write(Buffer.alloc(4_000_000));
  await until(() => bufferedBytes.byKind.received > 0, "what waits is held");
  connection.socket.resetAndDestroy();
  await until(() => closed === 1, "its end");
  expect(bufferedBytes.total).toBe(heldBefore);
});

test("delivers bytes written before the end to a slow upgraded client", async () => {
  await using it = startUpgrading({ lingerMs: 5_000 });
  const connection = await it.open();
  await connection.write(get("/up", upgradeHeaders));
  await until(() => it.channels.length === 1, "the upgrade");
  connection.socket.pause();
  const bytes = Buffer.alloc(8_000_000, "a");
  it.channels[0]?.write(bytes);
  bytes.fill("b");
  it.channels[0]?.end();
  it.channels[0]?.write(Buffer.from("never"));
  connection.socket.resume();
  const { text } = await connection.ended();
  const body = text.slice(text.indexOf("\r\n\r\n") + 4);
  expect(body.length).toBe(8_000_000);
  // The kernel has its own copy of the bytes that it accepted; the connection copied the rest.
  expect(/^a+$/.test(body)).toBe(true);
});

test("does not upgrade a request with a body or in HTTP/1.0", async () => {
  await using it = startUpgrading();
  for (const text of [
    post("/up", "body", upgradeHeaders),
    get("/up", upgradeHeaders).replace("HTTP/1.1", "HTTP/1.0"),
    post("/up", "", upgradeHeaders).replace("Content-Length: 0", "Transfer-Encoding: chunked"),
  ]) {
    const connection = await it.open();
    await connection.write(text);
    expect((await connection.ended()).text).toBe("");
  }
  expect(it.faults.map(String)).toEqual([
    "Error: A request with a body cannot be upgraded.",
    "Error: A connection of HTTP/1.0 cannot be upgraded.",
    "Error: A request with a body cannot be upgraded.",
  ]);
  expect(it.channels).toEqual([]);
});

test("ends an upgraded connection if its handler throws, and nothing else", async () => {
  const uncaught: unknown[] = [];
  const hear = (error: unknown) => void uncaught.push(error);
  process.on("uncaughtException", hear);
  const fault = new Error("a fault of the owner");
  const closed: number[] = [];
  await using it = startTestServer((_request, reply) => {
    let bytes = 0;
    reply.upgrade({ upgrade: "echo" }).listen({
      data(piece) {
        bytes += piece.length;
        if (bytes > 3_000_000) throw fault;
        // This takes 5 ms, so that the rest is delivered in a later turn.
        const endMs = performance.now() + 5;
        while (performance.now() < endMs);
      },
      drained() {},
      closed: () => void closed.push(bytes),
    });
  });
  const connection = await it.open();
  await connection.write(get("/up", upgradeHeaders));
  await connection.answered();
  void connection.write(Buffer.alloc(8_000_000));
  await until(() => closed.length > 0, "it is closed");
  await Bun.sleep(20);
  process.off("uncaughtException", hear);
  expect([closed.length, it.faults, uncaught]).toEqual([1, [fault], []]);
});
