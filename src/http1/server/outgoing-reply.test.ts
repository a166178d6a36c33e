// Answers over real sockets: their bytes, streams that fall behind, and answers that break off.
import { describe, expect, test } from "bun:test";
import { get, startTestServer, type TestHttp1Server, until } from "../../../tests/support/http1/server-fixture.ts";
import { ByteSpan } from "../../base/bytes/byte-span.ts";
import type { ClientStream } from "../../base/bytes/client-stream.ts";
import type { HeaderFields, Reply } from "../message.ts";

async function textOf(it: TestHttp1Server, request: string): Promise<string> {
  const connection = await it.open();
  await connection.write(request);
  const { text } = await connection.ended();
  return text;
}

const closing = get("/", ["Connection: close"]);

describe("a whole answer", () => {
  test("sends a whole answer with status, fields, date and length, each once", async () => {
    await using it = startTestServer((_request, reply) => {
      reply.send(201, { "content-type": "text/plain", "x-tab": "a\tb", "x-latin": "\xe9", "x-empty": "" }, "h\u00e9");
    });
    const [head = "", body] = (await textOf(it, closing)).split("\r\n\r\n");
    const lines = head.split("\r\n");
    expect(lines[0]).toBe("HTTP/1.1 201 Created");
    expect(lines.slice(1).map((line) => line.replace(/^date: .*/, "date"))).toEqual([
      "content-type: text/plain",
      "x-tab: a\tb",
      "x-latin: \xe9",
      "x-empty: ",
      "date",
      "content-length: 3",
      "connection: close",
    ]);
    expect(Math.abs(Date.parse(/date: (.*)/.exec(head)?.[1] ?? "") - Date.now())).toBeLessThan(2_000);
    expect(Buffer.from(body ?? "", "latin1").toString()).toBe("h\u00e9");
  });

  test("ignores framing fields that the handler sets", async () => {
    await using it = startTestServer((_request, reply) => {
      reply.send(200, { "Content-Length": "99", "transfer-encoding": "chunked", date: "never", connection: "x" }, "ab");
    });
    const connection = await it.open();
    await connection.write(get("/"));
    const { text, answers } = await connection.answered();
    expect(text).not.toMatch(/99|chunked|never|connection/);
    expect(answers[0]?.headers["content-length"]).toBe("2");
    connection.socket.destroy();
  });

  test.each([
    ["HEAD", 200, "5"],
    ["GET", 204, undefined],
    ["GET", 304, "5"],
  ])("sends no body in an answer to %s with %p", async (method, status, length) => {
    await using it = startTestServer((_request, reply) => reply.send(status, {}, "12345"));
    const text = await textOf(it, closing.replace("GET", method));
    expect(text).toEndWith("\r\n\r\n");
    expect(/content-length: (\d+)/.exec(text)?.[1]).toBe(length as string);
  });

  test.each([
    ["text", "\u20ac".repeat(400_000)],
    ["bytes", Buffer.alloc(1_200_000, "abc")],
    ["text that just fits not", "x".repeat(65_536)],
    ["a part of a buffer", new ByteSpan(Buffer.alloc(1_200_000, "abc"), 5, 1_100_000)],
    ["a small part of a large buffer", new ByteSpan(Buffer.alloc(1_200_000, "abc"), 7, 1_000)],
  ])("delivers a large answer (%s) completely, even to a client that reads late", async (_name, body) => {
    await using it = startTestServer((_request, reply) => reply.send(200, {}, body));
    const connection = await it.open();
    connection.socket.pause();
    await connection.write(get("/1") + get("/2") + get("/3") + get("/4") + get("/5") + get("/6"));
    await until(() => it.requests.length > 0, "it came");
    await Bun.sleep(20);
    connection.socket.resume();
    const { answers } = await connection.answered(6);
    expect(answers).toHaveLength(6);
    const wanted = body instanceof ByteSpan ? body.text : body.toString();
    for (const answer of answers) expect(answer.body === wanted).toBe(true);
    connection.socket.destroy();
  });

  test("delays the next request while the client does not read the answer", async () => {
    await using it = startTestServer((_request, reply) => reply.send(200, {}, Buffer.alloc(20_000_000)));
    const connection = await it.open();
    connection.socket.pause();
    await connection.write(get("/1") + get("/2"));
    await until(() => it.requests.length === 1, "it came");
    await Bun.sleep(30);
    expect(it.requests).toHaveLength(1);
    expect(it.server.pendingRequests).toBe(1);
    connection.socket.destroy();
    await until(() => it.server.pendingRequests === 0, "it left");
  });

  test.each([
    ["a line break in a value", 200, { "x-a": "b\r\nx-injected: 1" }],
    ["a line feed in a value", 200, { "x-a": "b\nx-injected: 1" }],
    ["a NUL in a value", 200, { "x-a": "b\0" }],
    ["a DEL in a value", 200, { "x-a": "b\x7f" }],
    ["a character whose low byte is a line feed", 200, { "x-a": "b\u010ac" }],
    ["a line break in a name", 200, { "x-a: 1\r\nx-b": "2" }],
    ["an empty name", 200, { "": "2" }],
    ["a status that is none", 99, {}],
    ["an interim status", 103, {}],
    ["a head without end", 200, { "x-a": "b".repeat(70_000) }],
  ] as [string, number, HeaderFields][])("does not send an answer with %s", async (_name, status, headers) => {
    const thrown: unknown[] = [];
    await using it = startTestServer((_request, reply) => {
      for (const answer of [() => reply.send(status, headers, "x"), () => reply.stream(status, headers)]) {
        try {
          answer();
        } catch (error) {
          thrown.push(error);
        }
      }
      expect(reply.begun).toBe(false);
      reply.send(500, {}, "instead");
      expect(reply.begun).toBe(true);
    });
    const text = await textOf(it, closing);
    expect(thrown).toHaveLength(2);
    expect(text).toStartWith("HTTP/1.1 500 Internal Server Error\r\n");
    expect(text).not.toContain("injected");
    expect(it.faults).toEqual([]);
  });

  test("sends only one answer for a request", async () => {
    const thrown: unknown[] = [];
    await using it = startTestServer((_request, reply) => {
      reply.send(200, {}, "first");
      try {
        reply.send(200, {}, "second");
      } catch (error) {
        thrown.push(error);
      }
    });
    expect(await textOf(it, closing)).not.toContain("second");
    expect(String(thrown)).toContain("answered already");
  });
});

/** Starts a server that answers with streams, and returns those it has begun. */
function streaming(limits = {}) {
  const streams: ClientStream[] = [];
  const it = startTestServer(
    (_request, reply: Reply) => void streams.push(reply.stream(200, { "content-type": "text/event-stream" })),
    limits,
  );
  return { it, streams };
}

async function begin(server: ReturnType<typeof streaming>, request = get("/")) {
  const connection = await server.it.open();
  await connection.write(request);
  const stream = await until(() => server.streams.at(-1), "the stream begins");
  return { connection, stream };
}

describe("a streamed answer", () => {
  test("sends the head alone if nothing follows it at once", async () => {
    const server = streaming();
    await using _ = server.it;
    const { connection } = await begin(server);
    const head = await until(async () => (await connection.ended(1)).text || undefined, "the head arrives");
    expect(head).toStartWith("HTTP/1.1 200 OK\r\n");
    expect(head).toContain("\r\ntransfer-encoding: chunked\r\n");
    expect(head).not.toContain("content-length");
    expect(head).toEndWith("\r\n\r\n");
    connection.socket.destroy();
  });

  test("sends all writes of one task, with head and end, as one packet", async () => {
    await using it = startTestServer((_request, reply) => {
      const stream = reply.stream(200, {});
      expect(stream.write("one\xe9")).toBe(true);
      stream.write("two");
      stream.end();
      stream.write("late");
    });
    const connection = await it.open();
    let packets = 0;
    connection.socket.on("data", () => packets++);
    await connection.write(get("/"));
    const { text, answers } = await connection.answered();
    expect(text).toEndWith("\r\n\r\n7\r\none\xe9two\r\n0\r\n\r\n");
    expect(answers).toHaveLength(1);
    expect(packets).toBe(1);
    // The connection stays open for the next request.
    await connection.write(get("/2"));
    expect((await connection.answered(2)).answers).toHaveLength(2);
    connection.socket.destroy();
  });

  test("sends the last piece and the end as one packet", async () => {
    const server = streaming();
    await using _ = server.it;
    const { connection, stream } = await begin(server);
    await until(async () => (await connection.ended(1)).text || undefined, "the head arrives");
    const packets: string[] = [];
    connection.socket.on("data", (bytes: Buffer) => packets.push(bytes.toString("latin1")));
    stream.end("x".repeat(0x1a0));
    await connection.answered();
    expect(packets).toEqual([`1a0\r\n${"x".repeat(0x1a0)}\r\n0\r\n\r\n`]);
    connection.socket.destroy();
  });

  test("delivers a streamed answer piece by piece", async () => {
    const server = streaming();
    await using _ = server.it;
    const { connection, stream } = await begin(server);
    for (const piece of ["a", "bb", "ccc"]) {
      stream.write(piece);
      await until(
        async () => (await connection.ended(1)).text.endsWith(`\r\n${piece.length}\r\n${piece}\r\n`),
        `${piece} arrives`,
      );
    }
    stream.end();
    expect((await connection.answered()).answers[0]?.body).toBe("abbccc");
    connection.socket.destroy();
  });

  test.each(["1.1", "1.0"])("writes bytes between texts as one piece in HTTP/%s", async (version) => {
    const server = streaming();
    await using _ = server.it;
    const { connection, stream } = await begin(server, get("/").replace("1.1", version));
    const bytes = Buffer.from("<\xa9b>", "latin1");
    const large = Buffer.alloc(70_000, "x");
    let wanted = "";
    const write = (before: string, from: Buffer, start: number, end: number, after: string) => {
      expect(stream.writeAround(before, from, start, end, after)).toBe(true);
      wanted += before + from.toString("latin1", start, end) + after;
      // The caller may change its bytes right after the call.
      if (from === bytes) bytes.write("!!", 1);
    };
    // One byte of the character é is in `before`, the other in `bytes`.
    write("a\xc3", bytes, 1, 3, "c");
    bytes.write("de", 1);
    write("", bytes, 1, 3, "");
    write("[", large, 5, 69_999, "]");
    stream.end();
    expect(stream.writeAround("late", bytes, 0, 4, "")).toBe(true);
    if (version === "1.1") {
      const { text, answers } = await connection.answered();
      expect(answers[0]?.body === Buffer.from(wanted, "latin1").toString()).toBe(true);
      expect(text).toContain("\r\n5\r\na\xc3\xa9bc\r\n2\r\nde\r\n");
      connection.socket.destroy();
    } else {
      expect((await connection.ended()).text.endsWith(`\r\n\r\n${wanted}`)).toBe(true);
    }
  });

  test("ends a stream with the connection in HTTP/1.0", async () => {
    const server = streaming();
    await using _ = server.it;
    const { connection, stream } = await begin(server, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    stream.write("one");
    stream.end();
    const { text, closed } = await connection.ended();
    expect(text).toContain("\r\nconnection: close\r\n");
    expect(text).not.toContain("transfer-encoding");
    expect(text).toEndWith("\r\n\r\none");
    expect(closed).toBe(true);
  });

  test("sends no body of a stream to HEAD, and keeps the connection", async () => {
    await using it = startTestServer((_request, reply) => {
      const stream = reply.stream(200, {});
      stream.write("bo");
      stream.writeAround("d", Buffer.from("y"), 0, 1, "");
      stream.end();
    });
    const connection = await it.open();
    await connection.write(get("/").replace("GET", "HEAD") + get("/next"));
    const { text } = await until(async () => {
      const exchange = await connection.ended(1);
      return exchange.text.includes("0\r\n\r\n") ? exchange : undefined;
    }, "both are answered");
    expect(text.split("HTTP/1.1 200 OK")).toHaveLength(3);
    expect(text.match(/body/g)).toHaveLength(1);
    connection.socket.destroy();
  });

  test("reports when the client falls behind and when it has caught up, and loses nothing", async () => {
    const server = streaming();
    await using _ = server.it;
    const { connection, stream } = await begin(server);
    connection.socket.pause();
    let written = 0;
    let drains = 0;
    stream.onDrain = () => drains++;
    while (stream.write(`${written++}`.padStart(10_000, "."))) {
      if (written > 10_000) throw new Error("never behind");
      await Bun.sleep(0);
    }
    // Bytes that are written regardless arrive, too, in order.
    for (let n = 0; n < 3; n++) expect(stream.write(`${written++}`.padStart(10_000, "."))).toBe(false);
    const more = Buffer.from(`${written++}`.padStart(9_998, "."));
    expect(stream.writeAround("..", more, 0, more.length, "")).toBe(false);
    more.fill("!");
    expect(drains).toBe(0);
    connection.socket.resume();
    await until(() => drains === 1, "the client has caught up");
    expect(stream.write(`${written++}`.padStart(10_000, "."))).toBe(true);
    stream.end();
    const { answers } = await connection.answered();
    const expected = Array.from({ length: written }, (_unused, n) => `${n}`.padStart(10_000, ".")).join("");
    expect(answers[0]?.body === expected).toBe(true);
    expect(drains).toBe(1);
    connection.socket.destroy();
  });

  test("counts a stream as answered only after a slow client has received its end", async () => {
    const server = streaming();
    await using _ = server.it;
    const { connection, stream } = await begin(server);
    connection.socket.pause();
    const piece = "x".repeat(1_000_000);
    let written = 1;
    while (stream.write(piece) && written < 100) written++;
    stream.end();
    await Bun.sleep(10);
    expect(server.it.server.pendingRequests).toBe(1);
    connection.socket.resume();
    const { answers } = await connection.answered();
    expect(answers[0]?.body.length).toBe(written * piece.length);
    await until(() => server.it.server.pendingRequests === 0, "it is answered");
    connection.socket.destroy();
  });

  test.each(["1.1", "1.0"])(
    "leaves an aborted stream incomplete in HTTP/%s, after the earlier bytes",
    async (version) => {
      const server = streaming();
      await using _ = server.it;
      const { connection, stream } = await begin(server, get("/").replace("1.1", version) + get("/hidden"));
      let reset = false;
      connection.socket.on("error", () => (reset = true));
      stream.writeAround("f", Buffer.from("irs"), 0, 3, "t");
      await until(async () => (await connection.ended(1)).text.includes("first"), "the first arrives");
      stream.write("second");
      stream.abort();
      stream.write("late");
      stream.end();
      const { text, closed } = await connection.ended();
      expect(closed).toBe(true);
      expect(text).not.toMatch(/0\r\n\r\n|late/);
      if (version === "1.0") expect(reset).toBe(true);
      else expect(text).toContain("second");
      expect(server.it.requests).toHaveLength(1);
      expect(server.it.server.pendingRequests).toBe(0);
    },
  );

  test("makes fetch fail for an aborted stream", async () => {
    await using it = startTestServer((_request, reply) => {
      const stream = reply.stream(200, {});
      stream.write("first");
      setTimeout(() => stream.abort(), 20);
    });
    const response = await fetch(it.url);
    expect(response.text()).rejects.toThrow();
  });

  test("discards writes to a stream whose client has left", async () => {
    const server = streaming();
    await using _ = server.it;
    const { connection, stream } = await begin(server);
    connection.socket.destroy();
    await until(() => server.it.requests[0]?.clientGone.cancelled, "it left");
    for (let n = 0; n < 100; n++) expect(stream.write("x".repeat(100_000))).toBe(true);
    stream.end();
    stream.abort();
    expect(server.it.server.pendingRequests).toBe(0);
    expect(server.it.faults).toEqual([]);
  });

  test("cancels at once when a client leaves that was behind", async () => {
    const server = streaming();
    await using _ = server.it;
    const { connection, stream } = await begin(server);
    connection.socket.pause();
    while (stream.write("x".repeat(1_000_000)));
    connection.socket.destroy();
    await until(() => server.it.requests[0]?.clientGone.cancelled, "it left");
    expect(server.it.server.pendingRequests).toBe(0);
  });

  test("does not let a finished reply affect the next one", async () => {
    const server = streaming();
    await using _ = server.it;
    const { connection, stream: old } = await begin(server);
    old.end();
    await connection.answered();
    await connection.write(get("/2"));
    const next = await until(() => server.streams[1], "the next begins");
    old.write("wrong");
    old.abort();
    old.end();
    next.write("right");
    next.end();
    expect((await connection.answered(2)).answers[1]?.body).toBe("right");
    connection.socket.destroy();
  });
});
