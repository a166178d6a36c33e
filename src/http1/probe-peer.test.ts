// Connections that wait for a long answer: Linux lists the timers of their probes.
import { expect, test } from "bun:test";
import { startTestServer, until } from "../../tests/support/http1/server-fixture.ts";
import { probedEnds } from "../../tests/support/probed-sockets.ts";
import { Cancellation } from "../base/cancellation.ts";
import { Http1Client } from "./client/client.ts";
import type { Reply } from "./message.ts";

test.skipIf(process.platform !== "linux")("probes the client and the upstream while a request waits", async () => {
  const replies: Reply[] = [];
  await using it = startTestServer((_, reply) => void replies.push(reply));
  const { port } = it.server;
  const client = new Http1Client({ hostname: "127.0.0.1", port }, {});
  const timeouts = { firstByteTimeoutMs: 5_000, idleTimeoutMs: 5_000 };
  const answer = client.send({ method: "GET", path: "/", headers: {} }, timeouts, new Cancellation());
  await until(() => replies.length > 0, "the request arrives");
  await until(() => probedEnds(port).own, "the server probes its client");
  await until(() => probedEnds(port).peers, "the client probes its server");
  replies[0]?.send(200, {}, "late");
  expect((await answer).status).toBe(200);
  client.close();
});
