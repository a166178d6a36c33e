// Tests that a node stays connected: it reconnects after every drop, notices silence, and stops for good if told so.

import { describe, expect, test } from "bun:test";
import { withinMs } from "../../tests/support/long.ts";
import { cuttableProxy, rawGateway, rawHello } from "../../tests/support/tunnel/raw-ends.ts";
import {
  endOf,
  gatewayUrl,
  RecordingSink,
  requestOf,
  ScriptedBody,
  startGateway,
  startNode,
  type TestGateway,
  textOf,
  until,
} from "../../tests/support/tunnel/tunnel-fixture.ts";
import { ByteSpan } from "../base/bytes/byte-span.ts";
import { Cancellation } from "../base/cancellation.ts";
import type { GatewayError } from "../base/errors.ts";
import { connectUrl } from "./dial.ts";
import { newNodeKey } from "./identity.ts";
import { NodeLink } from "./node-link.ts";
import { tunnelCloseCodes } from "./tunnel/contract.ts";
import { messageTypes } from "./tunnel/messages.ts";

const quick = { heartbeatMs: 20, silenceMs: 120, authenticationMs: 500 };
const at = (gateway: TestGateway, url: string): TestGateway => ({ ...gateway, url });
const plain = new Headers();

test("reconnects a node after a cut, announces again, and fails the open requests", async () => {
  await using gateway = startGateway();
  using proxy = cuttableProxy(gateway.http.server.port);
  const body = new ScriptedBody();
  using node = startNode(at(gateway, proxy.url), { handle: async () => ({ status: 200, headers: plain, body }) });
  const end = await endOf(gateway, node);
  const response = await end.send(requestOf("x"), new Cancellation());
  const sink = new RecordingSink();
  response.body.flow(sink);
  body.sink?.data(ByteSpan.of("half"));
  await until(() => sink.bytes === 4, "the first half");
  proxy.cut();
  await until(() => sink.error, "the failure");
  expect((sink.error as GatewayError).message).toBe("The connection to the node broke in the middle of its answer.");
  await until(() => body.cancelled, "the end of the work at the node");
  const next = await endOf(gateway, node, 2);
  expect(next.announcement?.version).toBe("1.2.3");
  expect(gateway.ends[0]?.closed?.code).toBe(tunnelCloseCodes.broken);
  const statuses = node.states.map(({ status }) => status);
  expect(statuses.slice(0, 3)).toEqual(["connecting", "connected", "waiting"]);
  expect(statuses.at(-1)).toBe("connected");
});

// long-lived: nodeTunnel.idle
test("notices a silent link at both ends, and reconnects soon after it works again", async () => {
  await using gateway = startGateway({ limits: quick });
  using proxy = cuttableProxy(gateway.http.server.port);
  using node = startNode(at(gateway, proxy.url), {
    limits: quick,
    timings: { connectMs: 60, firstBackoffMs: 10, backoffMs: 40 },
    handle: () => new Promise(() => {}),
  });
  const end = await endOf(gateway, node);
  const waiting = end.send(requestOf("x"), new Cancellation()).catch((error: GatewayError) => error.code);
  await until(() => node.link.openStreams === 1, "the request");
  proxy.freeze();
  expect(await waiting).toBe("upstream_error");
  expect(gateway.ends[0]?.closed).toEqual({ code: tunnelCloseCodes.broken, reason: "nothing came for 0.1 s" });
  await until(() => node.link.state.status === "waiting", "the node's notice");
  expect(node.link.openStreams).toBe(0);
  // Attempts to connect fail meanwhile, within their deadline.
  const before = proxy.connections;
  await until(() => proxy.connections >= before + 2, "attempts");
  proxy.thaw();
  const mendedMs = performance.now();
  await endOf(gateway, node, 2);
  expect(performance.now() - mendedMs).toBeLessThan(withinMs(1_000));
});

test("keeps a quiet link open by heartbeats alone, and measures its round trip", async () => {
  await using gateway = startGateway({ limits: quick });
  using node = startNode(gateway, { limits: quick });
  const end = await endOf(gateway, node);
  await Bun.sleep(400);
  expect(end.closed).toBe(false);
  expect(node.link.state.status).toBe("connected");
  expect(end.roundTripMs).toBeLessThan(withinMs(100));
});

test("ends every stream and leaves nothing behind after a cut at any moment", async () => {
  await using gateway = startGateway();
  using proxy = cuttableProxy(gateway.http.server.port);
  using node = startNode(at(gateway, proxy.url), { timings: { firstBackoffMs: 1, backoffMs: 1, connectMs: 1_000 } });
  for (let round = 1; round <= 12; round++) {
    const end = await until(
      () => gateway.ends.find((heard) => !heard.end.closed && heard.end.announcement)?.end,
      "an end",
    );
    const outcomes = Array.from({ length: 30 }, async (_, index) => {
      const body = Buffer.alloc(index * 10_000, "x");
      const text = await textOf(await end.send(requestOf(body), new Cancellation()));
      expect(text.length).toBe(body.length);
    });
    const settled = Promise.allSettled(outcomes);
    await Bun.sleep(round % 7);
    proxy.cut();
    for (const outcome of await settled) {
      if (outcome.status === "rejected") expect((outcome.reason as GatewayError).code).toBe("upstream_error");
    }
    await until(() => end.closed, "its end");
    expect(end.openStreams).toBe(0);
    await until(() => node.link.openStreams === 0, "the node's streams");
  }
  expect(node.faults).toEqual([]);
});

test("connects a node once its gateway is there, with a bounded backoff", async () => {
  const key = newNodeKey();
  const node = { id: "node_late", privateKey: key.privateKey };
  const states: string[] = [];
  await using gateway = startGateway();
  gateway.keys.set(node.id, { publicKey: key.publicKey });
  using proxy = cuttableProxy(1);
  const away = new NodeLink({
    ...{ url: proxy.url, gateway: gatewayUrl, node },
    handle: () => new Promise(() => {}),
    announcement: () => ({ version: "1", models: [] }),
    onState: ({ status, message, attempts }) => void states.push(`${status} ${attempts} ${message}`),
    timings: { firstBackoffMs: 1, backoffMs: 20, connectMs: 500 },
  });
  away.start();
  away.start();
  await until(() => away.state.attempts >= 6, "attempts");
  away.close();
  const { length } = states;
  await Bun.sleep(60);
  expect(states.length).toBe(length);
  expect(states[0]).toBe("connecting 1 ");
  expect(states[1]).toStartWith("waiting 1 The gateway cannot be reached: ");
  expect(away.state.status).toBe("closed");
});

describe("the end of a node's link", () => {
  const refusals: [what: string, code: number, message: string][] = [
    [
      "when it was revoked",
      tunnelCloseCodes.revoked,
      "The gateway has revoked this node: join again with a new token.",
    ],
    [
      "when nobody knows it",
      tunnelCloseCodes.unknownNode,
      "The gateway does not know this node: join again with a new token.",
    ],
    [
      "when another process took its place",
      tunnelCloseCodes.replaced,
      "Another process has connected as this node: only one can.",
    ],
  ];
  for (const [what, code, message] of refusals) {
    test(`stops for good ${what}, also later`, async () => {
      await using gateway = startGateway();
      using node = startNode(gateway);
      const end = await endOf(gateway, node);
      end.close(code, "as the operator said");
      await until(() => node.link.state.status === "refused", "the refusal");
      expect(node.link.state.message).toBe(message);
      const { length } = node.states;
      await Bun.sleep(120);
      expect(node.states.length).toBe(length);
      node.link.close();
      expect(node.link.state.status).toBe("refused");
    });
  }

  test("retries while the gateway is away or cannot look anything up", async () => {
    let fails = true;
    await using gateway = startGateway({
      findKey: async (id) => {
        if (fails) throw new Error("no database");
        return gateway.keys.get(id) ?? { refused: "unknown" };
      },
    });
    using node = startNode(gateway);
    await until(() => node.states.filter(({ status }) => status === "waiting").length >= 2, "attempts");
    fails = false;
    const end = await endOf(gateway, node);
    end.close(tunnelCloseCodes.goingAway, "restart");
    await endOf(gateway, node, 2);
  });

  test("retries while the versions have nothing in common", async () => {
    let major = 2;
    await using gateway = rawGateway((end) => {
      end.send(messageTypes.hello, 0, rawHello({ major }));
      end.listener.onMessage = (bytes) => {
        if (bytes[0] === messageTypes.proof) end.send(messageTypes.welcome, 0, "{}");
      };
    });
    using node = startNode({ url: gateway.url, keys: new Map() });
    await until(() => node.link.state.status === "waiting", "the wait");
    expect(node.link.state.message).toContain("this node speaks version 1 of the protocol, not 2");
    major = 1;
    await until(() => node.link.state.status === "connected", "the connection");
  });
});

test("opens no connection after it was closed early", async () => {
  await using gateway = startGateway();
  using node = startNode(gateway);
  node.link.close();
  await Bun.sleep(60);
  expect(node.states.map(({ status }) => status)).toEqual(["connecting", "closed"]);
  expect(gateway.ends).toEqual([]);
  using draining = startNode(gateway);
  await draining.link.drain();
  expect(draining.link.state.status).toBe("closed");
});

test("stops without waiting for nodes, and fails their open requests when closed by force", async () => {
  await using gateway = startGateway();
  using node = startNode(gateway, { handle: () => new Promise(() => {}) });
  const end = await endOf(gateway, node);
  const waiting = end.send(requestOf("x"), new Cancellation()).catch((error: GatewayError) => error.code);
  await gateway.http.server.stop();
  expect(end.closed).toBe(false);
  gateway.http.server.close();
  expect(await waiting).toBe("upstream_error");
  await until(() => node.link.state.status === "waiting", "the node's notice");
});

test("derives the endpoint from the gateway's base URL, with or without /v1", () => {
  const of = (url: string) => connectUrl(url).href;
  expect(of("https://a.example")).toBe("https://a.example/v1/node/connect");
  expect(of("https://a.example:8443/v1/")).toBe("https://a.example:8443/v1/node/connect");
  expect(of("http://a.example/prefix/v1?x=1#y")).toBe("http://a.example/prefix/v1/node/connect");
  expect(() => of("ftp://a.example")).toThrow("must begin with https:// or http://");
  expect(() => of("a.example")).toThrow();
});

test("rejects an invalid key or URL at once", () => {
  const options = {
    ...{ gateway: gatewayUrl, handle: () => new Promise<never>(() => {}) },
    announcement: () => ({ version: "1", models: [] }),
  };
  const { privateKey } = newNodeKey();
  expect(() => new NodeLink({ ...options, url: "https://a", node: { id: "n", privateKey: "AAAA" } })).toThrow();
  expect(() => new NodeLink({ ...options, url: "nowhere", node: { id: "n", privateKey } })).toThrow();
});

test("leaves nothing behind after ten thousand requests", async () => {
  await using gateway = startGateway();
  using node = startNode(gateway);
  const end = await endOf(gateway, node);
  const rounds = async (count: number) => {
    await Promise.all(
      Array.from({ length: 50 }, async () => {
        for (let round = 0; round < count; round++) {
          const response = await end.send(requestOf("x".repeat(1_000)), new Cancellation());
          if (round % 5 === 0) response.body.cancel();
          else await textOf(response);
        }
      }),
    );
    Bun.gc(true);
    return process.memoryUsage().heapUsed;
  };
  await rounds(50);
  const before = await rounds(20);
  const after = await rounds(130);
  expect(after - before).toBeLessThan(4e6);
  expect([end.openStreams, node.link.openStreams]).toEqual([0, 0]);
});
