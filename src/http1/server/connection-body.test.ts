// Bodies of requests over real sockets: what is read, what is not, and how they end early.

import { afterEach, describe, expect, test } from "bun:test";
import { echo, get, post, startTestServer, until } from "../../../tests/support/http1/server-fixture.ts";
import { bufferedBytes } from "../../base/bytes/buffered-bytes.ts";
import { ByteSpan } from "../../base/bytes/byte-span.ts";
import { type IncomingRequest, type Reply, RequestBodyError } from "../message.ts";
import { ConnectionBody } from "./connection-body.ts";

const heldBefore = bufferedBytes.total;
afterEach(() => until(() => bufferedBytes.total === heldBefore, "all that was held is given back"));

const upload = (length: number, lines: readonly string[] = []) =>
  `${["POST /up HTTP/1.1", "Host: x", `Content-Length: ${length}`, ...lines].join("\r\n")}\r\n\r\n`;
const chunkedHead = "POST /up HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;

/** Reads every body up to `maxBytes`; answers 200 with its length, or 400 with the fault. */
function reading(maxBytes: number, faults: RequestBodyError[] = []) {
  return async (request: IncomingRequest, reply: Reply) => {
    try {
      const body = await request.readBody(maxBytes);
      reply.send(200, {}, `${body.length} ${request.bodyRead}`);
    } catch (error) {
      faults.push(error as RequestBodyError);
      reply.send(400, {}, (error as RequestBodyError).fault);
    }
  };
}

describe("the body of a request", () => {
  test("delivers a body that arrived with its head synchronously, and only once", async () => {
    let body: ByteSpan | Promise<ByteSpan> | undefined;
    await using it = startTestServer((request, reply) => {
      expect([request.hasBody, request.bodyRead]).toEqual([true, false]);
      body = request.readBody(5);
      expect(request.bodyRead).toBe(true);
      expect(() => request.readBody(5)).toThrow("read once");
      reply.send(200, {}, "");
    });
    const connection = await it.open();
    await connection.write(post("/", "12345"));
    expect((await connection.answered()).answers[0]?.headers["connection"]).toBeUndefined();
    expect(body).toBeInstanceOf(ByteSpan);
    expect((body as ByteSpan).text).toBe("12345");
    expect(it.faults).toEqual([]);
    connection.socket.destroy();
  });

  test("delivers a chunked body that arrived with its head synchronously", async () => {
    const bodies: unknown[] = [];
    await using it = startTestServer((request, reply) => {
      bodies.push(request.readBody(100));
      reply.send(200, {}, `${request.bodyRead}`);
    });
    const connection = await it.open();
    await connection.write(`${chunkedHead + chunk("ab") + chunk("cde")}0\r\n\r\n${get("/next")}`);
    const { answers } = await connection.answered(2);
    expect(bodies.map((body) => (body as ByteSpan).text)).toEqual(["abcde", ""]);
    expect(answers.map((answer) => answer.body)).toEqual(["true", "true"]);
    connection.socket.destroy();
  });

  test.each([
    ["with its length", upload(300_000) + "x".repeat(300_000)],
    ["in chunks", `${chunkedHead + chunk("x".repeat(100_000)).repeat(3)}0\r\n\r\n`],
  ])("joins a body %s from many pieces, and keeps the connection", async (_name, bytes) => {
    await using it = startTestServer(reading(300_000));
    const connection = await it.open();
    for (let at = 0; at < bytes.length; at += 7_001) {
      await connection.write(bytes.slice(at, at + 7_001));
      if (at < 30_000) await Bun.sleep(1);
    }
    await connection.write(get("/next"));
    const { answers } = await connection.answered(2);
    expect(answers.map((answer) => answer.body)).toEqual(["300000 true", "0 true"]);
    connection.socket.destroy();
  });

  test("keeps the bytes of a body in order", async () => {
    await using it = startTestServer(echo);
    const text = Array.from({ length: 5_000 }, (_, n) => `${n};`).join("");
    const connection = await it.open();
    for (const part of [upload(text.length), text.slice(0, 3), text.slice(3, 9_000), text.slice(9_000)]) {
      await connection.write(part);
      await Bun.sleep(2);
    }
    expect((await connection.answered()).answers[0]?.body).toBe(`POST /up ${text}`);
    connection.socket.destroy();
  });

  test("treats a body of length 0 as none", async () => {
    await using it = startTestServer(echo);
    const connection = await it.open();
    await connection.write(upload(0) + get("/next"));
    await connection.answered(2);
    expect(it.requests.map((request) => [request.hasBody, request.bodyRead])).toEqual([
      [false, true],
      [false, true],
    ]);
    connection.socket.destroy();
  });
});

describe("a body above the limit", () => {
  test.each([
    ["declared, all here", upload(101) + "x".repeat(101)],
    ["declared, not here", upload(101)],
    ["declared beyond reason", upload(9_007_199_254_740_991)],
    ["in chunks, all here", `${chunkedHead + chunk("x".repeat(101))}0\r\n\r\n`],
    ["in chunks, not at their end", chunkedHead + chunk("x".repeat(60)) + chunk("x".repeat(41))],
  ])("refuses a body above the limit as soon as that is known: %s", async (_name, bytes) => {
    await using it = startTestServer(reading(100));
    const connection = await it.open();
    await connection.write(bytes);
    const { answers, closed } = await connection.ended();
    expect(answers.map((answer) => [answer.status, answer.body, answer.headers["connection"]])).toEqual([
      [400, "too_large", "close"],
    ]);
    expect(closed).toBe(true);
  });

  test("refuses a body above the limit while it is read", async () => {
    await using it = startTestServer(reading(100_000));
    const connection = await it.open();
    await connection.write(chunkedHead);
    await until(() => it.requests.length === 1, "it is read");
    for (let n = 0; n < 3; n++) await connection.write(chunk("x".repeat(40_000)));
    expect((await connection.ended()).answers[0]?.body).toBe("too_large");
  });

  test("accepts a body of exactly the limit", async () => {
    await using it = startTestServer(reading(100));
    const connection = await it.open();
    await connection.write(upload(100) + "x".repeat(100) + chunkedHead);
    await connection.write(`${chunk("x".repeat(100))}0\r\n\r\n`);
    expect((await connection.answered(2)).answers.map((answer) => answer.body)).toEqual(["100 true", "100 true"]);
    connection.socket.destroy();
  });
});

describe("an unread upload", () => {
  const refused = async (request: IncomingRequest) => {
    try {
      await request.readBody(1_000);
    } catch {
      // No answer is sent yet.
    }
  };
  test.each([
    ["with its length", upload(10_000_000_000), "x".repeat(65_536), () => {}],
    ["in chunks", chunkedHead, chunk("x".repeat(65_536)), () => {}],
    ["found too large, but not answered yet,", chunkedHead, chunk("x".repeat(65_536)), refused],
  ])("does not read an upload %s beyond a window", async (_name, head, piece, onRequest) => {
    await using it = startTestServer(onRequest);
    const connection = await it.open();
    await connection.write(head);
    const before = process.memoryUsage.rss();
    let sent = 0;
    // 6 MB unsent are more than the kernel could still accept once this process is less busy.
    while (sent < 64_000_000 && connection.socket.writableLength < 6_000_000) {
      connection.socket.write(piece);
      sent += piece.length;
      await Bun.sleep(0);
    }
    // The bytes in the kernel's buffers count as sent although nobody has read them.
    expect(sent).toBeLessThan(32_000_000);
    expect(process.memoryUsage.rss() - before).toBeLessThan(48_000_000);
    await Bun.sleep(40);
    expect(connection.socket.writableLength).toBeGreaterThan(500_000);
    expect(it.server.pendingRequests).toBe(1);
    connection.socket.destroy();
  });

  test("reads an upload to its end once the handler asks for it", async () => {
    let ask = () => {};
    await using it = startTestServer((request, reply) => {
      ask = () => void reading(8_000_000)(request, reply);
    });
    const connection = await it.open();
    const written = connection.write(upload(8_000_000) + "x".repeat(8_000_000));
    await until(() => it.requests.length === 1, "it came");
    expect(await Promise.race([written, Bun.sleep(50).then(() => "held")])).toBe("held");
    ask();
    expect((await connection.answered()).answers[0]?.body).toBe("8000000 true");
    connection.socket.destroy();
  });

  test.each([
    ["one write after the other", false],
    ["all of it before it reads", true],
  ])("answers an unread upload without a reset if the client sends %s", async (_name, late) => {
    await using it = startTestServer((_request, reply) => reply.send(401, {}, "who are you?"));
    const connection = await it.open();
    let failed: string | undefined;
    connection.socket.on("error", (error) => (failed = error.message));
    if (late) connection.socket.pause();
    await connection.write(upload(6_000_000));
    for (let n = 0; n < 60; n++) await connection.write(Buffer.alloc(100_000));
    connection.socket.resume();
    const { answers, closed } = await connection.ended();
    expect(answers[0]).toMatchObject({ status: 401, body: "who are you?", headers: { connection: "close" } });
    expect(closed).toBe(true);
    expect(failed).toBeUndefined();
    connection.socket.destroy();
  });

  test("cuts off an unread upload in the end", async () => {
    await using it = startTestServer((_request, reply) => reply.send(401, {}, ""), { lingerBytes: 1_000_000 });
    const connection = await it.open();
    connection.socket.pause();
    await connection.write(upload(1e12));
    let sent = 0;
    while (sent < 200_000_000 && (await connection.write(Buffer.alloc(1_000_000)))) sent += 1_000_000;
    expect(sent).toBeLessThan(50_000_000);
  });

  test("handles no request that is hidden behind an unread upload", async () => {
    await using it = startTestServer((_request, reply) => reply.send(401, {}, ""));
    const connection = await it.open();
    await connection.write(upload(3) + get("/hidden"));
    const { answers } = await connection.ended();
    expect(answers.map((answer) => answer.status)).toEqual([401]);
    expect(it.requests).toHaveLength(1);
  });
});

describe("Expect: 100-continue", () => {
  test("sends 100-continue only when the handler asks for the body", async () => {
    let ask = () => {};
    await using it = startTestServer((request, reply) => {
      ask = () => void reading(100)(request, reply);
    });
    const connection = await it.open();
    await connection.write(upload(5, ["Expect: 100-Continue"]));
    await until(() => it.requests.length === 1, "it came");
    expect((await connection.ended(20)).text).toBe("");
    ask();
    await until(async () => (await connection.ended(1)).text === "HTTP/1.1 100 Continue\r\n\r\n", "leave is given");
    await connection.write("12345");
    expect((await connection.answered()).answers[0]?.body).toBe("5 true");
    connection.socket.destroy();
  });

  test.each([
    ["the body is here already", `${upload(5, ["Expect: 100-continue"])}12345`, 200],
    ["the body begins already", `${upload(5, ["Expect: 100-continue"])}123`, 200],
    ["the body is too large", upload(500, ["Expect: 100-continue"]), 400],
    ["the client speaks HTTP/1.0", upload(5, ["Expect: 100-continue"]).replace("1.1", "1.0"), 200],
  ])("does not send 100-continue if %s", async (_name, bytes, status) => {
    await using it = startTestServer(reading(100));
    const connection = await it.open();
    await connection.write(bytes);
    await until(() => it.requests.length === 1, "it came");
    const missing = 5 - (bytes.split("\r\n\r\n")[1] as string).length;
    if (status === 200) await connection.write("12345".slice(5 - missing));
    const { answers, text } = await connection.answered();
    expect(answers[0]?.status).toBe(status);
    expect(text).not.toContain("100 Continue");
    connection.socket.destroy();
  });
});

describe("an incomplete body", () => {
  test.each(["end", "destroy", "resetAndDestroy"] as const)(
    "reports a body as incomplete if the client leaves (%s)",
    async (how) => {
      const faults: RequestBodyError[] = [];
      await using it = startTestServer(reading(1_000, faults));
      const connection = await it.open();
      await connection.write(`${upload(100)}half`);
      await until(() => it.requests.length === 1, "it came");
      connection.socket[how]();
      await until(() => faults.length === 1, "it is told");
      expect(faults[0]).toBeInstanceOf(RequestBodyError);
      expect(faults[0]?.fault).toBe("incomplete");
      expect(it.requests[0]?.clientGone.cancelled).toBe(true);
      expect(it.requests[0]?.bodyRead).toBe(false);
    },
  );

  test("reports a body as incomplete to a handler that asks after the client left", async () => {
    await using it = startTestServer(() => {});
    const connection = await it.open();
    await connection.write(`${upload(100)}half`);
    await until(() => it.requests.length === 1, "it came");
    connection.socket.destroy();
    await until(() => it.server.pendingRequests === 0, "it left");
    expect(() => it.requests[0]?.readBody(1_000)).toThrow(expect.objectContaining({ fault: "incomplete" }));
  });

  test.each([
    ["no number", "zz\r\n"],
    ["longer than it says", "3\r\nabcd\r\n0\r\n\r\n"],
    ["ended by line feeds", "3\nabc\n0\n\n"],
  ])(
    "reports a body as malformed if a chunk is %s, arrived or not, and reads nothing after it",
    async (_name, chunks) => {
      for (const together of [true, false]) {
        await using it = startTestServer(reading(1_000));
        const connection = await it.open();
        await connection.write(together ? chunkedHead + chunks + get("/hidden") : chunkedHead);
        await until(() => it.requests.length === 1, "it came");
        if (!together) await connection.write(chunks + get("/hidden"));
        const { answers, closed } = await connection.ended();
        expect(answers.map((answer) => [answer.status, answer.body])).toEqual([[400, "malformed"]]);
        expect(closed).toBe(true);
        expect(it.requests).toHaveLength(1);
      }
    },
  );
});

test("frees each copied piece of a body with a declared length, and the first when a second arrives", async () => {
  const body = new ConnectionBody(200_000, 1_000_000);
  const whole = body.read(1_000_000);
  const first = Buffer.alloc(120_000, "a");
  body.push(first, 0);
  expect([body.isCopied, first.length]).toEqual([false, 120_000]);
  body.push(Buffer.alloc(80_000, "b"), 0);
  expect([body.isCopied, first.length]).toEqual([true, 0]);
  expect((await whole).text).toBe("a".repeat(120_000) + "b".repeat(80_000));
});

test("a body with a declared length reserves no more than that length, so the last free bytes are usable", async () => {
  const body = new ConnectionBody(200_000, 1_000_000);
  body.push(Buffer.alloc(100_000, "a"), 0);
  body.push(Buffer.alloc(50_000, "b"), 0);
  const memoryAccount = { held: 0, most: 0 };
  body.setMemoryAccount({
    hold(bytes) {
      memoryAccount.held += bytes;
      memoryAccount.most = Math.max(memoryAccount.most, memoryAccount.held);
      return undefined;
    },
  });
  const whole = body.read(1_000_000);
  body.push(Buffer.alloc(50_000, "c"), 0);
  expect((await whole).length).toBe(200_000);
  expect(memoryAccount).toEqual({ held: 200_000, most: 200_000 });
});

describe("a body that is read as a stream", () => {
  /** Answers with the received body, once it has ended or failed. */
  function flowing(taken: string[], onData: (source: ReturnType<IncomingRequest["flowBody"]>) => void = () => {}) {
    return (request: IncomingRequest, reply: Reply) => {
      const source = request.flowBody(1_000_000);
      source.flow({
        data(bytes) {
          taken.push(bytes.text);
          onData(source);
        },
        end: () => reply.send(200, {}, `${request.bodyRead}`),
        fail: (error) => reply.send(400, {}, (error as RequestBodyError).fault),
      });
    };
  }

  test("delivers a streamed body without its framing, and keeps the connection", async () => {
    const taken: string[] = [];
    await using it = startTestServer(flowing(taken));
    const connection = await it.open();
    await connection.write(chunkedHead + chunk("ab"));
    await until(() => taken.join("") === "ab", "the first piece");
    await connection.write(`${chunk("cde")}0\r\n\r\n${upload(3)}x`);
    await until(() => taken.join("") === "abcdex", "the next body begins");
    await connection.write("yz");
    const { answers } = await connection.answered(2);
    expect([answers.map(({ body }) => body), taken.join("")]).toEqual([["true", "true"], "abcdexyz"]);
    connection.socket.destroy();
  });

  test("sends 100-continue for a streamed body", async () => {
    await using it = startTestServer(flowing([]));
    const connection = await it.open();
    await connection.write(upload(2, ["Expect: 100-continue"]));
    await until(async () => (await connection.ended(1)).text === "HTTP/1.1 100 Continue\r\n\r\n", "leave is given");
    await connection.write("ab");
    expect((await connection.answered()).answers[0]?.body).toBe("true");
    connection.socket.destroy();
  });

  test("fails a streamed body whose client is silent, but not while its receiver is paused", async () => {
    const taken: string[] = [];
    await using it = startTestServer(
      flowing(taken, (source) => {
        if (taken.length > 1) return;
        source.pause();
        setTimeout(() => source.resume(), 300);
      }),
      { bodyIdleMs: 100 },
    );
    const connection = await it.open();
    await connection.write(`${upload(9)}a`);
    const startedMs = performance.now();
    const { answers } = await connection.answered();
    expect(answers.map(({ body }) => body)).toEqual(["incomplete"]);
    expect(performance.now() - startedMs).toBeGreaterThan(300);
    expect(taken.join("")).toBe("a");
  });
});
