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

function serverWith(handle: () => unknown, errors: string[] = []) {
  return startHttpServer({
    hostname: "127.0.0.1",
    port: 0,
    routes: [{ method: "GET", path: "/", access: "public", handle } as unknown as PublicRoute],
    authenticator: {} as Authenticator,
    sessions: noSessions,
    trustedProxies: new BlockList(),
    corsOrigins: () => [],
    log: { info() {}, warn() {}, error: (event: string) => errors.push(event) } as unknown as Log,
    clock: manualClock(),
  });
}

const request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

test("a stream that fails as it begins is broken off, and holds no connection", async () => {
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

test("an answer with a header that cannot be sent becomes a fault of ours, and holds no connection", async () => {
  const errors: string[] = [];
  const server = serverWith(() => ({ status: 303, headers: { location: "/€" }, body: "" }), errors);
  const response = await fetch(`http://127.0.0.1:${server.port}/`, { redirect: "manual" });
  expect([response.status, response.headers.get("location")]).toEqual([500, null]);
  expect(await response.json()).toMatchObject({ error: { code: "internal_error" } });
  expect([server.pendingRequests, errors]).toEqual([0, ["request"]]);
  server.close();
});
