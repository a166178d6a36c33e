// The handshake at the server: only requests by RFC 6455, 4.2 become WebSockets, and the bytes after them must be
// frames.
import { describe, expect, test } from "bun:test";
import { withinMs } from "../../tests/support/long.ts";
import { startWebSocketServer, testProtocol, until } from "../../tests/support/websocket/websocket-fixture.ts";

const key = "dGhlIHNhbXBsZSBub25jZQ==";
const fields = {
  Host: "x",
  Connection: "keep-alive, Upgrade",
  Upgrade: "WebSocket",
  "Sec-WebSocket-Version": "13",
  "Sec-WebSocket-Key": key,
  "Sec-WebSocket-Protocol": `other, ${testProtocol}`,
};

function request(changes: Record<string, string | undefined> = {}, line = "GET / HTTP/1.1", more = ""): string {
  const lines = Object.entries({ ...fields, ...changes }).filter(([, value]) => value !== undefined);
  return `${line}\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}${more}\r\n`;
}

test("answers the example of RFC 6455, 1.3 as documented", async () => {
  await using server = startWebSocketServer();
  const connection = await server.http.open();
  await connection.write(request());
  await until(() => server.links.length === 1, "the upgrade");
  server.links[0]?.close(1000, "");
  const { text } = await connection.ended();
  expect(text).toStartWith("HTTP/1.1 101 Switching Protocols\r\n");
  expect(text).toContain("sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n");
  expect(text).toContain(`sec-websocket-protocol: ${testProtocol}\r\n`);
  expect(text).toContain("\r\nupgrade: websocket\r\n");
  expect(text).toContain("\r\nconnection: upgrade\r\n");
  expect(text).not.toContain("extensions");
});

describe("requests that are not WebSocket handshakes", () => {
  const cases: [what: string, text: string][] = [
    ["without Upgrade", request({ Upgrade: undefined })],
    ["with another Upgrade", request({ Upgrade: "h2c" })],
    ["without Connection: Upgrade", request({ Connection: "keep-alive" })],
    ["with an upgrade in the middle of a word", request({ Connection: "noupgrade" })],
    ["of version 8", request({ "Sec-WebSocket-Version": "8" })],
    ["without a version", request({ "Sec-WebSocket-Version": undefined })],
    ["of two versions", request({}, undefined, "Sec-WebSocket-Version: 13\r\n")],
    ["without a key", request({ "Sec-WebSocket-Key": undefined })],
    ["with two keys", request({}, undefined, `Sec-WebSocket-Key: ${key}\r\n`)],
    ["with a key of 15 bytes", request({ "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25j" })],
    ["with a key of 17 bytes", request({ "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZXM=" })],
    ["with a key that has bits left over", request({ "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZR==" })],
    ["without our subprotocol", request({ "Sec-WebSocket-Protocol": "other" })],
    ["without any subprotocol", request({ "Sec-WebSocket-Protocol": undefined })],
    ["of HTTP/1.0", request({}, "GET / HTTP/1.0")],
    ["by POST", request({}, "POST / HTTP/1.1")],
    ["with a body", request({ "Content-Length": "1" }, undefined).concat("x")],
  ];
  for (const [what, text] of cases) {
    test(`refuses a request ${what} as a handshake`, async () => {
      await using server = startWebSocketServer();
      const connection = await server.http.open();
      await connection.write(text);
      const { answers } = await connection.answered();
      expect(answers[0]?.status).toBe(400);
      expect(answers[0]?.headers["sec-websocket-version"]).toBe("13");
      expect(server.links).toEqual([]);
      connection.socket.destroy();
    });
  }
});

test("reads frames that arrive with the handshake, and closes by the protocol", async () => {
  await using server = startWebSocketServer();
  const connection = await server.http.open();
  const masked = [0x82, 0x82, 0, 0, 0, 0, 0x68, 0x69];
  const close = [0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe8];
  await connection.write(Buffer.concat([Buffer.from(request()), Buffer.from([...masked, ...close, ...masked])]));
  const { text, closed } = await connection.ended();
  expect(closed).toBe(true);
  expect(server.listeners[0]?.messages.map(String)).toEqual(["hi"]);
  expect(server.listeners[0]?.end).toEqual({ code: 1000, reason: "" });
  expect(Buffer.from(text.slice(text.indexOf("\r\n\r\n") + 4), "latin1")).toEqual(Buffer.from([0x88, 2, 0x03, 0xe8]));
});

test("answers an unmasked frame with close code 1002 and ends", async () => {
  await using server = startWebSocketServer();
  const connection = await server.http.open();
  await connection.write(Buffer.concat([Buffer.from(request()), Buffer.from([0x82, 1, 0x68])]));
  const { text, closed } = await connection.ended();
  expect(closed).toBe(true);
  const frame = Buffer.from(text.slice(text.indexOf("\r\n\r\n") + 4), "latin1");
  expect([frame[0], frame.readUInt16BE(2)]).toEqual([0x88, 1002]);
  expect(server.listeners[0]?.end?.code).toBe(1002);
  expect(server.listeners[0]?.messages).toEqual([]);
});

test("cuts off a client that does not answer a close frame", async () => {
  await using server = startWebSocketServer();
  const connection = await server.http.open();
  await connection.write(request());
  await until(() => server.links.length === 1, "the upgrade");
  const startMs = performance.now();
  server.links[0]?.close(4000, "go");
  expect((await connection.ended(5_000)).closed).toBe(true);
  expect(performance.now() - startMs).toBeLessThan(withinMs(4_000));
  await until(() => server.listeners[0]?.end, "its end");
  expect(server.listeners[0]?.end).toEqual({ code: 4000, reason: "go" });
});

test("queues no endless pongs for a client that reads nothing", async () => {
  await using server = startWebSocketServer();
  const connection = await server.http.open();
  await connection.write(request());
  await until(() => server.links.length === 1, "the upgrade");
  connection.socket.pause();
  const ping = Buffer.concat([Buffer.from([0x89, 0xfd, 0, 0, 0, 0]), Buffer.alloc(125)]);
  const many = Buffer.concat(Array.from({ length: 5_000 }, () => ping));
  for (let index = 0; index < 30; index++) await connection.write(many);
  await until(() => (server.links[0]?.unsentBytes ?? 0) > 200 * 1024, "the answers");
  expect(server.links[0]?.unsentBytes).toBeLessThan(400 * 1024);
  connection.socket.destroy();
});
