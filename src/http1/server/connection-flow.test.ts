// Bodies of requests that flow to a sink, over real sockets: complete, as they arrive, unbuffered, and within limits of
// length and time.
import { expect, test } from "bun:test";
import { startTestServer, until } from "../../../tests/support/http1/server-fixture.ts";
import type { BodySink, BodySource } from "../../base/bytes/body-source.ts";
import { bufferedBytes } from "../../base/bytes/buffered-bytes.ts";
import { noBytes } from "../../base/bytes/byte-span.ts";
import { RequestBodyError } from "../message.ts";

const head = (length: number | string) => `POST / HTTP/1.1\r\nHost: x\r\n${length}\r\n\r\n`;
const declared = (length: number) => head(`Content-Length: ${length}`);
const chunked = head("Transfer-Encoding: chunked");
const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;

class Taker implements BodySink {
  text = "";
  bytes = 0;
  ended = false;
  fault: unknown;

  data(bytes: { text: string; length: number }): void {
    this.bytes += bytes.length;
    if (this.bytes < 100_000) this.text += bytes.text;
  }

  end(): void {
    this.ended = true;
  }

  fail(error: unknown): void {
    this.fault = error;
  }
}

function flowing(maxBytes: number, limits: Parameters<typeof startTestServer>[1] = {}) {
  const taker = new Taker();
  const state: { source?: BodySource; thrown?: unknown } = {};
  const it = startTestServer((request, reply) => {
    try {
      const source = request.flowBody(maxBytes);
      state.source = source;
      source.flow({
        data: (bytes) => taker.data(bytes),
        end() {
          taker.end();
          reply.send(200, {}, `${taker.bytes} ${request.bodyRead}`);
        },
        fail(error) {
          taker.fail(error);
          if (error instanceof RequestBodyError && error.fault !== "incomplete") reply.send(400, {}, error.fault);
        },
      });
    } catch (error) {
      state.thrown = error;
      reply.send(400, {}, "thrown");
    }
  }, limits);
  return { it, taker, state };
}

test("streams a body that arrived with its head, later or in chunks, and serves the next request", async () => {
  const { it, taker } = flowing(1_000);
  await using _ = it;
  const connection = await it.open();
  await connection.write(`${declared(5)}whole`);
  await connection.answered(1);
  await connection.write(`${declared(10)}first`);
  await until(() => taker.text === "wholefirst", "the first half is there");
  await connection.write("after");
  await connection.answered(2);
  await connection.write(`${chunked}${chunk("ab")}`);
  await until(() => taker.text.endsWith("ab"), "the first chunk is there");
  await connection.write(`${chunk("cde")}0\r\n\r\n${declared(0)}`);
  const { answers } = await connection.answered(4);
  expect(taker.text).toBe("wholefirstafterabcde");
  expect(answers.map(({ body }) => body)).toEqual(["5 true", "15 true", "20 true", "20 true"]);
  connection.socket.destroy();
});

test("refuses a streamed body above the limit by its length, or once it exceeds the limit", async () => {
  for (const sent of [`${declared(101)}x`, `${chunked}${chunk("x".repeat(60))}${chunk("y".repeat(60))}`]) {
    const { it, taker } = flowing(100);
    await using _ = it;
    const connection = await it.open();
    await connection.write(sent);
    expect((await connection.answered(1)).answers[0]?.body).toBe("too_large");
    expect(taker.bytes).toBeLessThanOrEqual(100);
    connection.socket.destroy();
  }
  const { it, state } = flowing(3);
  await using _ = it;
  const connection = await it.open();
  await connection.write(`${declared(4)}here`);
  expect((await connection.answered(1)).answers[0]?.body).toBe("thrown");
  expect(state.thrown).toMatchObject({ fault: "too_large" });
  connection.socket.destroy();
});

test("fails a streamed body once if it breaks off or is malformed", async () => {
  const left = flowing(1_000);
  await using _ = left.it;
  const leaving = await left.it.open();
  await leaving.write(`${declared(10)}half`);
  await until(() => left.taker.text === "half", "half of it is there");
  leaving.socket.destroy();
  await until(() => left.taker.fault !== undefined, "it is told");
  expect([left.taker.fault, left.taker.ended]).toMatchObject([{ fault: "incomplete" }, false]);
  const wrong = flowing(1_000);
  await using __ = wrong.it;
  const connection = await wrong.it.open();
  await connection.write(`${chunked}${chunk("ab")}`);
  await until(() => wrong.taker.text === "ab", "the first chunk is there");
  await connection.write("no chunk\r\n");
  expect((await connection.answered(1)).answers[0]?.body).toBe("malformed");
  connection.socket.destroy();
});

test("leaves a paused body with its sender, holds no bytes, and counts no delay", async () => {
  const before = bufferedBytes.total;
  const { it, taker, state } = flowing(1e9, { bodyIdleMs: 300 });
  await using _ = it;
  const connection = await it.open();
  const length = 64 * 1024 * 1024;
  await connection.write(declared(length));
  await until(() => state.source !== undefined, "it flows");
  state.source?.pause();
  const piece = Buffer.alloc(1024 * 1024, "x");
  let sent = 0;
  const sending = (async () => {
    for (; sent < length; sent += piece.length) await connection.write(piece);
  })();
  await Bun.sleep(900);
  // The kernel's buffers at both ends hold a few megabytes.
  expect(sent).toBeLessThan(length / 2);
  expect(taker.fault).toBeUndefined();
  expect(bufferedBytes.total - before).toBeLessThan(2 * piece.length);
  state.source?.resume();
  await sending;
  expect((await connection.answered(1, 20_000)).answers[0]?.body).toBe(`${length} true`);
  connection.socket.destroy();
});

test("gives a sender its full time again after the receiver's pause", async () => {
  const { it, taker, state } = flowing(1_000, { bodyIdleMs: 400 });
  await using _ = it;
  const connection = await it.open();
  await connection.write(`${declared(10)}first`);
  await until(() => taker.text === "first", "the first half is there");
  state.source?.pause();
  await Bun.sleep(1_000);
  state.source?.resume();
  await Bun.sleep(250);
  expect(taker.fault).toBeUndefined();
  await connection.write("after");
  expect((await connection.answered(1)).answers[0]?.body).toBe("10 true");
  connection.socket.destroy();
});

test("fails a body whose sender falls silent midway", async () => {
  const { it, taker } = flowing(1_000, { bodyIdleMs: 150 });
  await using _ = it;
  const connection = await it.open();
  await connection.write(`${declared(10)}half`);
  await until(() => taker.fault !== undefined, "it is told");
  expect(taker.fault).toMatchObject({ fault: "incomplete", message: expect.stringContaining("in time") });
  connection.socket.destroy();
});

test("streams a body that arrived in pieces before it was read, and spares other bytes if it breaks off", async () => {
  for (const way of ["flows", "is passed"] as const) {
    const taker = new Taker();
    let start = () => {};
    await using it = startTestServer((request, reply) => {
      if (request.target === "/next") return reply.send(200, {}, "");
      start = () => (way === "flows" ? request.flowBody(1_000) : request.passBody()).flow(taker);
    });
    const connection = await it.open();
    await connection.write(declared(100));
    await until(() => it.requests.length === 1, "the head is there");
    for (const piece of ["one", "two", "three"]) {
      await connection.write(piece);
      await Bun.sleep(20);
    }
    start();
    expect(taker.text).toBe("onetwothree");
    connection.socket.destroy();
    await until(() => taker.fault !== undefined, "it is told");
    // `noBytes` is shared by all requests and must stay empty.
    expect(noBytes.text).toBe("");
  }
});
