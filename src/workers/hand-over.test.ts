// A request that is handed over is answered by the primary, as it would be without a worker between, and as the primary alone decides.
import { expect, test } from "bun:test";
import { statSync } from "node:fs";
import { openRaw, raw } from "../../tests/hostile/raw-client.ts";
import { echo, get, post, until } from "../../tests/support/http1/server-fixture.ts";
import { startWorkerFront } from "../../tests/support/http1/worker-front.ts";
import { bufferedBytes } from "../base/bytes/buffered-bytes.ts";
import type { ByteChannel } from "../http1/byte-channel.ts";
import type { IncomingRequest, Reply } from "../http1/message.ts";
import { startHttp1Server } from "../http1/server/server.ts";

test("answers handed-over requests in the primary, over reused connections", async () => {
  await using it = startWorkerFront(echo);
  for (let round = 0; round < 20; round++) {
    const { answers } = await raw(it.url, post("/a?b=c", `body ${round}`));
    expect(answers).toMatchObject([{ status: 200, body: `POST /a?b=c body ${round}` }]);
  }
  expect(it.handOver.connections).toBe(1);
  expect(it.faults).toEqual([]);
});

test("tells the primary the client's address, which no client can forge", async () => {
  const seen: IncomingRequest[] = [];
  await using it = startWorkerFront((request, reply) => {
    seen.push(request);
    reply.send(200, {}, "");
  });
  await raw(it.url, `PEER 203.0.113.9\r\n${get("/")}`);
  expect(seen).toEqual([]);
  await raw(it.url, get("/", ["Peer: 203.0.113.9", "X-Twice: 1", "x-twice: 2"]));
  expect(seen.map(({ peer }) => peer)).toEqual(["127.0.0.1"]);
  expect([...(seen[0]?.headers.keys() ?? [])]).toEqual(["host", "peer", "x-twice"]);
  expect(seen[0]?.headers.get("x-twice")).toBe("1, 2");
});

test("hands over a decompressed body without the headers of its compressed form", async () => {
  const seen: IncomingRequest[] = [];
  await using it = startWorkerFront(
    async (request, reply) => {
      seen.push(request);
      reply.send(200, {}, (await request.readBody(100)).text);
    },
    { readsFirst: 100 },
  );
  const fields = ["Content-Encoding: gzip", "Content-Digest: sha-256=:AA==:", "Content-MD5: AA==", "X-Own: 1"];
  const { answers } = await raw(it.url, post("/", "unpacked by the worker", fields));
  expect(answers).toMatchObject([{ status: 200, body: "unpacked by the worker" }]);
  expect([...(seen[0]?.headers.keys() ?? [])].sort()).toEqual(["content-length", "host", "x-own"]);
});

test("restricts the primary's socket to its owner", async () => {
  await using it = startWorkerFront(echo);
  expect(statSync(it.socketPath).mode & 0o777).toBe(0o600);
});

test("answers 503 with a retry time if the primary is missing", async () => {
  await using it = startWorkerFront(echo);
  it.primary.close();
  const { answers } = await raw(it.url, post("/", "body"));
  expect(answers).toMatchObject([{ status: 503, body: "The primary is away.", headers: { "retry-after": "1" } }]);
});

test("waits for a primary that starts within a second", async () => {
  await using it = startWorkerFront(echo);
  it.primary.close();
  const asked = raw(it.url, post("/", "body"));
  await Bun.sleep(100);
  const successor = startHttp1Server({
    unix: it.socketPath,
    onRequest: echo,
    onMalformed: () => ({ headers: {}, body: "" }),
    onFault() {},
  });
  expect((await asked).answers).toMatchObject([{ status: 200, body: "POST / body" }]);
  successor.close();
});

test("cancels the primary's request when the client leaves", async () => {
  const seen: IncomingRequest[] = [];
  await using it = startWorkerFront((request) => void seen.push(request));
  const client = await openRaw(it.url);
  await client.write(get("/"));
  const request = await until(() => seen[0], "the request is with the primary");
  client.socket.destroy();
  await until(() => request.clientGone.cancelled, "the primary knows that the client left");
  expect(it.primary.pendingRequests).toBe(0);
});

test("leaves an answer incomplete if the primary dies in the middle of it", async () => {
  const replies: Reply[] = [];
  await using it = startWorkerFront((request, reply) => {
    if (request.target === "/sized") reply.stream(200, {}, 100).write("a part");
    else reply.stream(200, {}).write("a part");
    replies.push(reply);
  });
  const clients = await Promise.all(["/sized", "/chunked"].map(() => openRaw(it.url)));
  await Promise.all(clients.map((client, index) => client.write(get(index === 0 ? "/sized" : "/chunked"))));
  await until(() => replies.length === 2, "both answers have begun");
  await Bun.sleep(20);
  it.primary.close();
  for (const client of clients) {
    const { text, answers, closed } = await client.ended();
    expect(text).toContain("a part");
    expect(answers).toEqual([]);
    expect(closed).toBe(true);
  }
});

test("delivers each event to the client before the next one is written", async () => {
  await using it = startWorkerFront((_request, reply) => {
    const stream = reply.stream(200, {});
    stream.write("first");
    answerNext = () => stream.end("second");
  });
  let answerNext = () => {};
  const client = await openRaw(it.url);
  await client.write(get("/"));
  let text = "";
  client.socket.on("data", (bytes) => {
    text += bytes.toString("latin1");
  });
  await until(() => text.includes("first"), "the first event is here");
  expect(text).not.toContain("second");
  answerNext();
  await until(() => text.endsWith("second\r\n0\r\n\r\n"), "the second one is here as well");
});

/** Answers every request by an upgrade, and gives the channel to `begin`. */
const upgrading = (begin: (channel: ByteChannel) => void) => (_request: IncomingRequest, reply: Reply) =>
  begin(reply.upgrade({ upgrade: "shout", "x-own": "1" }));
const upgrade = get("/", ["Connection: Upgrade", "Upgrade: shout"]);

test("passes bytes of an upgraded connection both ways, including early ones, until either side ends", async () => {
  for (const endsFirst of ["client", "primary"] as const) {
    let heard = "";
    let channel: ByteChannel | undefined;
    let closed = 0;
    await using it = startWorkerFront(
      upgrading((opened) => {
        channel = opened;
        opened.write(Buffer.from("welcome"));
        opened.listen({
          data(bytes) {
            heard += bytes.toString();
            opened.write(Buffer.from(bytes.toString().toUpperCase()));
          },
          drained() {},
          closed: () => void closed++,
        });
      }),
    );
    const client = await openRaw(it.url);
    let text = "";
    client.socket.on("data", (bytes) => {
      text += bytes.toString("latin1");
    });
    await client.write(`${upgrade}early`);
    await until(() => text.includes("EARLY"), "the early bytes were answered");
    expect(text).toMatch(/^HTTP\/1\.1 101 [\s\S]*upgrade: shout\r\nx-own: 1\r\n/);
    expect(text).toMatch(/connection: upgrade\r\n\r\nwelcomeEARLY$/);
    await client.write("late");
    await until(() => text.endsWith("LATE"), "the late bytes were answered");
    if (endsFirst === "client") client.socket.end("the end");
    else channel?.end();
    await until(() => closed === 1, "the primary knows of the end");
    expect((await client.ended()).closed).toBe(true);
    expect(heard).toBe(endsFirst === "client" ? "earlylatethe end" : "earlylate");
    await until(() => it.handOver.connections === 0 && it.worker.connections.open === 0, "nothing is open");
    expect(it.faults).toEqual([]);
  }
});

const muchBytes = 50_000_000;
/** More than all buffers of kernels on the way together, and what is read ahead of whoever does not take it. */
const maxOnTheWay = 12_000_000;

test("pauses the faster side of an upgraded connection", async () => {
  let channel: ByteChannel | undefined;
  await using it = startWorkerFront(
    upgrading((opened) => {
      channel = opened;
    }),
  );
  const client = await openRaw(it.url);
  await client.write(upgrade);
  const opened = await until(() => channel, "it is upgraded");
  const written = client.write(Buffer.alloc(muchBytes, "x"));
  let heard = 0;
  const onTheWay = () => muchBytes - client.socket.writableLength - heard;
  await Bun.sleep(200);
  expect(bufferedBytes.byKind.unsent + bufferedBytes.byKind.received).toBeLessThan(maxOnTheWay);
  expect(onTheWay()).toBeLessThan(maxOnTheWay);
  let most = 0;
  opened.listen({
    data(bytes) {
      heard += bytes.length;
      most = Math.max(most, onTheWay());
    },
    drained() {},
    closed() {},
  });
  await until(() => heard === muchBytes, "all of it was heard");
  await written;
  expect(most).toBeLessThan(maxOnTheWay);
});

test("pauses the primary for a slow reader of 50 MB, and the client for a large body, in little memory", async () => {
  let sentBytes = 0;
  const uploads: Reply[] = [];
  await using it = startWorkerFront((request, reply) => {
    if (request.hasBody) {
      uploads.push(reply);
      return;
    }
    const stream = reply.stream(200, {});
    const piece = "x".repeat(100_000);
    const more = () => {
      while (sentBytes < muchBytes) {
        sentBytes += piece.length;
        if (!stream.write(piece)) return;
      }
      stream.end();
    };
    stream.onDrain = more;
    more();
  });
  const client = await openRaw(it.url);
  client.socket.pause();
  await client.write(get("/"));
  await Bun.sleep(200);
  expect(sentBytes).toBeLessThan(maxOnTheWay);
  let received = 0;
  client.socket.on("data", (bytes) => {
    received += bytes.length;
  });
  client.socket.resume();
  await until(() => received > muchBytes, "all of it is here");

  const sender = await openRaw(it.url);
  await sender.write(`POST / HTTP/1.1\r\nHost: h\r\nContent-Length: ${muchBytes}\r\n\r\n`);
  void sender.write(Buffer.alloc(muchBytes, "x"));
  await Bun.sleep(200);
  expect(muchBytes - sender.socket.writableLength).toBeLessThan(maxOnTheWay);
  uploads[0]?.send(413, {}, "Too much.");
  expect(await sender.answered()).toMatchObject({ answers: [{ status: 413, body: "Too much." }] });
  sender.socket.destroy();
  await until(() => it.worker.pendingRequests + it.primary.pendingRequests === 0, "nothing is under way");
});

test("leaves nothing open on either side after a thousand clients left at any moment", async () => {
  await using it = startWorkerFront((request, reply) => {
    if (request.target === "/upgrade") return void reply.upgrade({ upgrade: "shout" }).listen(deaf);
    if (request.target === "/body") return void Promise.resolve(request.readBody(1_000)).catch(() => {});
    if (request.target === "/stream") reply.stream(200, {}).write("x".repeat(100_000));
  });
  const deaf = { data() {}, drained() {}, closed() {} };
  const requests = [
    get("/silent"),
    get("/stream"),
    post("/body", "").replace("Length: 0", "Length: 100"),
    upgrade.replace("/ ", "/upgrade "),
  ];
  for (let round = 0; round < 10; round++) {
    await Promise.all(
      Array.from({ length: 100 }, async (_, nth) => {
        const client = await openRaw(it.url);
        void client.write(requests[nth % requests.length] ?? "");
        await Bun.sleep(nth % 7);
        client.socket.destroy();
      }),
    );
  }
  await until(
    () => it.worker.connections.open === 0 && it.worker.pendingRequests === 0 && it.primary.pendingRequests === 0,
    "nothing is under way",
  );
  await until(() => it.primary.connections.open === it.handOver.connections, "the primary has what the pool has");
  expect(it.faults).toEqual([]);
});
