// A request that is handed over is answered by the primary, as it would be without a worker between, and as the primary alone decides.
import { expect, test } from "bun:test";
import { statSync } from "node:fs";
import { openRaw, raw } from "../../tests/hostile/raw-client.ts";
import { echo, get, post, until } from "../../tests/support/http1/server-fixture.ts";
import { startWorkerFront } from "../../tests/support/http1/worker-front.ts";
import type { IncomingRequest } from "../http1/message.ts";

test("the primary answers what a worker hands over, on connections that are used again", async () => {
  await using it = startWorkerFront(echo);
  for (let round = 0; round < 20; round++) {
    const { answers } = await raw(it.url, post("/a?b=c", `body ${round}`));
    expect(answers).toMatchObject([{ status: 200, body: `POST /a?b=c body ${round}` }]);
  }
  expect(it.handOver.connections).toBe(1);
  expect(it.faults).toEqual([]);
});

test("the primary sees the address of the client, which no client can say itself", async () => {
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

test("the socket of the primary is for its owner alone", async () => {
  await using it = startWorkerFront(echo);
  expect(statSync(it.socketPath).mode & 0o777).toBe(0o600);
});

test("a primary that is not there is 503, with when to try again", async () => {
  await using it = startWorkerFront(echo);
  it.primary.close();
  const { answers } = await raw(it.url, post("/", "body"));
  expect(answers).toMatchObject([{ status: 503, body: "The primary is away.", headers: { "retry-after": "1" } }]);
});

test("a client that leaves ends its request in the primary", async () => {
  const seen: IncomingRequest[] = [];
  await using it = startWorkerFront((request) => void seen.push(request));
  const client = await openRaw(it.url);
  await client.write(get("/"));
  const request = await until(() => seen[0], "the request is with the primary");
  client.socket.destroy();
  await until(() => request.left.cancelled, "the primary knows that the client left");
  expect(it.primary.pendingRequests).toBe(0);
});
