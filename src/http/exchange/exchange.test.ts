// Tests exchanges of the HTTP API: handlers that fail too late for an error answer, log lines, memory, and turns of
// reads.

import { expect, test } from "bun:test";
import { BlockList } from "node:net";
import { rawUntilClosed } from "../../../tests/hostile/raw-client.ts";
import { until } from "../../../tests/support/headrace.ts";
import { manualClock } from "../../../tests/support/manual-clock.ts";
import { accountFor, noSessions, principalFor } from "../../../tests/support/principal.ts";
import { anyAddress } from "../../../tests/support/unlimited.ts";
import { bufferedBytes, type MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import type { ClientStream } from "../../base/bytes/client-stream.ts";
import { type Clock, systemClock } from "../../base/clock.ts";
import { GatewayError } from "../../base/errors.ts";
import type { HttpEnd } from "../../domain/usage/observer.ts";
import type { Authenticator } from "../../policy/credentials/authenticate.ts";
import { Locality } from "./locality.ts";
import type { Exchange, PublicRoute, RouteDoc, ScopedRoute } from "./route.ts";
import { startHttpServer } from "./server.ts";
import type { HttpServerParts } from "./server-options.ts";

const doc: RouteDoc = { operationId: "test", summary: "Test.", tag: "Service", response: { description: "Done." } };

function serverWith(
  handle: PublicRoute["handle"],
  errors: string[] = [],
  ends: HttpEnd[] = [],
  clock: Clock = manualClock(),
  others: Partial<HttpServerParts> = {},
) {
  return startHttpServer({
    addressThrottle: anyAddress,
    hostname: "127.0.0.1",
    port: 0,
    routes: [{ method: "GET", path: "/", access: "public", throttle: "page", doc, handle }],
    authenticator: {} as Authenticator,
    sessions: noSessions,
    openRequests: { enter: () => ({ memoryAccount: bufferedBytes.visitors, release: () => {} }) },
    trustedProxies: new BlockList(),
    locality: new Locality([]),
    baseUrl: () => "https://ai.example.com/v1",
    corsOrigins: () => [],
    log: { info() {}, warn() {}, error: (event) => void errors.push(event) },
    clock,
    observer: {
      httpEnded: ({ requestId, method, route, status, durationMs }) =>
        void ends.push({ requestId, method, route, status, durationMs }),
    },
    ...others,
  });
}

/** Starts a server whose route needs a key; the memory of its requests counts on the key's `memoryAccount`. */
function keyServer(handle: ScopedRoute["handle"], memoryAccount: MemoryAccount = bufferedBytes.visitors) {
  const principal = principalFor({ account: accountFor({ id: "acct_exchange" }), scopes: new Set(["chat:read"]) });
  return serverWith(() => Response.json({}), [], [], manualClock(), {
    routes: [{ method: "GET", path: "/", access: "chat:read", doc, handle }],
    authenticator: { authenticate: () => principal },
    openRequests: { enter: () => ({ memoryAccount, release: () => {} }) },
  });
}

const request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

test("closes the connection if a stream fails as it begins", async () => {
  const server = serverWith(() => ({
    status: 200,
    headers: {},
    begin() {
      throw new Error("boom");
    },
  }));
  const { answers, closed } = await rawUntilClosed(`http://127.0.0.1:${server.port}`, request);
  expect([answers.length, closed, server.pendingRequests]).toEqual([0, true, 0]);
  server.close();
});

test("answers an internal error for an unsendable header, and releases the connection", async () => {
  const errors: string[] = [];
  const server = serverWith(() => ({ status: 303, headers: { location: "/€" }, body: "" }), errors);
  const response = await fetch(`http://127.0.0.1:${server.port}/`, { redirect: "manual" });
  expect([response.status, response.headers.get("location")]).toEqual([500, null]);
  expect(await response.json()).toMatchObject({ error: { code: "internal_error" } });
  expect([server.pendingRequests, errors]).toEqual([0, ["request"]]);
  server.close();
});

test("logs each exchange once at its end: answered, failed, unrouted or malformed", async () => {
  const ends: HttpEnd[] = [];
  let answers = 0;
  const handle = () => {
    if (answers++ > 0) throw new Error("boom");
    return Response.json({});
  };
  const server = serverWith(handle, [], ends);
  const url = `http://127.0.0.1:${server.port}`;
  const ids: (string | null)[] = [];
  for (const [method, path] of [
    ["GET", "/"],
    ["GET", "/"],
    ["GET", "/none"],
    ["PUT", "/"],
  ] as const) {
    const response = await fetch(url + path, { method });
    await response.bytes();
    ids.push(response.headers.get("x-request-id"));
  }
  await rawUntilClosed(url, "no request\r\n\r\n");
  const durationMs = 0;
  expect(ends).toEqual([
    { requestId: String(ids[0]), method: "GET", route: "/", status: 200, durationMs },
    { requestId: String(ids[1]), method: "GET", route: "/", status: 500, durationMs },
    { requestId: String(ids[2]), method: "GET", route: undefined, status: 404, durationMs },
    { requestId: String(ids[3]), method: "PUT", route: undefined, status: 405, durationMs },
    { requestId: expect.any(String), method: "", route: undefined, status: 400, durationMs },
  ]);
  server.close();
});

test("logs an exchange that outlasts its handler at its real end", async () => {
  const ends: HttpEnd[] = [];
  const { promise, resolve } = Promise.withResolvers<() => void>();
  const route = (exchange: Exchange) => {
    const log = exchange.defer();
    return {
      status: 200,
      headers: {},
      begin: (client: ClientStream) =>
        resolve(() => {
          client.end("over");
          log.finish();
        }),
    };
  };
  const server = serverWith(route, [], ends);
  const answer = fetch(`http://127.0.0.1:${server.port}/`);
  const finish = await promise;
  expect(ends).toEqual([]);
  finish();
  expect(await (await answer).text()).toBe("over");
  expect(ends).toHaveLength(1);
  server.close();
});

test("logs the duration of a request that is refused synchronously", async () => {
  const ends: HttpEnd[] = [];
  const handle = () => {
    const endMs = performance.now() + 5;
    while (performance.now() < endMs);
    throw new GatewayError("invalid_request", "No.");
  };
  const server = serverWith(handle, [], ends, systemClock);
  expect((await fetch(`http://127.0.0.1:${server.port}/`)).status).toBe(400);
  expect(ends[0]?.durationMs).toBeGreaterThanOrEqual(5);
  server.close();
});

test("charges a large answer to its key's memory, and refuses an answer beyond that memory", async () => {
  const held: number[] = [];
  const memoryAccount: MemoryAccount = {
    take(_, bytes) {
      held.push(bytes);
      return bytes > 50_000 ? new GatewayError("rate_limit_exceeded", "The key holds too much.") : undefined;
    },
    release: (_, bytes) => void held.push(-bytes),
  };
  let length = 0;
  const server = keyServer(() => new Response("x".repeat(length)), memoryAccount);
  const statuses: number[] = [];
  for (length of [1_000, 40_000, 60_000]) {
    const response = await fetch(`http://127.0.0.1:${server.port}/`);
    await response.text();
    statuses.push(response.status);
    await until(() => server.pendingRequests === 0, "the answer is taken");
  }
  server.close();
  expect(statuses).toEqual([200, 200, 429]);
  expect(held).toEqual([40_000, -40_000, 60_000]);
});

test("begins no more than two reads of an account in one tick of the event loop", async () => {
  let tick = 0;
  let isOver = false;
  const count = () => {
    tick++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const perTick = new Map<number, number>();
  const server = keyServer(() => {
    perTick.set(tick, (perTick.get(tick) ?? 0) + 1);
    return Response.json({});
  });
  const sent = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
  const answers = Array.from({ length: 40 }, () => rawUntilClosed(`http://127.0.0.1:${server.port}`, sent));
  // While this thread sleeps all requests arrive; the server finds them at its next poll of the sockets.
  await new Promise(setImmediate);
  Bun.sleepSync(100);
  await Promise.all(answers);
  isOver = true;
  server.close();
  expect([...perTick.values()].reduce((sum, begun) => sum + begun, 0)).toBe(40);
  expect(Math.max(...perTick.values())).toBeLessThanOrEqual(2);
});
