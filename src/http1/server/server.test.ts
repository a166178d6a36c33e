// The server over real sockets: which requests it reads from a connection, in which order, and when it closes one.
import { describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { raw } from "../../../tests/hostile/raw-client.ts";
import { echo, get, post, startTestServer, until } from "../../../tests/support/http1/server-fixture.ts";
import type { ClientStream } from "../../base/bytes/client-stream.ts";
import type { IncomingRequest, Reply } from "../message.ts";
import { startHttp1Server } from "./server.ts";

describe("a server connection", () => {
  test("serves one request after another on a connection", async () => {
    await using it = startTestServer(echo);
    const connection = await it.open();
    for (const n of [1, 2, 3]) {
      await connection.write(post(`/${n}`, `body ${n}`));
      const { answers } = await connection.answered(n);
      expect(answers[n - 1]).toMatchObject({ status: 200, body: `POST /${n} body ${n}` });
    }
    connection.socket.destroy();
  });

  test("passes the request and the peer's address to the handler", async () => {
    await using it = startTestServer(echo);
    const connection = await it.open();
    await connection.write(get("/a?b=c", ["X-One: 1", "x-one: 2"]));
    await connection.answered();
    const [request] = it.requests;
    expect(request).toMatchObject({
      method: "GET",
      target: "/a?b=c",
      peer: "127.0.0.1",
      hasBody: false,
      bodyRead: true,
    });
    expect(request?.headers.get("x-one")).toBe("1, 2");
    connection.socket.destroy();
  });

  test.each([
    ["HTTP/1.1", [], false],
    ["HTTP/1.1", ["Connection: close"], true],
    ["HTTP/1.1", ["Connection: keep-alive"], false],
    ["HTTP/1.0", [], true],
    ["HTTP/1.0", ["Connection: keep-alive"], false],
  ])("decides whether %s with %p closes the connection: %p", async (version, lines, closes) => {
    await using it = startTestServer(echo);
    const connection = await it.open();
    await connection.write(`${[`GET /1 ${version}`, "Host: x", ...lines].join("\r\n")}\r\n\r\n`);
    const first = await (closes ? connection.ended() : connection.answered());
    expect(first.answers).toHaveLength(1);
    expect(first.answers[0]?.headers["connection"]).toBe(
      closes ? "close" : version === "HTTP/1.0" ? "keep-alive" : (undefined as never),
    );
    expect(first.closed).toBe(closes);
    if (!closes) {
      await connection.write(get("/2"));
      expect((await connection.answered(2)).answers).toHaveLength(2);
    }
    connection.socket.destroy();
  });

  test("closes a connection after an answer that says so", async () => {
    await using it = startTestServer((_request, reply) => reply.send(200, { connection: "close" }, "bye"));
    const connection = await it.open();
    await connection.write(get("/1") + get("/2"));
    const { answers, closed } = await connection.ended();
    expect(answers.map((answer) => answer.headers["connection"])).toEqual(["close"]);
    expect(closed).toBe(true);
    expect(it.requests).toHaveLength(1);
  });

  test("ignores one empty line before a request", async () => {
    await using it = startTestServer(echo);
    const connection = await it.open();
    await connection.write(`\r\n${get("/1")}\r\n${get("/2")}`);
    expect((await connection.answered(2)).answers.map((answer) => answer.body)).toEqual(["GET /1 ", "GET /2 "]);
    connection.socket.destroy();
  });
});

describe("concurrent streams", () => {
  /** Begins two streams, each on a connection of its own, and waits until their heads were sent. */
  async function twoStreams() {
    const streams: ClientStream[] = [];
    const it = startTestServer((_request, reply) => void streams.push(reply.stream(200, {})));
    const connections = [await it.open(), await it.open()] as const;
    for (const [n, connection] of connections.entries()) {
      await connection.write(get("/1"));
      await until(() => streams.length === n + 1, "it came");
    }
    const [a, b] = streams as [ClientStream, ClientStream];
    await new Promise(setImmediate);
    return { it, connections, streams, a, b };
  }

  test("delivers writes to two streams of one turn in order, and serves the next request after the end", async () => {
    const { it, connections, streams, a, b } = await twoStreams();
    await using _ = it;
    for (let n = 0; n < 300; n++) {
      a.write(`a${n},`);
      b.write(`b${n},`.repeat(n));
    }
    a.end("end of a");
    b.end("end of b");
    // The requests stay pending until the turn ends, when the gathered bytes are sent.
    expect(it.server.pendingRequests).toBe(2);
    const counted = (text: (n: number) => string) => Array.from({ length: 300 }, (_, n) => text(n)).join("");
    const bodies = [`${counted((n) => `a${n},`)}end of a`, `${counted((n) => `b${n},`.repeat(n))}end of b`];
    for (const [n, connection] of connections.entries()) {
      const { answers } = await connection.answered();
      expect(answers.map(({ body }) => body)).toEqual([bodies[n] ?? ""]);
    }
    expect(it.server.pendingRequests).toBe(0);
    await connections[0].write(get("/2"));
    await until(() => streams.length === 3, "the next request came");
    streams[2]?.end("next");
    expect((await connections[0].answered(2)).answers[1]?.body).toBe("next");
    expect(it.faults).toEqual([]);
    for (const { socket } of connections) socket.destroy();
  });

  test("loses nothing of a stream that ends in the turn in which the server closes", async () => {
    const { it, connections, a, b } = await twoStreams();
    await using _ = it;
    a.end("all of it");
    b.write("a part");
    it.server.close();
    expect((await connections[0].ended()).answers.map(({ body }) => body)).toEqual(["all of it"]);
    expect((await connections[1].ended()).answers).toHaveLength(0);
    expect(it.server.pendingRequests).toBe(0);
  });

  test("breaks off an aborted stream after its earlier bytes, beside another stream", async () => {
    const { it, connections, a, b } = await twoStreams();
    await using _ = it;
    b.write("b");
    a.write("a");
    a.abort();
    const { answers, closed, text } = await connections[0].ended();
    expect([answers.length, closed]).toEqual([0, true]);
    expect(text).toEndWith("\r\n1\r\na\r\n");
    b.end();
    expect((await connections[1].answered()).answers.map(({ body }) => body)).toEqual(["b"]);
    connections[1].socket.destroy();
  });

  test("loses nothing that is written to a stream during another's end", async () => {
    const streams: ClientStream[] = [];
    await using it = startTestServer(
      (_request, reply) => void streams.push(reply.stream(200, { connection: "close" })),
    );
    const connections = [await it.open(), await it.open(), await it.open()] as const;
    for (const [n, connection] of connections.entries()) {
      await connection.write(get("/1"));
      await until(() => streams.length === n + 1, "it came");
    }
    await new Promise(setImmediate);
    it.requests[0]?.onOver({ over: () => streams[1]?.end("end of b") });
    streams[0]?.end("a");
    streams[1]?.write("b,");
    expect((await connections[1].ended()).answers.map(({ body }) => body)).toEqual(["b,end of b"]);
    expect((await connections[0].ended()).answers.map(({ body }) => body)).toEqual(["a"]);
    connections[2].socket.destroy();
  });

  test("continues a stream when another client leaves in the same turn", async () => {
    const { it, connections, a, b } = await twoStreams();
    await using _ = it;
    connections[0].socket.resetAndDestroy();
    for (let n = 0; n < 50 && !it.requests[0]?.clientGone.cancelled; n++) {
      a.write("lost");
      b.write("kept");
      await Bun.sleep(1);
    }
    await until(() => it.requests[0]?.clientGone.cancelled, "it is known to have left");
    a.end();
    b.end();
    const { answers } = await connections[1].answered();
    expect(answers[0]?.body).toMatch(/^(kept)+$/);
    await until(() => it.server.pendingRequests === 0, "both are over");
    expect(it.faults).toEqual([]);
    connections[1].socket.destroy();
  });

  test("pauses the writer of a slow client while another stream continues", async () => {
    const { it, connections, a, b } = await twoStreams();
    await using _ = it;
    connections[0].socket.pause();
    let wasNotified = false;
    a.onDrain = () => {
      wasNotified = true;
    };
    const piece = "x".repeat(10_000);
    let pieces = 0;
    for (let isBehind = false; !isBehind; pieces++) {
      isBehind = !a.write(piece);
      b.write(".");
      await new Promise(setImmediate);
      if (pieces > 10_000) throw new Error("Its client takes nothing, and is never behind.");
    }
    expect(wasNotified).toBe(false);
    b.end();
    const taken = (await connections[1].answered()).answers[0]?.body;
    expect(taken).toBe(".".repeat(pieces));
    a.end("end");
    connections[0].socket.resume();
    const { answers } = await connections[0].answered();
    expect(answers[0]?.body === `${piece.repeat(pieces)}end`).toBe(true);
    for (const { socket } of connections) socket.destroy();
  });
});

describe("pipelined requests", () => {
  test("handles pipelined requests one after the other", async () => {
    const replies: Reply[] = [];
    await using it = startTestServer((_request, reply) => void replies.push(reply));
    const connection = await it.open();
    await connection.write(get("/1") + post("/2", "two") + get("/3"));
    for (let n = 1; n <= 3; n++) {
      await until(() => replies.length === n, `request ${n} begins`);
      expect(it.server.pendingRequests).toBe(1);
      it.requests[n - 1]?.readBody(100);
      replies[n - 1]?.send(200, {}, `answer ${n}`);
      await connection.answered(n);
    }
    const { answers } = await connection.answered(3);
    expect(answers.map((answer) => answer.body)).toEqual(["answer 1", "answer 2", "answer 3"]);
    connection.socket.destroy();
  });

  test("answers 2,000 pipelined requests of one write in order, without recursion", async () => {
    await using it = startTestServer(echo);
    const connection = await it.open();
    await connection.write(Array.from({ length: 2000 }, (_, n) => get(`/${n}`)).join(""));
    await until(() => it.requests.length === 2000, "all came");
    const text = (await connection.answered(2000)).answers.map((answer) => answer.body).join("");
    expect(text).toBe(Array.from({ length: 2000 }, (_, n) => `GET /${n} `).join(""));
    connection.socket.destroy();
  });

  test("bounds the buffered requests behind a running one", async () => {
    const replies: Reply[] = [];
    await using it = startTestServer((_request, reply) => void replies.push(reply), { windowBytes: 4_096 });
    const connection = await it.open();
    const piece = get("/x", [`X-Filler: ${"x".repeat(1_000)}`]);
    connection.socket.write(get("/first"));
    await until(() => replies.length === 1, "the first begins");
    const before = process.memoryUsage.rss();
    let sent = 0;
    while (sent < 32_000_000 && connection.socket.writableLength < 1_000_000) {
      connection.socket.write(piece.repeat(100));
      sent += 100 * piece.length;
      await Bun.sleep(0);
    }
    expect(sent).toBeLessThan(32_000_000);
    expect(process.memoryUsage.rss() - before).toBeLessThan(40_000_000);
    expect(it.requests).toHaveLength(1);
    // The server reads the next request once one is answered.
    for (let n = 0; n < 50; n++) {
      replies[n]?.send(200, {}, "");
      await until(() => replies.length > n + 1, "the next begins");
    }
    connection.socket.destroy();
  });
});

describe("malformed requests", () => {
  test.each([
    ["a TLS hello", `\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03${"x".repeat(200)}`, 400],
    ["line feeds alone", "GET / HTTP/1.1\nHost: x\n\n", 400],
    ["an empty line and another", "\r\n\r\n", 400],
    ["binary noise", "\xff\xfe\x00\x01", 400],
    ["a request line that does not end", `GET /${"a".repeat(40_000)}`, 414],
    ["a target that is too long", get(`/${"a".repeat(20_000)}`), 414],
    ["a head that is too long", get("/", [`X: ${"a".repeat(40_000)}`]), 431],
    ["a head that does not end", `GET / HTTP/1.1\r\n${"X: aaaaaaaa\r\n".repeat(4_000)}`, 431],
    ["another version", "GET / HTTP/3.0\r\nHost: x\r\n\r\n", 505],
    ["an unknown expectation", get("/", ["Expect: the-unexpected"]), 417],
    ["two lengths", get("/", ["Content-Length: 1", "Content-Length: 2"]), 400],
    ["no host", "GET / HTTP/1.1\r\n\r\n", 400],
  ])("answers %s once and ends the connection", async (_name, bytes, status) => {
    await using it = startTestServer(echo);
    const connection = await it.open();
    await connection.write(Buffer.from(bytes, "latin1"));
    // Sent while the answer is under way or after it: the server must not read this request.
    await connection.write(get("/hidden"));
    const { answers, closed } = await connection.ended();
    expect(answers.map((answer) => answer.status)).toEqual([status]);
    expect(answers[0]?.headers["connection"]).toBe("close");
    expect(answers[0]?.body).toBe(it.malformed[0]?.reason as string);
    expect(it.malformed).toEqual([{ status, reason: expect.stringMatching(/\.$/) as never, peer: "127.0.0.1" }]);
    expect(closed).toBe(true);
    expect(it.requests).toHaveLength(0);
    expect(it.faults).toEqual([]);
  });

  test.each([
    ["a TLS hello", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"],
    ["a line feed alone", "GET / HTTP/1.1\nHost: x\n"],
    ["a line feed alone in a later piece", "GET / HTTP/1.1\r\nHost: x\r\nX: a"],
  ])("answers a malformed request at once, without waiting for its end: %s", async (_name, bytes) => {
    await using it = startTestServer(echo);
    const connection = await it.open();
    await connection.write(bytes);
    if (bytes.endsWith("a")) {
      await Bun.sleep(5);
      await connection.write("b\n");
    }
    const { answers, closed } = await connection.ended(2_000);
    expect(answers.map((answer) => answer.status)).toEqual([400]);
    expect(closed).toBe(true);
  });

  test("answers a malformed request after the valid ones before it", async () => {
    await using it = startTestServer(echo);
    const connection = await it.open();
    await connection.write(`${get("/1")}${post("/2", "2")}nonsense\r\n\r\n${get("/hidden")}`);
    const { answers } = await connection.ended();
    expect(answers.map((answer) => answer.status)).toEqual([200, 200, 400]);
    expect(it.requests).toHaveLength(2);
  });

  test("delivers the answer to a malformed request to a client that still sends, without a reset", async () => {
    await using it = startTestServer(echo);
    const connection = await it.open();
    let failed: string | undefined;
    connection.socket.on("error", (error) => (failed = error.message));
    // The client reads nothing until it has sent everything.
    connection.socket.pause();
    await connection.write("GET nowhere HTTP/1.1\r\n\r\n");
    for (let n = 0; n < 64; n++) expect(await connection.write(Buffer.alloc(64 * 1024))).toBe(true);
    connection.socket.resume();
    const { answers } = await connection.ended();
    expect(answers[0]?.status).toBe(400);
    expect(failed).toBeUndefined();
    connection.socket.destroy();
  });
});

describe("a client that disconnects", () => {
  async function leave(how: "end" | "destroy" | "resetAndDestroy") {
    const seen: string[] = [];
    const it = startTestServer((request) => {
      request.clientGone.onCancel(() => seen.push("left"));
    });
    const connection = await it.open();
    await connection.write(get("/"));
    await until(() => it.requests.length === 1, "it came");
    connection.socket[how]();
    await until(() => seen.length === 1, "it is told");
    expect(it.server.pendingRequests).toBe(0);
    await it[Symbol.asyncDispose]();
  }

  test.each(["end", "destroy", "resetAndDestroy"] as const)(
    "cancels the request of a client that disconnects (%s)",
    leave,
  );

  test("cancels nothing if a client disconnects after its answer, even for late listeners", async () => {
    await using it = startTestServer(echo);
    const connection = await it.open();
    await connection.write(get("/1") + get("/2"));
    await connection.answered(2);
    const early = it.requests[0]?.clientGone;
    connection.socket.destroy();
    await Bun.sleep(20);
    expect(early?.cancelled).toBe(false);
    expect(it.requests[1]?.clientGone.cancelled).toBe(false);
  });

  test("tells late listeners that the client has disconnected, and discards answers", async () => {
    let reply: Reply | undefined;
    await using it = startTestServer((_request, given) => (reply = given));
    const connection = await it.open();
    await connection.write(get("/"));
    await until(() => reply, "it came");
    connection.socket.destroy();
    await until(() => it.server.pendingRequests === 0, "it left");
    expect(it.requests[0]?.clientGone.cancelled).toBe(true);
    reply?.send(200, {}, "nobody");
    expect(() => reply?.send(200, {}, "twice")).toThrow("answered already");
    expect(it.faults).toEqual([]);
  });
});

describe("exceptions in handlers", () => {
  test("reports an exception in onRequest and ends only that connection", async () => {
    await using it = startTestServer((request, reply) => {
      if (request.target === "/bad") throw new Error("a fault");
      echo(request, reply);
    });
    const other = await it.open();
    const connection = await it.open();
    await connection.write(get("/bad") + get("/2"));
    const { answers, closed } = await connection.ended();
    expect(answers).toHaveLength(0);
    expect(closed).toBe(true);
    expect(it.faults).toEqual([new Error("a fault")]);
    expect(it.server.pendingRequests).toBe(0);
    await other.write(get("/ok"));
    expect((await other.answered()).answers[0]?.status).toBe(200);
    other.socket.destroy();
  });

  test("reports an exception in a listener for disconnects, without other effects", async () => {
    await using it = startTestServer((request) => {
      request.clientGone.onCancel(() => {
        throw new Error("a listener's fault");
      });
    });
    const connection = await it.open();
    await connection.write(get("/"));
    await until(() => it.requests.length === 1, "it came");
    connection.socket.destroy();
    await until(() => it.faults.length === 1, "it is told");
    expect(it.server.pendingRequests).toBe(0);
  });
});

describe("the HTTP server", () => {
  test("reports a used port by its code", async () => {
    await using it = startTestServer(echo);
    const taken = () =>
      startHttp1Server({
        hostname: "127.0.0.1",
        port: it.server.port,
        onRequest: echo,
        onMalformed: () => ({ headers: {}, body: "" }),
        onFault() {},
      });
    expect(taken).toThrow(expect.objectContaining({ code: "EADDRINUSE" }));
  });

  test.skipIf(process.platform !== "linux")(
    "shares a port between servers, and goes on when another one stops",
    async () => {
      const start = (name: string, port: number) =>
        startHttp1Server({
          hostname: "127.0.0.1",
          port,
          shared: true,
          onRequest: (_request, reply) => reply.send(200, {}, name),
          onMalformed: () => ({ headers: {}, body: "" }),
          onFault() {},
        });
      const first = start("first", 0);
      const second = start("second", first.port);
      const url = `http://127.0.0.1:${first.port}`;
      const answerer = async () => (await raw(url, get("/"))).answers[0]?.body;
      const met = new Set<string | undefined>();
      await until(async () => met.add(await answerer()).size === 2, "both have answered");
      first.close();
      expect(await answerer()).toBe("second");
      second.close();
    },
  );

  // long-lived: httpConnection.total, request.total
  test("answers 503 above its connection limit, and accepts more once others have left", async () => {
    await using it = startTestServer(echo, { connections: 2 });
    const [first, second] = [await it.open(), await it.open()];
    for (const connection of [first, second]) {
      await connection.write(get("/"));
      expect((await connection.answered()).answers[0]?.status).toBe(200);
    }
    const third = await it.open();
    const refused = await third.ended();
    expect(refused.answers[0]).toMatchObject({ status: 503, headers: { "retry-after": "1", connection: "close" } });
    first.socket.destroy();
    third.socket.destroy();
    await until(async () => {
      const next = await it.open();
      await next.write(get("/"));
      const { answers } = await next.answered();
      next.socket.destroy();
      return answers[0]?.status === 200;
    }, "there is room again");
    second.socket.destroy();
  });

  test("cuts off connections without an answer if even the refused ones are too many", async () => {
    await using it = startTestServer(echo, { connections: 2, lingerMs: 10_000 });
    const sockets = Array.from({ length: 80 }, () => {
      const socket = connect({ host: "127.0.0.1", port: it.server.port, allowHalfOpen: true });
      socket.on("error", () => {});
      socket.resume();
      return socket;
    });
    let cut = 0;
    for (const socket of sockets) socket.on("close", () => cut++);
    await until(() => cut >= 76, "those beyond the refused are cut");
    expect(it.malformed.length).toBeLessThanOrEqual(2);
    for (const socket of sockets) socket.destroy();
  });

  // long-lived: httpConnection.server
  test("stops: accepts no connections, closes idle ones, answers open requests and takes no more", async () => {
    const replies: Reply[] = [];
    await using it = startTestServer((_request: IncomingRequest, reply) => void replies.push(reply));
    const idle = await it.open();
    const busy = await it.open();
    await busy.write(get("/1") + get("/2"));
    await until(() => replies.length === 1, "it came");
    let stopped = false;
    const stopping = it.server.stop().then(() => (stopped = true));
    expect((await idle.ended()).closed).toBe(true);
    expect(await it.open().catch((error: { code: string }) => error.code)).toBe("ECONNREFUSED");
    expect(stopped).toBe(false);
    replies[0]?.send(200, {}, "done");
    await stopping;
    const { answers, closed } = await busy.ended();
    expect(answers.map((answer) => answer.headers["connection"])).toEqual(["close"]);
    expect(closed).toBe(true);
    expect(it.requests).toHaveLength(1);
    await it.server.stop();
  });

  test("leaves: serves on, and closes each connection after its next answer, with a notice", async () => {
    const streams: ClientStream[] = [];
    await using it = startTestServer((request, reply) => {
      if (request.target === "/stream") streams.push(reply.stream(200, {}));
      else reply.send(200, {}, "done");
    });
    const [idle, streaming] = [await it.open(), await it.open()];
    await streaming.write(get("/stream"));
    await until(() => streams.length === 1, "it came");
    it.server.leave();
    for (const connection of [idle, await it.open()]) {
      await connection.write(get("/"));
      const { answers, closed } = await connection.ended();
      expect([answers[0]?.headers["connection"], answers[0]?.body, closed]).toEqual(["close", "done", true]);
    }
    // The stream's head did not announce the close, so its client may send another request, which is answered.
    streams[0]?.end();
    await streaming.answered(1);
    await streaming.write(get("/"));
    const { answers } = await streaming.ended();
    expect<(string | undefined)[]>(answers.map(({ headers }) => headers["connection"])).toEqual([undefined, "close"]);
  });

  test("stops after a running stream has ended properly, with its connection", async () => {
    const streams: ClientStream[] = [];
    await using it = startTestServer((_request, reply) => void streams.push(reply.stream(200, {})));
    const connection = await it.open();
    await connection.write(get("/1") + get("/2"));
    await until(() => streams.length === 1, "it came");
    const stopping = it.server.stop();
    streams[0]?.write("all of it");
    streams[0]?.end();
    await stopping;
    const { answers, closed } = await connection.ended();
    expect(answers.map((answer) => answer.body)).toEqual(["all of it"]);
    expect(closed).toBe(true);
    expect(it.requests).toHaveLength(1);
  });

  test("closes after a late reader has received its whole answer", async () => {
    const replies: Reply[] = [];
    await using it = startTestServer((_request: IncomingRequest, reply) => void replies.push(reply));
    const connection = await it.open();
    connection.socket.pause();
    await connection.write(get("/"));
    await until(() => replies.length === 1, "it came");
    const stopping = it.server.stop();
    const body = Buffer.alloc(1_500_000, "x");
    replies[0]?.send(200, {}, body);
    await stopping;
    it.server.close();
    await Bun.sleep(50);
    connection.socket.resume();
    const { answers } = await connection.ended();
    expect(answers.map((answer) => answer.body.length)).toEqual([body.length]);
  });

  test("closes by force: cancels requests and breaks off answers", async () => {
    await using it = startTestServer((_request, reply) => void reply.stream(200, {}).write("begun"));
    const connection = await it.open();
    await connection.write(get("/"));
    await until(() => it.requests.length === 1, "it came");
    it.server.close();
    expect(it.requests[0]?.clientGone.cancelled).toBe(true);
    expect(it.server.pendingRequests).toBe(0);
    const { answers, closed } = await connection.ended();
    expect(answers).toHaveLength(0);
    expect(closed).toBe(true);
  });
});
