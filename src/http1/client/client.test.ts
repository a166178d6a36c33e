// The client over real sockets: which connection a request takes, what it sends, and how each end is reported.

import { afterEach, describe, expect, spyOn, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  ok,
  type RawConnection,
  type RawUpstream,
  type RawUpstreamOptions,
  rawUpstream,
} from "../../../tests/support/http1/raw-upstream.ts";
import { withinMs } from "../../../tests/support/long.ts";
import { bodyOf, readAll } from "../../base/bytes/body-source.ts";
import { AccountMemory, BufferedBytes } from "../../base/bytes/buffered-bytes.ts";
import { ByteSpan } from "../../base/bytes/byte-span.ts";
import { Cancellation } from "../../base/cancellation.ts";
import { whenSettled } from "../../base/deferred.ts";
import { Http1Client, type Http1ClientOptions } from "./client.ts";
import { type AnswerTimeouts, ClientError, type ClientRequest, type ClientResponse } from "./client-contract.ts";

const opened: Disposable[] = [];

afterEach(() => {
  for (const each of opened.splice(0)) each[Symbol.dispose]();
});

interface Setup {
  upstream: RawUpstream;
  client: Http1Client;
}

function setup(
  answer: (connection: RawConnection, request: string) => void,
  options: Http1ClientOptions & RawUpstreamOptions = {},
): Setup {
  const upstream = rawUpstream(answer, options);
  const { unix } = options;
  const client = new Http1Client(
    { hostname: "127.0.0.1", port: upstream.port, ...(unix === undefined ? {} : { unix }) },
    options,
  );
  opened.push(upstream, { [Symbol.dispose]: () => client.close() });
  return { upstream, client };
}

const post: ClientRequest = { method: "POST", path: "/x", headers: {}, body: "{}" };
const get: ClientRequest = { method: "GET", path: "/x", headers: {} };

interface SendOptions extends AnswerTimeouts {
  cancellation: Cancellation;
}

function send(client: Http1Client, request = post, options: Partial<SendOptions> = {}): Promise<ClientResponse> {
  const { cancellation = new Cancellation(), ...timeouts } = options;
  const all = { firstByteTimeoutMs: 3_000, idleTimeoutMs: 3_000, ...timeouts };
  return Promise.resolve(client.send(request, all, cancellation));
}

async function text({ body }: ClientResponse): Promise<string> {
  return (await readAll(body, 100_000_000, new Cancellation(), () => {})).text;
}

async function ask(client: Http1Client, request = post, options: Partial<SendOptions> = {}): Promise<string> {
  return text(await send(client, request, options));
}

async function refusal(promise: Promise<unknown>): Promise<ClientError> {
  const error = await promise.then(
    (value) => new Error(`was answered: ${JSON.stringify(value)}`),
    (reason: unknown) => reason,
  );
  if (error instanceof ClientError) return error;
  throw error;
}

async function until(condition: () => boolean, what: string): Promise<void> {
  const deadline = performance.now() + 2_000;
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`never came true: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

const answerOk = ({ socket }: RawConnection, request: string) => {
  socket.write(ok(request.slice(request.indexOf("\r\n\r\n") + 4)));
};

describe("requests and connections", () => {
  test("sends exactly the request in HTTP/1.1, with host and length", async () => {
    const { upstream, client } = setup(answerOk);
    await ask(client, { method: "POST", path: "/a/b?c=d", headers: { "x-a": "b", accept: "*/*" }, body: '"ä€😀"' });
    expect(upstream.requests).toEqual([
      Buffer.from(
        `POST /a/b?c=d HTTP/1.1\r\nhost: 127.0.0.1:${upstream.port}\r\nconnection: keep-alive\r\nx-a: b\r\naccept: */*\r\ncontent-length: 11\r\n\r\n"ä€😀"`,
      ).toString("latin1"),
    ]);
    expect(await ask(client, { ...post, body: ByteSpan.of(new Uint8Array([0x61, 0x62])) })).toBe("ab");
    expect(await ask(client, { ...post, body: "" })).toBe("");
    await ask(client, get);
    expect(upstream.requests[3]).not.toContain("content-length");
  });

  test("delivers an answer and its body synchronously as they arrive", async () => {
    const { client } = setup(answerOk);
    const received: string[] = [];
    await new Promise<void>((resolve, reject) => {
      const timeouts = { firstByteTimeoutMs: 3_000, idleTimeoutMs: 3_000 };
      whenSettled(
        client.send({ ...post, body: "hello" }, timeouts, new Cancellation()),
        ({ status, body }) => {
          queueMicrotask(() => received.push("later"));
          received.push(String(status));
          body.flow({
            data: (bytes) => received.push(bytes.text),
            end: () => {
              received.push("end");
              setImmediate(resolve);
            },
            fail: reject,
          });
        },
        reject,
      );
    });
    expect(received).toEqual(["200", "hello", "end", "later"]);
  });

  test("sends one request after the other on one connection", async () => {
    const { upstream, client } = setup(answerOk);
    for (let index = 0; index < 20; index++) expect(await ask(client, { ...post, body: `${index}` })).toBe(`${index}`);
    expect(upstream.connections).toHaveLength(1);
  });

  test("opens a connection for each concurrent request, and reuses the last used one first", async () => {
    const { upstream, client } = setup(answerOk);
    await Promise.all(Array.from({ length: 5 }, () => ask(client)));
    expect(upstream.connections).toHaveLength(5);
    const before = upstream.connections.map(({ requests }) => requests.length);
    for (let index = 0; index < 6; index++) await ask(client);
    const added = upstream.connections.map(({ requests }, index) => requests.length - (before[index] as number));
    expect(added.sort()).toEqual([0, 0, 0, 0, 6]);
  });

  // long-lived: upstreamConnection.total
  test("queues requests in order beyond the connection limit, and refuses them beyond the queue", async () => {
    const held: (() => void)[] = [];
    const { upstream, client } = setup((connection, request) => held.push(() => answerOk(connection, request)), {
      maxConnections: 2,
      maxWaiting: 3,
    });
    const answers = Array.from({ length: 5 }, (_, index) => ask(client, { ...post, body: `${index}` }));
    expect((await refusal(send(client))).fault).toBe("connect");
    for (let index = 0; index < 5; index++) {
      await until(() => held.length > index, "the request came");
      held[index]?.();
    }
    expect(await Promise.all(answers)).toEqual(["0", "1", "2", "3", "4"]);
    expect(upstream.connections).toHaveLength(2);
    expect(upstream.requests.map((request) => request.at(-1)).slice(2)).toEqual(["2", "3", "4"]);
  });

  test("cancels or times out a queued request without sending it", async () => {
    const { upstream, client } = setup(() => {}, { maxConnections: 1 });
    const first = send(client, post, { firstByteTimeoutMs: 400 });
    const cancellation = new Cancellation();
    const second = send(client, post, { cancellation });
    const third = send(client, post, { firstByteTimeoutMs: 100 });
    cancellation.cancel("enough");
    expect(await second.catch((reason: unknown) => reason)).toBe("enough");
    expect((await refusal(third)).fault).toBe("first_byte_timeout");
    expect((await refusal(first)).fault).toBe("first_byte_timeout");
    expect(upstream.requests).toHaveLength(1);
    expect(client.counts).toEqual({ connections: 0, free: 0, waiting: 0 });
  });

  test("frees the place of a failed connection for a queued request", async () => {
    const { client } = setup(
      (connection, request) => (connection.index === 0 ? connection.socket.terminate() : answerOk(connection, request)),
      { maxConnections: 1 },
    );
    const [first, second] = [send(client), ask(client)];
    expect((await refusal(first)).fault).toBe("broken");
    expect(await second).toBe("{}");
  });

  test("sends a body larger than the socket buffer completely, however slowly it is read", async () => {
    const body = Buffer.alloc(20_000_000, "0123456789abcde");
    const received: Buffer[] = [];
    let left = Number.NaN;
    const upstream = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      socket: {
        data(socket, bytes) {
          if (received.push(bytes) === 1) left = bytes.indexOf("\r\n\r\n") + 4 + body.length;
          left -= bytes.length;
          if (left <= 0) socket.write(ok("taken"));
          if (received.length > 5) return;
          socket.pause();
          setTimeout(() => socket.resume(), 5);
        },
      },
    });
    const client = new Http1Client({ hostname: "127.0.0.1", port: upstream.port });
    opened.push({ [Symbol.dispose]: () => upstream.stop(true) }, { [Symbol.dispose]: () => client.close() });
    expect(await ask(client, { ...post, body: ByteSpan.of(body) })).toBe("taken");
    expect(left).toBe(0);
    expect(Buffer.concat(received).subarray(-body.length).equals(body)).toBe(true);
    expect(client.counts).toEqual({ connections: 1, free: 1, waiting: 0 });
  });

  test("sends requests over a Unix socket", async () => {
    const directory = mkdtempSync(join(tmpdir(), "headrace-client-"));
    opened.push({ [Symbol.dispose]: () => rmSync(directory, { recursive: true }) });
    const { client } = setup(answerOk, { unix: join(directory, "s") });
    expect(await ask(client)).toBe("{}");
    expect(await ask(client)).toBe("{}");
  });

  test.each(["a b", "a\r\nx: y", "a\0", "ä"])("throws a caller's fault for a path or field with %j", async (value) => {
    const { upstream, client } = setup(answerOk);
    expect(() => client.send({ ...post, path: `/${value}` }, {} as AnswerTimeouts, new Cancellation())).toThrow();
    expect(() => send(client, { ...post, path: `/${value}` })).toThrow(TypeError);
    if (value !== "a b") expect(() => send(client, { ...post, headers: { x: value } })).toThrow(TypeError);
    expect(upstream.connections).toHaveLength(0);
  });
});

describe("answers", () => {
  test.each([
    ["a length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello"],
    ["a length of 0", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", ""],
    [
      "chunks",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nA: b\r\n\r\n",
      "hello",
    ],
    [
      "an interim answer before",
      `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nA: b\r\n\r\n${ok("hello")}`,
      "hello",
    ],
    ["204", "HTTP/1.1 204 No Content\r\n\r\n", ""],
    ["304 with a length", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", ""],
  ])("reads answers with %s whole, in any pieces, and reuses the connection", async (_, bytes, body) => {
    const { upstream, client } = setup(({ socket, requests }) => {
      if (requests.length === 1) {
        socket.write(bytes);
        return;
      }
      let sent = 0;
      const next = () => {
        socket.write(bytes[sent++] as string);
        if (sent < bytes.length) setImmediate(next);
      };
      next();
    });
    expect(await ask(client)).toBe(body);
    expect(await ask(client)).toBe(body);
    expect(upstream.connections).toHaveLength(1);
  });

  test("reads no body of an answer to HEAD, whatever its length says", async () => {
    const { upstream, client } = setup(({ socket }) => socket.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"));
    const head = { method: "HEAD", path: "/", headers: {} };
    expect(await ask(client, head)).toBe("");
    expect(await ask(client, head)).toBe("");
    expect(upstream.connections).toHaveLength(1);
  });

  test.each([
    ["a length", "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nGrüße", ""],
    ["chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nGr\r\n5\r\nüße\r\n0\r\n\r\n", ""],
    ["a length, and something behind it", "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nGrüße", "surplus"],
    ["a length, in two reads", "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nGr", "üßesurplus"],
  ])("delivers exactly the body of answers with %s, whatever surrounds it", async (name, bytes, more) => {
    const { client } = setup(({ socket }) => {
      socket.write(name.endsWith("reads") ? bytes : bytes + more);
      if (name.endsWith("reads")) setTimeout(() => socket.write(more), 20);
    });
    expect([await ask(client), await ask(client)]).toEqual(["Grüße", "Grüße"]);
  });

  test("ends an answer without a length with its connection, and fails it if the connection breaks", async () => {
    const { client } = setup(({ socket, index }) => {
      socket.write("HTTP/1.1 200 OK\r\n\r\nhello");
      if (index === 0) socket.end();
      else setTimeout(() => socket.terminate(), 20);
    });
    expect(await ask(client)).toBe("hello");
    expect((await refusal(ask(client))).fault).toBe("broken");
  });

  test.each([
    ["an early end of a length", "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello"],
    ["an early end of chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n"],
  ])("reports answers with %s as broken, after the received part", async (_, bytes) => {
    const { client } = setup(({ socket }) => {
      socket.write(bytes);
      socket.end();
    });
    const { body } = await send(client);
    let came = "";
    const error = await new Promise<unknown>((resolve) => {
      body.flow({
        data(piece) {
          came += piece.text;
        },
        end: () => resolve("ended"),
        fail: resolve,
      });
    });
    expect(came).toBe("hello");
    expect(error).toBeInstanceOf(ClientError);
    expect(error).toMatchObject({ fault: "broken", answerBegan: true });
  });

  test.each([
    ["no HTTP", "SSH-2.0-OpenSSH\r\n\r\n"],
    ["HTTP/2", "HTTP/2.0 200 OK\r\n\r\n"],
    ["a folded field", "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n"],
    ["two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx"],
    ["a length and chunks", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
    ["an unknown coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nx"],
    ["a switch of protocols", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"],
    ["a head without end", `HTTP/1.1 200 OK\r\nA: ${"b".repeat(70_000)}`],
    ["a long head", `HTTP/1.1 200 OK\r\nA: ${"b".repeat(70_000)}\r\n\r\n`],
    ["interim answers without end", "HTTP/1.1 100 Continue\r\nA: b\r\n\r\n".repeat(3_000)],
  ])("refuses answers with %s and closes their connection", async (_, bytes) => {
    const { upstream, client } = setup(({ socket }) => socket.write(bytes));
    const error = await refusal(send(client));
    expect(error).toMatchObject({ fault: "malformed", answerBegan: false });
    await until(() => upstream.connections[0]?.closed === true, "the connection is closed");
    expect(client.counts.connections).toBe(0);
  });

  test("charges bytes of a paused answer to its receiver, and fails the answer beyond its share", async () => {
    const long = ok("x".repeat(8_000_000));
    const { client } = setup(({ socket }) => void socket.write(long));
    const ledger = new BufferedBytes(2 * 1024 * 1024);
    const memoryAccount = ledger.memoryAccount(new AccountMemory());
    const paused = async () => {
      const { body } = await send(client, { ...post, memoryAccount });
      const ends: unknown[] = [];
      let came = 0;
      // Meanwhile much arrives in the kernel's buffer; one read then delivers it after the bytes that came with the
      // head.
      await new Promise((resolve) => setTimeout(resolve, 10));
      body.flow({
        data(bytes) {
          came += bytes.length;
          // Takes 3 ms, so that the client delivers each read in parts.
          for (const endMs = performance.now() + 3; performance.now() < endMs; );
          if (came > 300_000) body.pause();
        },
        end: () => ends.push("ended"),
        fail: (error) => ends.push(error),
      });
      await until(() => came > 300_000, "some of it came");
      return { body, ends };
    };
    const all: Awaited<ReturnType<typeof paused>>[] = [];
    while (all.length < 100 && !all.some(({ ends }) => ends.length > 0)) {
      all.push(await paused());
      await new Promise(setImmediate);
      expect(ledger.total).toBeLessThanOrEqual(ledger.maxBytesOfKey);
    }
    expect(all.flatMap(({ ends }) => ends)).toEqual([expect.objectContaining({ code: "rate_limit_exceeded" })]);
    for (const { body } of all) body.cancel();
    await until(() => ledger.total === 0, "all is given back");
  });

  test.each([["each", undefined], ...[1, 2, 3, 4, 5, 6, 7].map((nth) => [`the ${nth}.`, nth] as const)])(
    "completes a paused answer that resumes in the same turn without room: at %s piece",
    async (_, nth) => {
      const length = 1_000_000;
      const { client } = setup(({ socket }) => void socket.write(ok("x".repeat(length))));
      const { body } = await send(client, { ...post, memoryAccount: new BufferedBytes(1_000).visitors });
      await new Promise((resolve) => setTimeout(resolve, 10));
      const { promise, resolve } = Promise.withResolvers<unknown>();
      let [came, pieces] = [0, 0];
      body.flow({
        data(bytes) {
          came += bytes.length;
          if (nth !== undefined && ++pieces !== nth) return;
          body.pause();
          body.resume();
        },
        end: () => resolve("ended"),
        fail: resolve,
      });
      expect([await promise, came]).toEqual(["ended", length]);
    },
  );

  test("delivers all chunks of one read at once, and data before a fault", async () => {
    const { client, upstream } = setup(({ socket }) =>
      socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n"),
    );
    const { body } = await send(client);
    const { promise, resolve } = Promise.withResolvers<unknown>();
    const texts: string[] = [];
    body.flow({
      data() {},
      piece: (bytes, start, end) => void texts.push(bytes.toString("latin1", start, end)),
      end: () => resolve(undefined),
      fail: resolve,
    });
    await until(() => texts.length === 1, "the first chunk comes");
    upstream.connections[0]?.socket.write("2\r\n\xe9\r\n2\r\nbc\r\nX");
    expect(await promise).toMatchObject({ fault: "malformed", answerBegan: true });
    expect(texts).toEqual(["a", "\xc3\xa9bc"]);
  });

  test("fails an answer with a fault in the middle of its chunks", async () => {
    const { client } = setup(({ socket }) =>
      socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloX\r\n"),
    );
    expect((await refusal(ask(client))).fault).toBe("malformed");
  });
});

describe("connections that are not reused", () => {
  test.each([
    ["after connection: close", ok("x", "Connection: close")],
    ["after HTTP/1.0", ok("x").replace("HTTP/1.1", "HTTP/1.0")],
    ["with bytes behind the answer", `${ok("x")}y`],
    ["with a second answer behind the first", ok("x") + ok("y")],
    ["that the server keeps for a second only", ok("x", "Keep-Alive: timeout=1")],
  ])("does not reuse a connection %s", async (_, bytes) => {
    const { upstream, client } = setup(({ socket }) => socket.write(bytes));
    expect(await ask(client)).toBe("x");
    expect(await ask(client)).toBe("x");
    expect(upstream.connections).toHaveLength(2);
    await until(() => upstream.connections[0]?.closed === true, "the first is closed");
  });

  test("does not reuse a connection with unexpected bytes, which would answer the next request", async () => {
    const { upstream, client } = setup(answerOk);
    await ask(client);
    upstream.connections[0]?.socket.write(ok("poison"));
    await until(() => client.counts.connections === 0, "the connection is gone");
    expect(await ask(client)).toBe("{}");
  });

  test("does not reuse a connection that the server has closed", async () => {
    const { upstream, client } = setup(answerOk);
    await ask(client);
    upstream.connections[0]?.socket.end();
    await until(() => client.counts.connections === 0, "the connection is gone");
    expect(await ask(client)).toBe("{}");
    expect(upstream.connections).toHaveLength(2);
  });

  // long-lived: upstreamConnection.idle
  test("does not reuse a connection that was idle for too long", async () => {
    const { upstream, client } = setup(answerOk, { unusedTimeoutMs: 100 });
    await ask(client);
    expect(client.counts.free).toBe(1);
    await until(() => upstream.connections[0]?.closed === true, "it is closed");
    expect(client.counts).toEqual({ connections: 0, free: 0, waiting: 0 });
  });

  test("does not reuse a connection that was idle for too long while the process was too busy for timers", async () => {
    const { upstream, client } = setup(answerOk, { unusedTimeoutMs: 50 });
    await ask(client);
    expect(client.counts.free).toBe(1);
    Bun.sleepSync(100);
    await ask(client);
    expect(upstream.connections).toHaveLength(2);
    await until(() => upstream.connections[0]?.closed === true, "it is closed");
  });

  test("does not reuse a connection whose answer ended while it was paused", async () => {
    const { upstream, client } = setup(({ socket }) => {
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na");
      setTimeout(() => socket.write("b"), 20);
    });
    const { body } = await send(client);
    await new Promise<void>((resolve, reject) => {
      body.flow({
        data: () => {
          body.pause();
          setTimeout(() => body.resume(), 5);
        },
        end: resolve,
        fail: reject,
      });
    });
    const again = await send(client);
    expect(again.status).toBe(200);
    again.body.cancel();
    expect(upstream.connections).toHaveLength(2);
  });

  test("does not reuse a connection whose answer came before the whole request was sent", async () => {
    const upstream = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      socket: {
        data(socket) {
          socket.pause();
          socket.write(ok("too large"));
        },
      },
    });
    const client = new Http1Client({ hostname: "127.0.0.1", port: upstream.port });
    opened.push({ [Symbol.dispose]: () => upstream.stop(true) }, { [Symbol.dispose]: () => client.close() });
    expect(await ask(client, { ...post, body: ByteSpan.of(Buffer.alloc(30_000_000)) })).toBe("too large");
    expect(client.counts.connections).toBe(0);
  });
});

describe("a connection that closes during a request", () => {
  test("fails a POST whose connection closes, as it may have been processed", async () => {
    const { upstream, client } = setup((connection, request) => {
      if (connection.requests.length === 1) answerOk(connection, request);
      else connection.socket.end();
    });
    await ask(client);
    expect(await refusal(send(client))).toMatchObject({ fault: "broken", answerBegan: false });
    expect(upstream.requests).toHaveLength(2);
  });

  test("repeats a GET once on another connection if its connection closes", async () => {
    const { upstream, client } = setup((connection, request) => {
      if (connection.index === 0 && connection.requests.length > 1) connection.socket.end();
      else answerOk(connection, request);
    });
    await ask(client, get);
    expect(await ask(client, get)).toBe("");
    expect(upstream.connections.map(({ requests }) => requests.length)).toEqual([2, 1]);
  });

  test("does not repeat a request on a new connection or after an answer began", async () => {
    const { upstream, client } = setup(({ socket, requests }) => {
      if (requests.length === 1 && upstream.connections.length > 1) {
        socket.write(ok(""));
        return;
      }
      if (requests.length > 1) socket.write("HTTP/1.1 200");
      socket.end();
    });
    expect((await refusal(send(client, get))).fault).toBe("broken");
    await ask(client, get);
    expect((await refusal(send(client, get))).fault).toBe("broken");
    expect(upstream.requests).toHaveLength(3);
  });

  test("repeats a request at most once", async () => {
    const { upstream, client } = setup((connection, request) => {
      if (upstream.requests.length <= 2) answerOk(connection, request);
      else connection.socket.end();
    });
    await Promise.all([ask(client, get), ask(client, get)]);
    expect((await refusal(send(client, get))).fault).toBe("broken");
    expect(upstream.requests).toHaveLength(4);
  });
});

describe("time limits of the client", () => {
  /** Returns how many milliseconds the work took. */
  async function timed(work: () => Promise<unknown>): Promise<number> {
    const startedMs = performance.now();
    await work();
    return performance.now() - startedMs;
  }

  test("limits the time for the response head, whatever arrives before it is complete", async () => {
    const { upstream, client } = setup(({ socket }) => {
      const timer = setInterval(() => socket.write("HTTP/1.1 100 Continue\r\n\r\n"), 30);
      setTimeout(() => clearInterval(timer), 4_000);
    });
    const took = await timed(async () => {
      expect((await refusal(send(client, post, { firstByteTimeoutMs: 200 }))).fault).toBe("first_byte_timeout");
    });
    expect(took).toBeGreaterThan(190);
    expect(took).toBeLessThan(withinMs(550));
    await until(() => upstream.connections[0]?.closed === true, "the connection is closed");
  });

  test("limits silence only within a body, anew after every piece", async () => {
    const { client } = setup(({ socket }) => {
      socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
      // The pieces are far less than the limit apart, so that a late piece on a busy machine does not exceed it.
      for (const afterMs of [200, 400, 600]) setTimeout(() => socket.write("1\r\nx\r\n"), afterMs);
    });
    const took = await timed(async () => {
      expect(await refusal(ask(client, post, { idleTimeoutMs: 700 }))).toMatchObject({ fault: "idle_timeout" });
    });
    expect(took).toBeGreaterThan(1_280);
    expect(took).toBeLessThan(withinMs(2_500));
  });

  test("does not count the time for which the body's receiver is paused as silence", async () => {
    const { client } = setup(({ socket }) => {
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na");
      setTimeout(() => socket.write("b"), 250);
    });
    const { body } = await send(client, post, { idleTimeoutMs: 100 });
    let came = "";
    await new Promise<void>((resolve, reject) => {
      body.flow({
        data(piece) {
          came += piece.text;
          if (came !== "a") return;
          body.pause();
          setTimeout(() => body.resume(), 300);
        },
        end: resolve,
        fail: reject,
      });
    });
    expect(came).toBe("ab");
  });

  test("limits the time to connect until TLS is established, and frees the socket", async () => {
    let closed = false;
    const silent = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      socket: {
        data() {},
        close() {
          closed = true;
        },
      },
    });
    const client = new Http1Client(
      { hostname: "127.0.0.1", port: silent.port, tls: { serverName: "localhost" } },
      { connectTimeoutMs: 150 },
    );
    opened.push({ [Symbol.dispose]: () => silent.stop(true) }, { [Symbol.dispose]: () => client.close() });
    expect((await refusal(send(client))).fault).toBe("connect");
    await until(() => closed, "the socket is closed");
  });

  test("limits the time for the response head while connecting", async () => {
    const silent = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
    const client = new Http1Client({ hostname: "127.0.0.1", port: silent.port, tls: { serverName: "localhost" } });
    opened.push({ [Symbol.dispose]: () => silent.stop(true) }, { [Symbol.dispose]: () => client.close() });
    expect((await refusal(send(client, post, { firstByteTimeoutMs: 100 }))).fault).toBe("first_byte_timeout");
  });
});

describe("the body of an answer", () => {
  test("delivers a body that arrived early at once, in order", async () => {
    const { promise: taken, resolve: isTaken } = Promise.withResolvers<void>();
    const { client } = setup(({ socket }) => {
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nab");
      setTimeout(() => socket.write("cd"), 10);
      void taken.then(() => socket.write("ef"));
    });
    const response = await send(client);
    await new Promise((resolve) => setTimeout(resolve, 60));
    let came = "";
    const ended = new Promise<void>((resolve, reject) => {
      response.body.flow({
        data(piece) {
          came += piece.text;
        },
        end: resolve,
        fail: reject,
      });
    });
    // On a busy machine the second piece may not have arrived yet.
    expect(["ab", "abcd"]).toContain(came);
    isTaken();
    await ended;
    expect(came).toBe("abcdef");
  });

  test("leaves an unread or paused body with the sender", async () => {
    const megabyte = Buffer.alloc(1_000_000, "x");
    let sent = 0;
    const more = (socket: RawConnection["socket"]) => {
      for (;;) {
        const taken = socket.write(megabyte);
        sent += Math.max(0, taken);
        if (taken < megabyte.length) return;
      }
    };
    const upstream = Bun.listen<RawConnection>({
      hostname: "127.0.0.1",
      port: 0,
      socket: {
        data(socket) {
          socket.write("HTTP/1.1 200 OK\r\n\r\n");
          more(socket);
        },
        drain: more,
      },
    });
    const client = new Http1Client({ hostname: "127.0.0.1", port: upstream.port });
    opened.push({ [Symbol.dispose]: () => upstream.stop(true) }, { [Symbol.dispose]: () => client.close() });
    const { body } = await send(client);
    // Though the body is endless, the server can send only as much as the kernel's buffers hold.
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(sent).toBeLessThan(40_000_000);
    let pieces = 0;
    body.flow({
      data() {
        if (++pieces === 3) body.pause();
      },
      end() {},
      fail() {},
    });
    await until(() => pieces >= 3, "it flows");
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(pieces).toBeLessThanOrEqual(4);
    expect(sent).toBeLessThan(40_000_000);
    body.cancel();
  });

  test("closes the connection of a cancelled body and delivers nothing afterwards", async () => {
    const { upstream, client } = setup(({ socket }) => {
      socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n");
    });
    const { body } = await send(client);
    // These bytes come in a second read, which is buffered like the first.
    upstream.connections[0]?.socket.write("1\r\nb\r\n1\r\nc\r\n");
    await new Promise((resolve) => setTimeout(resolve, 20));
    let came = "";
    body.flow({
      data(piece) {
        came += piece.text;
        body.cancel();
      },
      end: () => (came += "end"),
      fail: () => (came += "fail"),
    });
    const whole = await send(client);
    whole.body.cancel();
    whole.body.cancel();
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(came).toBe("a");
    expect(upstream.connections[0]?.closed).toBe(true);
    expect(bodyOf(new Uint8Array()).cancel()).toBeUndefined();
    expect(upstream.requests).toHaveLength(2);
  });

  test("closes the connection of a request that is cancelled before its answer", async () => {
    const { upstream, client } = setup(() => {});
    const cancellation = new Cancellation();
    const answer = send(client, post, { cancellation });
    await until(() => upstream.requests.length === 1, "the request came");
    cancellation.cancel("left");
    expect(await answer.catch((reason: unknown) => reason)).toBe("left");
    await until(() => upstream.connections[0]?.closed === true, "the connection is closed");
    expect(await send(client, post, { cancellation }).catch((reason: unknown) => reason)).toBe("left");
    expect(upstream.requests).toHaveLength(1);
  });

  test("keeps a body after the cancellation of its request once the head has arrived", async () => {
    const { client } = setup(({ socket }) => {
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na");
      setTimeout(() => socket.write("b"), 30);
    });
    const cancellation = new Cancellation();
    const response = await send(client, post, { cancellation });
    cancellation.cancel();
    expect(await text(response)).toBe("ab");
  });

  test("uses a connection that was being opened for a cancelled request for the next one", async () => {
    const { upstream, client } = setup(answerOk);
    const cancellation = new Cancellation();
    const answer = send(client, post, { cancellation });
    cancellation.cancel("left");
    expect(await answer.catch((reason: unknown) => reason)).toBe("left");
    await until(() => client.counts.free === 1, "the connection is open");
    expect(await ask(client)).toBe("{}");
    expect(upstream.connections).toHaveLength(1);
  });
});

describe("connection failures", () => {
  test("reports a closed port and a missing socket with the cause", async () => {
    const free = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
    free.stop(true);
    const refused = await refusal(send(new Http1Client({ hostname: "127.0.0.1", port: free.port })));
    expect(refused).toMatchObject({ fault: "connect", answerBegan: false });
    expect(refused.message).toContain("ECONNREFUSED");
    const missing = new Http1Client({ hostname: "h", port: 80, unix: join(tmpdir(), "headrace-no-such-socket") });
    expect((await refusal(send(missing))).message).toContain("ENOENT");
    expect(missing.counts.connections).toBe(0);
  });

  test("resolves a name again if its known address refuses connections", async () => {
    // Bun resolves the name to 127.0.0.1, where nobody listens; the server has moved to 127.0.0.2.
    using moved = Bun.listen({
      hostname: "127.0.0.2",
      port: 0,
      socket: { data: (socket) => void socket.write(ok("moved")) },
    });
    using lookup = spyOn(Bun.dns, "lookup").mockResolvedValue([{ address: "127.0.0.2", family: 4, ttl: 0 }]);
    const client = new Http1Client({ hostname: "localhost", port: moved.port });
    expect(await ask(client)).toBe("moved");
    client.close();
    lookup.mockRejectedValue(new Error("no such name"));
    const refused = await refusal(send(new Http1Client({ hostname: "localhost", port: moved.port })));
    expect(refused).toMatchObject({ fault: "connect", answerBegan: false });
    expect(refused.message).toContain("ECONNREFUSED");
  });

  test("reports a lack of file descriptors as such", async () => {
    const { upstream } = setup(() => {});
    const script = `
      import { Http1Client } from ${JSON.stringify(join(import.meta.dir, "client.ts"))};
      import { Cancellation } from ${JSON.stringify(join(import.meta.dir, "../../base/cancellation.ts"))};
      const client = new Http1Client({ hostname: "127.0.0.1", port: ${upstream.port} });
      const timeouts = { firstByteTimeoutMs: 60_000, idleTimeoutMs: 60_000 };
      const request = { method: "GET", path: "/", headers: {} };
      for (let index = 0; index < 80; index++) {
        client.send(request, timeouts, new Cancellation()).then(undefined, ({ fault, message }) => {
          console.log(fault, message);
          process.exit();
        });
      }`;
    const command = ["sh", "-c", 'ulimit -n 64; exec "$0" -e "$1"', process.execPath, script];
    const child = Bun.spawn(command, { stdout: "pipe", timeout: 10_000 });
    expect(await new Response(child.stdout).text()).toStartWith("connect no file descriptor is left");
  });

  // long-lived: upstreamConnection.server
  test("ends running requests when the client closes, and accepts no more", async () => {
    const { upstream, client } = setup(({ socket, index }) => {
      if (index === 0) socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na");
    });
    const begun = ask(client);
    await until(() => upstream.requests.length === 1, "the request came");
    const unanswered = send(client);
    await until(() => upstream.requests.length === 2, "the second came");
    client.close();
    expect((await refusal(begun)).fault).toBe("closed");
    expect((await refusal(unanswered)).fault).toBe("closed");
    expect((await refusal(send(client))).fault).toBe("closed");
    await until(() => upstream.connections.every(({ closed }) => closed), "all connections are closed");
  });

  test("keeps the process alive for a request that is sent after another one failed", async () => {
    const { upstream } = setup(({ socket }, request) => {
      if (request.endsWith("quick")) socket.write(ok("quick"));
      if (request.endsWith("slow")) setTimeout(() => socket.write(ok("slow")), 300);
    });
    const script = `
      import { Http1Client } from ${JSON.stringify(join(import.meta.dir, "client.ts"))};
      import { Cancellation } from ${JSON.stringify(join(import.meta.dir, "../../base/cancellation.ts"))};
      const client = new Http1Client({ hostname: "127.0.0.1", port: ${upstream.port} }, { unusedTimeoutMs: 60_000 });
      const tell = (bytes) => console.log(bytes.text);
      const send = (body, firstByteTimeoutMs, failed) =>
        client
          .send({ method: "POST", path: "/", headers: {}, body }, { firstByteTimeoutMs, idleTimeoutMs: 5_000 }, new Cancellation())
          .whenSettled(({ body }) => body.flow({ data: tell, end() {}, fail: console.log }), failed);
      send("quick", 5_000, console.log);
      send("silent", 150, () => send("slow", 5_000, console.log));`;
    const child = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe", timeout: 10_000 });
    expect(await new Response(child.stdout).text()).toBe("quick\nslow\n");
    expect(upstream.connections).toHaveLength(2);
  });

  test("keeps the process alive for a queued request whose turn comes after a failure", async () => {
    const { upstream } = setup(({ socket }, request) => {
      if (request.endsWith("slow")) setTimeout(() => socket.write(ok("slow")), 300);
    });
    const script = `
      import { Http1Client } from ${JSON.stringify(join(import.meta.dir, "client.ts"))};
      import { Cancellation } from ${JSON.stringify(join(import.meta.dir, "../../base/cancellation.ts"))};
      const client = new Http1Client({ hostname: "127.0.0.1", port: ${upstream.port} }, { maxConnections: 1 });
      const tell = (bytes) => console.log(bytes.text);
      const send = (body, firstByteTimeoutMs, failed) =>
        client
          .send({ method: "POST", path: "/", headers: {}, body }, { firstByteTimeoutMs, idleTimeoutMs: 5_000 }, new Cancellation())
          .whenSettled(({ body }) => body.flow({ data: tell, end() {}, fail: console.log }), failed);
      send("silent", 150, () => console.log("silent"));
      send("slow", 5_000, console.log);`;
    const child = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe", timeout: 10_000 });
    expect(await new Response(child.stdout).text()).toBe("silent\nslow\n");
    expect(upstream.connections).toHaveLength(2);
  });

  test("lets the process end with an idle connection, but not during a request", async () => {
    const { upstream } = setup(({ socket }) => {
      setTimeout(() => socket.write(ok("late")), 150);
    });
    const script = `
      import { Http1Client } from ${JSON.stringify(join(import.meta.dir, "client.ts"))};
      import { Cancellation } from ${JSON.stringify(join(import.meta.dir, "../../base/cancellation.ts"))};
      const client = new Http1Client({ hostname: "127.0.0.1", port: ${upstream.port} }, { unusedTimeoutMs: 60_000 });
      const timeouts = { firstByteTimeoutMs: 5_000, idleTimeoutMs: 5_000 };
      client.send({ method: "GET", path: "/", headers: {} }, timeouts, new Cancellation()).then(({ body }) =>
        body.flow({ data: (bytes) => console.log(bytes.text), end() {}, fail: console.log }),
      );`;
    const startedMs = performance.now();
    const child = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe", timeout: 10_000 });
    expect(await new Response(child.stdout).text()).toBe("late\n");
    expect(await child.exited).toBe(0);
    expect(performance.now() - startedMs).toBeLessThan(withinMs(5_000));
  });
});
