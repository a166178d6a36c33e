// One request of the HTTP API, where a handler fails at a moment at which nothing can be answered any more.

import { expect, test } from "bun:test";
import { BlockList } from "node:net";
import { rawUntilClosed } from "../../tests/hostile/raw-client.ts";
import { manualClock } from "../../tests/support/manual-clock.ts";
import { noSessions } from "../../tests/support/principal.ts";
import type { Log } from "../domain/log.ts";
import type { Authenticator } from "../policy/authenticate.ts";
import type { PublicRoute } from "./route.ts";
import { startHttpServer } from "./server.ts";

test("a stream that fails as it begins is broken off, and holds no connection", async () => {
  const route = {
    method: "GET",
    path: "/",
    access: "public",
    handle: () => ({
      status: 200,
      headers: {},
      begin() {
        throw new Error("boom");
      },
    }),
  } as unknown as PublicRoute;
  const server = startHttpServer({
    hostname: "127.0.0.1",
    port: 0,
    routes: [route],
    authenticator: {} as Authenticator,
    sessions: noSessions,
    trustedProxies: new BlockList(),
    corsOrigins: () => [],
    log: { info() {}, warn() {}, error() {} } as unknown as Log,
    clock: manualClock(),
  });
  const { answers, closed } = await rawUntilClosed(
    `http://127.0.0.1:${server.port}`,
    "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
  );
  expect([answers.length, closed, server.pendingRequests]).toEqual([0, true, 0]);
  server.close();
});
