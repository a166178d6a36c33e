// The minimum pace of clients that read an answer or send a body a few bytes at a time, by a clock and a kernel that
// the test controls.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { connectionServer, idleSocket } from "../../../tests/support/http1/connection-fixture.ts";
import { get } from "../../../tests/support/http1/server-fixture.ts";
import type { ConnectionSocket } from "./connection.ts";
import { Connection } from "./connection.ts";

let nowMs = 0;
let room = 0;
let terminated = false;
const clock = { exactMs: () => nowMs, monotonicMs: () => nowMs };
const opened: Connection[] = [];

beforeEach(() => {
  nowMs = 1_000;
  room = 0;
  terminated = false;
});

afterEach(() => {
  // Unsent bytes of an open connection would still be counted in the next test.
  for (const connection of opened.splice(0)) connection.didClose();
});

/** Returns a connection with an answer of `bytes` bytes, of which the kernel accepts as many as `room` says. */
function behind(bytes: number): Connection {
  const socket: ConnectionSocket = {
    ...idleSocket,
    write(_bytes, _offset, length) {
      const taken = Math.min(room, length);
      room -= taken;
      return taken;
    },
    terminate() {
      terminated = true;
    },
  };
  const server = connectionServer({
    clock,
    onRequest: (_request, reply) => reply.send(200, {}, Buffer.alloc(bytes)),
  });
  const connection = new Connection(server, socket);
  opened.push(connection);
  connection.data(Buffer.from(get("/")));
  return connection;
}

/** Returns after how many seconds a connection is cut off whose client reads `bytes` bytes every second. */
function secondsUntilCut(connection: Connection, bytes: number): number {
  for (let second = 1; second <= 3_600; second++) {
    nowMs += 1_000;
    room = bytes;
    connection.drain();
    connection.checkDeadline(nowMs);
    if (terminated) return second;
  }
  return Number.POSITIVE_INFINITY;
}

// hardening: F10
test("cuts off a client that reads nothing for 60 s", () => {
  expect(secondsUntilCut(behind(10_000_000), 0)).toBe(60);
});

test("cuts off a client that reads a byte a second just as early", () => {
  expect(secondsUntilCut(behind(10_000_000), 1)).toBe(61);
});

// hardening: F10
test("cuts off a client that reads less than 500 bytes a second in bounded time", () => {
  expect(secondsUntilCut(behind(10_000_000), 250)).toBe(120);
});

test("does not cut off a client that reads 500 bytes a second", () => {
  expect(secondsUntilCut(behind(10_000_000), 500)).toBe(Number.POSITIVE_INFINITY);
});

/** Returns after how many seconds a body of 10 MB is given up whose client sends `bytes` bytes every second. */
async function secondsUntilGivenUp(bytes: number): Promise<number> {
  let failure: unknown;
  const server = connectionServer({
    clock,
    onRequest(request) {
      Promise.resolve(request.readBody(10_000_000)).catch((error: unknown) => {
        failure = error;
      });
    },
  });
  const connection = new Connection(server, idleSocket);
  opened.push(connection);
  connection.data(Buffer.from("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000\r\n\r\n"));
  let second = 0;
  while (!failure && second < 3_600) {
    second++;
    nowMs += 1_000;
    connection.data(Buffer.alloc(bytes));
    connection.checkDeadline(nowMs);
    await Promise.resolve();
    await Promise.resolve();
  }
  return second;
}

// hardening: F13
test("gives up a body that arrives at less than 8 KiB a second in bounded time", async () => {
  expect(await secondsUntilGivenUp(1_000)).toBeLessThan(36);
  expect(await secondsUntilGivenUp(7_000)).toBeLessThan(220);
});

// hardening: F13
test("gives up a body after 10 minutes, at any speed", async () => {
  expect(await secondsUntilGivenUp(9_000)).toBe(600);
});
