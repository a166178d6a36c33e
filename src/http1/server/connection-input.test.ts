// The bytes that a connection keeps between its requests.
import { expect, test } from "bun:test";
import { get, post } from "../../../tests/support/http1/server-fixture.ts";
import type { ByteSpan } from "../../base/bytes/byte-span.ts";
import { ConnectionBody } from "./connection-body.ts";
import { ConnectionInput } from "./connection-input.ts";
import { defaultLimits } from "./server-limits.ts";

test("keeps only the beginning of an incomplete head, not the requests that came with it", () => {
  const limits = defaultLimits();
  const whole = get(`/${"x".repeat(10_000)}`);
  const count = 50;
  const inputs: ConnectionInput[] = [];
  Bun.gc(true);
  const before = process.memoryUsage().arrayBuffers;
  for (let n = 0; n < 100; n++) {
    const input = new ConnectionInput(limits);
    const bytes = Buffer.allocUnsafeSlow(count * whole.length + 5);
    bytes.write(`${whole.repeat(count)}GET /`, "latin1");
    input.append(bytes, 0);
    for (let taken = 0; taken < count; taken++) expect(input.take()?.head.method).toBe("GET");
    expect(input.take()).toBeUndefined();
    inputs.push(input);
  }
  Bun.gc(true);
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(10_000_000);
  for (const input of inputs) {
    input.append(Buffer.from("end HTTP/1.1\r\nHost: x\r\n\r\n"), 0);
    expect(input.take()?.head.target).toBe("/end");
  }
});

/** Returns the bodies of all requests in `parts`, read in the way of a connection. */
function bodiesOf(parts: readonly Buffer[]): string[] {
  const input = new ConnectionInput(defaultLimits());
  const bodies: string[] = [];
  let begun: ConnectionBody | undefined;
  for (const part of parts) {
    const end = begun ? begun.push(part, 0) : 0;
    if (begun?.complete === false) continue;
    if (begun) bodies.push((begun.read(1_000) as ByteSpan).text);
    begun = undefined;
    if (end < part.length) input.append(part, end);
    while (!begun && input.take()) {
      const { body } = input;
      if (!(body instanceof ConnectionBody)) bodies.push(body?.text ?? "none");
      else if (body.complete) bodies.push((body.read(1_000) as ByteSpan).text);
      else begun = body;
    }
  }
  return bodies;
}

test("reads a body between others in one buffer exactly, with a length or in chunks, however it is cut", () => {
  const chunked = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nGrüß\r\n1\r\ne\r\n0\r\n\r\n";
  const whole = Buffer.from(post("/", "Grüße") + chunked + get("/") + post("/", "\r\n") + post("/", "last"));
  const wanted = ["Grüße", "Grüße", "none", "\r\n", "last"];
  for (let at = 0; at <= whole.length; at++) {
    expect([at, ...bodiesOf([whole.subarray(0, at), whole.subarray(at)])]).toEqual([at, ...wanted]);
  }
  for (const size of [1, 2, 3, 7, 40]) {
    const parts = Array.from({ length: Math.ceil(whole.length / size) }, (_, n) =>
      whole.subarray(n * size, (n + 1) * size),
    );
    expect([size, ...bodiesOf(parts)]).toEqual([size, ...wanted]);
  }
});

test.each(["!x", "7", "~", "G"])("reads a request with the method %s in one piece and byte by byte", (method) => {
  const bytes = Buffer.from(`${method} / HTTP/1.1\r\nHost: x\r\n\r\n`);
  const whole = new ConnectionInput(defaultLimits());
  whole.append(bytes, 0);
  expect(whole.take()?.head.method).toBe(method);
  const cut = new ConnectionInput(defaultLimits());
  for (const byte of bytes.subarray(0, -1)) {
    cut.append(Buffer.of(byte), 0);
    expect(cut.take()).toBeUndefined();
  }
  cut.append(bytes.subarray(-1), 0);
  expect(cut.take()?.head.method).toBe(method);
});

test("leaves a delivered body unchanged while more arrives behind it", () => {
  const input = new ConnectionInput(defaultLimits());
  const bytes = Buffer.from(`${post("/", "first")}GET /`);
  for (const [start, end] of [
    [0, 10],
    [10, 20],
    [20, bytes.length],
  ])
    input.append(bytes.subarray(start, end), 0);
  expect(input.take()?.head.target).toBe("/");
  const { body } = input;
  for (let count = 0; count < 2_000; count++) input.append(Buffer.from("x"), 0);
  expect((body as ByteSpan).text).toBe("first");
  input.append(Buffer.from(" HTTP/1.1\r\nHost: x\r\n\r\n"), 0);
  expect(input.take()?.head.target).toBe(`/${"x".repeat(2_000)}`);
});
