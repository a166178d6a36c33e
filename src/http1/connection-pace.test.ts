// A client that takes its answer a few bytes at a time: it has a pace to keep, by a clock and a kernel that the test moves.
import { afterEach, beforeEach, expect, mock, spyOn, test } from "bun:test";
import { Connection, type ConnectionServer, type ServerConnection } from "./connection.ts";
import type { Reply } from "./message.ts";
import { defaultLimits } from "./server-limits.ts";
import { get } from "./testing/server-fixture.ts";

let nowMs = 0;
let room = 0;
let terminated = false;

beforeEach(() => {
  nowMs = 1_000;
  room = 0;
  terminated = false;
  spyOn(performance, "now").mockImplementation(() => nowMs);
});

afterEach(() => mock.restore());

/** A connection whose kernel has no room for a byte of the answer. */
function behind(bytes: number): Connection {
  const socket = {
    remoteAddress: "127.0.0.1",
    write(_bytes: Buffer, _offset: number, length: number) {
      const taken = Math.min(room, length);
      room -= taken;
      return taken;
    },
    terminate() {
      terminated = true;
    },
    pause() {},
    resume() {},
    shutdown() {},
    end() {},
  } as unknown as Bun.Socket<ServerConnection>;
  const server = {
    limits: defaultLimits(),
    stopping: false,
    onRequest: (_request: unknown, reply: Reply) => reply.send(200, {}, Buffer.alloc(bytes)),
    requestBegan() {},
    requestEnded() {},
    onFault(error: unknown) {
      throw error;
    },
  } as unknown as ConnectionServer;
  const connection = new Connection(server, socket);
  connection.data(Buffer.from(get("/")));
  return connection;
}

/** Seconds until it is cut off, by a client that takes `bytes` every second. */
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

test("one that takes nothing is cut off after 60 s", () => {
  expect(secondsUntilCut(behind(10_000_000), 0)).toBe(60);
});

test("one that takes a byte every second gains nothing by it", () => {
  expect(secondsUntilCut(behind(10_000_000), 1)).toBe(61);
});

test("one that takes less than 500 bytes a second is cut off in bounded time", () => {
  expect(secondsUntilCut(behind(10_000_000), 250)).toBe(120);
});

test("one that takes 500 bytes a second may go on", () => {
  expect(secondsUntilCut(behind(10_000_000), 500)).toBe(Number.POSITIVE_INFINITY);
});
