// The bytes of a request on the wire, whatever was sent before it through the same buffer.

import { afterAll, beforeAll, expect, test } from "bun:test";
import { createServer, type Server } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { ByteSpan, type Bytes, PatchedSpan } from "../../base/bytes/byte-span.ts";
import { Cancellation } from "../../base/cancellation.ts";
import { Http1Client } from "./client.ts";
import type { ClientRequest } from "./client-contract.ts";

interface Seen {
  line: string;
  fields: string[];
  body: string;
}

const seen: Seen[] = [];
let server: Server;
let client: Http1Client;
let host: string;

beforeAll(async () => {
  server = createServer(async (request, response) => {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    const { method, url, rawHeaders } = request;
    const fields = rawHeaders.flatMap((name, i) => (i % 2 === 0 ? [`${name}: ${rawHeaders[i + 1]}`] : []));
    seen.push({ line: `${method} ${url}`, fields, body: Buffer.concat(pieces).toString() });
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  host = `127.0.0.1:${port}`;
  client = new Http1Client({ hostname: "127.0.0.1", port });
});

afterAll(() => {
  client.close();
  server.close();
});

async function send(request: ClientRequest): Promise<Seen | undefined> {
  const timeouts = { firstByteTimeoutMs: 5_000, idleTimeoutMs: 5_000 };
  const { status, body } = await client.send(request, timeouts, new Cancellation());
  expect(status).toBe(200);
  await new Promise<void>((resolve, reject) => body.flow({ data() {}, end: resolve, fail: reject }));
  return seen.pop();
}

test("writes each request's own id, length and body after its shared fields", async () => {
  const shared = [
    { accept: "application/json", authorization: "Bearer one" },
    { accept: "text/event-stream", authorization: "Bearer another" },
    {},
  ];
  const ids = ["req_1", "req_2", undefined, `req_${"a".repeat(200)}`, "x"];
  const texts = ["", "{}", '"é€😀"', "a".repeat(9), "b".repeat(10), "c".repeat(70_000), undefined];
  for (let round = 0; round < 3 * 5 * 7 * 2; round++) {
    const headers = shared[round % 3] ?? {};
    const requestId = ids[Math.floor(round / 3) % 5];
    const text = texts[Math.floor(round / 2) % 7];
    const body = text !== undefined && round % 2 === 0 ? ByteSpan.of(text) : text;
    const method = body === undefined ? "GET" : "POST";
    const request: ClientRequest = { method, path: "/v1", headers };
    if (requestId !== undefined) request.requestId = requestId;
    if (body !== undefined) request.body = body;
    expect(await send(request)).toEqual({
      line: `${method} /v1`,
      fields: [
        `host: ${host}`,
        "connection: keep-alive",
        ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
        ...(requestId === undefined ? [] : [`x-request-id: ${requestId}`]),
        ...(text === undefined ? [] : [`content-length: ${Buffer.byteLength(text)}`]),
      ],
      body: text ?? "",
    });
  }
});

test("sends a body of any size unchanged, on both sides of the buffer size", async () => {
  const whole = Buffer.from(Array.from({ length: 256 * 1024 }, (_, at) => 0x61 + ((at * 7 + (at >> 8)) % 26)));
  for (const size of [65_000, 65_200, 65_300, 65_400, 65_536, 65_537, 131_072, 256 * 1024 - 300]) {
    const body = new ByteSpan(whole, 300, 300 + size);
    const got = await send({ method: "POST", path: "/v1", headers: {}, requestId: "req_1", body });
    expect([size, got?.body === body.text]).toEqual([size, true]);
  }
  const large = Buffer.concat(Array(40).fill(whole));
  expect(
    (await send({ method: "POST", path: "/v1", headers: {}, body: ByteSpan.of(large) }))?.body === large.toString(),
  ).toBe(true);
});

test("writes another head for the same headers with another path or method", async () => {
  const headers = { accept: "*/*" };
  for (const [method, path] of [
    ["POST", "/a"],
    ["POST", "/b"],
    ["PUT", "/b"],
    ["POST", "/a"],
  ] as const) {
    expect((await send({ method, path, headers, body: "{}" }))?.line).toBe(`${method} ${path}`);
  }
});

test("refuses a request id that would begin another field or cannot be sent", () => {
  for (const requestId of ["a\r\nx: y", "a b", "é", "\0", ""]) {
    const request = { method: "POST", path: "/", headers: {}, requestId, body: "" };
    const timeouts = { firstByteTimeoutMs: 5_000, idleTimeoutMs: 5_000 };
    const sending = () => client.send(request, timeouts, new Cancellation());
    expect(sending).toThrow(TypeError);
  }
});

test("writes no fields of a request without a body into the next one", async () => {
  const request = { method: "DELETE", path: "/", headers: { accept: "*/*" }, requestId: "req_1" };
  for (const body of ["a", undefined, "b", undefined, "cc"]) {
    const got = await send({ ...request, ...(body === undefined ? {} : { body }) });
    const lengths = got?.fields.filter((field) => field.startsWith("content-length"));
    expect([got?.body, lengths]).toEqual([body ?? "", body === undefined ? [] : [`content-length: ${body.length}`]]);
  }
});

test("keeps one copy of a long unread body for many requests, patched or not", async () => {
  const sockets = new Set<{ destroy(): void }>();
  const silent = createTcpServer((socket) => {
    sockets.add(socket);
    socket.pause();
  });
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  const other = new Http1Client({ hostname: "127.0.0.1", port: (silent.address() as AddressInfo).port });
  const span = ByteSpan.of(Buffer.alloc(8e6, "x"));
  const bodies = [span, new PatchedSpan(span, 100, 105, Buffer.from("another"))];
  const before = process.memoryUsage().arrayBuffers;
  const stopping = new Cancellation();
  const timeouts = { firstByteTimeoutMs: 5_000, idleTimeoutMs: 5_000 };
  const asked = Array.from({ length: 10 }, async (_, i) => {
    await other.send({ method: "POST", path: "/", headers: {}, body: bodies[i % 2] as Bytes }, timeouts, stopping);
  });
  await Bun.sleep(200);
  expect(sockets.size).toBe(10);
  // 10 copies would be 80 MB. The limit leaves room for one copy, which `before` may not have included.
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(12e6);
  stopping.cancel(new Error("enough"));
  const ended = await Promise.allSettled(asked);
  expect(ended.map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => "rejected"));
  other.close();
  for (const socket of sockets) socket.destroy();
  silent.close();
});
