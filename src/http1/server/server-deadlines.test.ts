// Clients that are slow, silent or gone keep a connection for a bounded time only. A client that reads its stream may
// keep it open without limit.

import { describe, expect, test } from "bun:test";
import { echo, get, startTestServer, until } from "../../../tests/support/http1/server-fixture.ts";
import { withinMs } from "../../../tests/support/long.ts";
import type { ByteSpan } from "../../base/bytes/byte-span.ts";
import type { ClientStream } from "../../base/bytes/client-stream.ts";
import type { RequestBodyError } from "../message.ts";

const long = 60_000;
const patient = { headMs: long, idleMs: long, bodyIdleMs: long, unsentMs: long };

async function timed<T>(work: Promise<T>): Promise<[T, number]> {
  const startedMs = performance.now();
  return [await work, performance.now() - startedMs];
}

describe("a connection without a request", () => {
  test("closes a connection silently if no request arrives", async () => {
    await using it = startTestServer(echo, { ...patient, idleMs: 60 });
    // The server's time may begin before the client knows that the connection is open, hence only 40 ms.
    const [{ text, closed }, ms] = await timed(it.open().then((connection) => connection.ended()));
    expect([text, closed]).toEqual(["", true]);
    expect(ms).toBeGreaterThan(40);
    expect(ms).toBeLessThan(withinMs(300));
  });

  // long-lived: httpConnection.idle
  test("closes a connection that stays idle after its answer", async () => {
    await using it = startTestServer(echo, { ...patient, idleMs: 60 });
    const connection = await it.open();
    await connection.write(get("/"));
    await connection.answered();
    const [{ answers, closed }, ms] = await timed(connection.ended());
    expect([answers.length, closed]).toEqual([1, true]);
    expect(ms).toBeGreaterThan(40);
    expect(ms).toBeLessThan(withinMs(300));
  });

  // hardening: F9
  test("answers 408 to a head that does not end, even while bytes arrive", async () => {
    await using it = startTestServer(echo, { ...patient, headMs: 80 });
    const connection = await it.open();
    const [{ answers, closed }, ms] = await timed(
      (async () => {
        for (const byte of get("/", [`X: ${"x".repeat(1_000)}`])) {
          connection.socket.write(byte);
          if ((await connection.ended(5)).closed) break;
        }
        return connection.ended();
      })(),
    );
    expect(answers.map((answer) => answer.status)).toEqual([408]);
    expect(closed).toBe(true);
    expect(ms).toBeGreaterThan(60);
    expect(ms).toBeLessThan(withinMs(400));
    expect(it.requests).toHaveLength(0);
  });

  test("gives each request its full time for the head", async () => {
    await using it = startTestServer(echo, { ...patient, headMs: 250 });
    const connection = await it.open();
    for (let n = 1; n <= 3; n++) {
      const request = get(`/${n}`);
      await connection.write(request.slice(0, 20));
      await Bun.sleep(100);
      await connection.write(request.slice(20));
      expect((await connection.answered(n)).answers).toHaveLength(n);
    }
    connection.socket.destroy();
  });
});

describe("a slow body", () => {
  const head = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n";

  function reading(limits: { bodyIdleMs: number }) {
    const faults: RequestBodyError[] = [];
    const it = startTestServer(
      (request, reply) => {
        (request.readBody(1_000_000) as Promise<ByteSpan>).then(
          (body) => reply.send(200, {}, `${body.length}`),
          (error: RequestBodyError) => {
            faults.push(error);
            reply.send(408, {}, "");
          },
        );
      },
      { ...patient, ...limits },
    );
    return { it, faults };
  }

  test("reports a body that stops as incomplete, so that its client can be answered", async () => {
    const { it, faults } = reading({ bodyIdleMs: 60 });
    await using _ = it;
    const connection = await it.open();
    await connection.write(`${head}half`);
    const { answers, closed } = await connection.ended();
    expect(faults[0]?.fault).toBe("incomplete");
    expect(answers.map((answer) => [answer.status, answer.headers["connection"]])).toEqual([[408, "close"]]);
    expect(closed).toBe(true);
    expect(it.requests[0]?.clientGone.cancelled).toBe(false);
  });

  // hardening: F9
  test("reports a trickling body as incomplete in bounded time", async () => {
    const { it, faults } = reading({ bodyIdleMs: 100 });
    await using _ = it;
    const connection = await it.open();
    await connection.write(head);
    const startedMs = performance.now();
    while (faults.length === 0 && performance.now() - startedMs < 5_000) {
      await connection.write("x");
      await Bun.sleep(10);
    }
    expect(faults[0]?.fault).toBe("incomplete");
    expect(performance.now() - startedMs).toBeLessThan(withinMs(600));
  });

  // hardening: F9
  test("reads a slow but steady body", async () => {
    // The body takes longer than `bodyIdleMs` in all. The pauses are far shorter, as a busy machine may extend them.
    const { it } = reading({ bodyIdleMs: 1_000 });
    await using _ = it;
    const connection = await it.open();
    await connection.write(head);
    for (let n = 0; n < 5; n++) {
      await connection.write("x".repeat(20_000));
      await Bun.sleep(240);
    }
    expect((await connection.answered()).answers[0]?.body).toBe("100000");
    connection.socket.destroy();
  });

  test("reports a body that stops as incomplete while the client is behind with the answer", async () => {
    const faults: string[] = [];
    await using it = startTestServer(
      (request, reply) => {
        const stream = reply.stream(200, {});
        while (stream.write("x".repeat(1_000_000)));
        (request.readBody(100) as Promise<unknown>).catch((error: RequestBodyError) => {
          faults.push(error.fault);
          stream.end();
        });
      },
      { ...patient, bodyIdleMs: 60 },
    );
    const connection = await it.open();
    connection.socket.pause();
    await connection.write("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc");
    await until(() => it.requests.length === 1, "it came");
    connection.socket.resume();
    await until(() => faults.length === 1, "its time is over", 1_000);
    expect(faults).toEqual(["incomplete"]);
    connection.socket.destroy();
  });

  test("sets no deadline for a body before the handler reads it", async () => {
    let ask = () => {};
    await using it = startTestServer((request, reply) => (ask = () => echo(request, reply)), {
      ...patient,
      bodyIdleMs: 40,
    });
    const connection = await it.open();
    await connection.write("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nab");
    await Bun.sleep(120);
    ask();
    await connection.write("cd");
    expect((await connection.answered()).answers[0]?.body).toBe("POST / abcd");
    connection.socket.destroy();
  });
});

describe("a slow answer", () => {
  // long-lived: request.idle
  test("cuts off a client that does not read its answer", async () => {
    await using it = startTestServer((_request, reply) => reply.send(200, {}, Buffer.alloc(30_000_000)), {
      ...patient,
      unsentMs: 80,
    });
    const connection = await it.open();
    connection.socket.pause();
    await connection.write(get("/"));
    await until(() => it.requests.length === 1, "it came");
    const [, ms] = await timed(until(() => it.server.pendingRequests === 0, "it is cut off"));
    expect(ms).toBeGreaterThan(40);
    connection.socket.destroy();
  });

  test("cuts off a client that does not read its answer but keeps sending its body", async () => {
    await using it = startTestServer((_request, reply) => reply.send(200, {}, Buffer.alloc(30_000_000)), {
      ...patient,
      unsentMs: 150,
    });
    const connection = await it.open();
    connection.socket.pause();
    await connection.write("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc");
    await until(() => it.requests.length === 1, "it came");
    await connection.write("defghij");
    await until(() => it.server.pendingRequests === 0, "it is cut off", 1_500);
  });

  test("delivers an answer to a slow reader completely", async () => {
    await using it = startTestServer((_request, reply) => reply.send(200, {}, Buffer.alloc(30_000_000)), {
      ...patient,
      unsentMs: 250,
    });
    const connection = await it.open();
    let received = 0;
    connection.socket.on("data", (bytes) => {
      received += bytes.length;
      connection.socket.pause();
      setTimeout(() => connection.socket.resume(), 4);
    });
    await connection.write(get("/"));
    await until(() => received > 30_000_000, "all arrives", 10_000);
    connection.socket.destroy();
  });

  // hardening: F11
  test("does not cut off an answer that begins late or a silent stream", async () => {
    const streams: ClientStream[] = [];
    await using it = startTestServer(
      (request, reply) => {
        if (request.target === "/stream") streams.push(reply.stream(200, {}));
        else setTimeout(() => reply.send(200, {}, "late"), 200);
      },
      { headMs: 30, idleMs: 30, bodyIdleMs: 30, unsentMs: 30, lingerMs: 30 },
    );
    const late = await it.open();
    const silent = await it.open();
    await late.write(get("/late"));
    await silent.write(get("/stream"));
    expect((await late.answered()).answers[0]?.body).toBe("late");
    expect((await silent.ended(1)).closed).toBe(false);
    streams[0]?.write("still here");
    streams[0]?.end();
    expect((await silent.answered()).answers[0]?.body).toBe("still here");
  });

  test("allows silence in a stream whose client fell behind and caught up", async () => {
    const streams: ClientStream[] = [];
    await using it = startTestServer((_request, reply) => void streams.push(reply.stream(200, {})), {
      ...patient,
      unsentMs: 100,
    });
    const connection = await it.open();
    connection.socket.pause();
    await connection.write(get("/"));
    const stream = await until(() => streams[0], "it begins");
    let caughtUp = false;
    stream.onDrain = () => (caughtUp = true);
    while (stream.write("x".repeat(1_000_000)));
    connection.socket.resume();
    await until(() => caughtUp, "it has caught up");
    await Bun.sleep(200);
    expect(it.server.pendingRequests).toBe(1);
    stream.end();
    expect((await connection.answered()).answers).toHaveLength(1);
    connection.socket.destroy();
  });

  test("keeps a closing connection open for its last bytes, for a bounded time", async () => {
    await using it = startTestServer(echo, { ...patient, lingerMs: 60 });
    const connection = await it.open();
    // A client that reads would see the end and close its own side.
    connection.socket.pause();
    await connection.write(get("/", ["Connection: close"]));
    const startedMs = performance.now();
    while ((await connection.write("x")) && performance.now() - startedMs < 5_000) await Bun.sleep(10);
    expect(performance.now() - startedMs).toBeGreaterThan(30);
    expect(performance.now() - startedMs).toBeLessThan(withinMs(500));
  });

  test("delivers the last answer of a connection completely to a late reader", async () => {
    const body = Buffer.alloc(1_500_000, "x");
    await using it = startTestServer((_request, reply) => reply.send(200, {}, body), { ...patient, lingerMs: 60 });
    const connection = await it.open();
    connection.socket.pause();
    await connection.write(get("/", ["Connection: close"]));
    await until(() => it.requests.length === 1 && it.server.pendingRequests === 0, "the kernel has all of it");
    await Bun.sleep(200);
    connection.socket.resume();
    const { answers } = await connection.ended();
    expect(answers.map((answer) => answer.body.length)).toEqual([body.length]);
  });
});

test("uses no CPU for a client that stopped reading or waits unread", async () => {
  await using it = startTestServer(
    (request, reply) => {
      if (request.target === "/big") reply.send(200, {}, Buffer.alloc(30_000_000));
    },
    { ...patient, windowBytes: 1_000 },
  );
  const reader = await it.open();
  reader.socket.pause();
  await reader.write(get("/big"));
  const waiting = await it.open();
  await waiting.write(get("/wait") + "x".repeat(100_000));
  const paused = await it.open();
  await paused.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n${"x".repeat(100_000)}`);
  await until(() => it.requests.length === 3, "all came");
  await Bun.sleep(50);
  const before = process.cpuUsage();
  await Bun.sleep(300);
  const { user, system } = process.cpuUsage(before);
  expect(user + system).toBeLessThan(100_000);
  for (const connection of [reader, waiting, paused]) connection.socket.destroy();
});
