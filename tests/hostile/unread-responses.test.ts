// A client of the WebSocket of Responses that sends on and reads nothing cannot have the server hold answers for it.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { bufferedBytes } from "../../src/base/bytes/buffered-bytes.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

const model = "upstream-model";
let upstream: ScriptedUpstream;
let server: TestServer;

beforeAll(async () => {
  // Its answers never come.
  upstream = await startUpstream(() => new Promise(() => {}));
  server = await startHeadrace({ yaml: upstreamYaml(upstream) });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

/** A text of a client (RFC 6455, 5.2), under a mask of zeros. */
function frame(text: string): Buffer {
  const payload = Buffer.from(text);
  const { length } = payload;
  const size = Buffer.alloc(length < 126 ? 0 : length < 65_536 ? 2 : 8);
  if (size.length > 0) size.writeUIntBE(length, Math.max(0, size.length - 6), Math.min(size.length, 6));
  const marked = 0x80 | (size.length === 0 ? length : size.length === 2 ? 126 : 127);
  return Buffer.concat([Buffer.from([0x81, marked]), size, Buffer.alloc(4), payload]);
}

/** One that has read the answer to its handshake, and reads nothing more. */
async function open(): Promise<Socket> {
  const { port, hostname, host } = new URL(server.url);
  const socket = connect(Number(port), hostname).on("error", () => {});
  const key = Buffer.alloc(16).toString("base64");
  const upgrade = `Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}`;
  socket.write(
    `GET /v1/responses HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${server.key}\r\n${upgrade}\r\n\r\n`,
  );
  await new Promise((resolve) => socket.once("data", resolve));
  return socket.pause();
}

/** Sends until the other end takes no more for five seconds, or `isOver`; gives the most that was unsent meanwhile. */
async function flood(socket: Socket, message: string, isOver: () => boolean): Promise<number> {
  const some = Buffer.concat(Array(Math.ceil(100_000 / message.length)).fill(frame(message)));
  let most = 0;
  for (let tries = 0; tries < 20_000 && !isOver(); tries++) {
    const isTaken = socket.write(some) || (await Promise.race([drained(socket), Bun.sleep(5_000)]));
    most = Math.max(most, bufferedBytes.byKind.unsent);
    if (isTaken === undefined) break;
    await new Promise(setImmediate);
  }
  return most;
}

function drained(socket: Socket): Promise<boolean> {
  return new Promise((resolve) => {
    socket.once("drain", () => resolve(true));
    socket.once("close", () => resolve(true));
  });
}

test("closes a WebSocket whose refusals are not read", async () => {
  const socket = await open();
  let isClosed = false;
  socket.on("close", () => {
    isClosed = true;
  });
  socket.write(frame(JSON.stringify({ type: "response.create", model, input: "Hi", store: false })));
  const most = await flood(socket, "x", () => isClosed || socket.destroyed);
  expect(most).toBeLessThan(3_000_000);
  await until(() => bufferedBytes.byKind.unsent === 0, "nothing is unsent");
  socket.destroy();
});

test("stops answering messages of a WebSocket whose answers are not read", async () => {
  const socket = await open();
  const before = bufferedBytes.byKind.requests;
  const prepares = { type: "response.create", model, input: "Hi", instructions: "x".repeat(100_000) };
  const message = JSON.stringify({ ...prepares, store: false, generate: false });
  const most = await flood(socket, message, () => socket.destroyed);
  expect(most).toBeLessThan(4_000_000);
  socket.destroy();
  await until(() => bufferedBytes.byKind.unsent === 0 && bufferedBytes.byKind.requests <= before, "nothing is held");
});
