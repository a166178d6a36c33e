// Tests the ends of streams and tunnels: failures at the node, time limits, drains and closes, and what both ends
// report to each other.

import { describe, expect, test } from "bun:test";
import {
  endOf,
  RecordingSink,
  requestOf,
  ScriptedBody,
  startGateway,
  startNode,
  textOf,
  until,
} from "../../../tests/support/tunnel/tunnel-fixture.ts";
import { bodyOf } from "../../base/bytes/body-source.ts";
import { bufferedBytes, NoRoomError } from "../../base/bytes/buffered-bytes.ts";
import { ByteSpan } from "../../base/bytes/byte-span.ts";
import { Cancellation } from "../../base/cancellation.ts";
import { GatewayError } from "../../base/errors.ts";
import { tunnelCloseCodes } from "./contract.ts";

const plain = new Headers({ "content-type": "text/plain" });
const answering = (body: ScriptedBody) => ({ status: 200, headers: plain, body });

async function errorOf(work: Promise<unknown>): Promise<GatewayError> {
  try {
    await work;
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
  throw new Error("nothing was thrown");
}

describe("failures at the node", () => {
  test("reports a lack of room at the node, which is not a fault of its model server", async () => {
    await using gateway = startGateway();
    const refusals = [
      new NoRoomError("rate_limit_exceeded", "The key holds too much."),
      new NoRoomError("service_unavailable", "The server holds too much."),
    ];
    using node = startNode(gateway, {
      handle: async () => {
        const body = new ScriptedBody();
        body.onFlow = () => body.sink?.fail(refusals.shift());
        return answering(body);
      },
    });
    const end = await endOf(gateway, node);
    for (let index = 0; index < 2; index++) {
      const error = await errorOf(end.send(requestOf("x"), new Cancellation()).then(textOf));
      expect(error).toBeInstanceOf(NoRoomError);
      expect(error).toMatchObject({ code: "service_unavailable", retryAfterSeconds: 2 });
    }
  });

  test("reports a failure before the answer by its code, with the node's words only in the log", async () => {
    await using gateway = startGateway();
    const failures = [
      new GatewayError("upstream_timeout", "too slow", { detail: "model-7" }),
      new GatewayError("service_unavailable", "full"),
      new GatewayError("internal_error", "secret\n things"),
      new Error("a bug"),
    ];
    using node = startNode(gateway, {
      handle: async () => {
        throw failures.shift();
      },
    });
    const end = await endOf(gateway, node);
    const errors = [];
    for (let index = 0; index < 4; index++) errors.push(await errorOf(end.send(requestOf("x"), new Cancellation())));
    expect(errors.map(({ code, message }) => [code, message])).toEqual([
      ["upstream_timeout", "The model server of the node did not answer in time."],
      ["service_unavailable", "The node takes no more requests for now."],
      ["upstream_error", "The node could not answer."],
      ["upstream_error", "The node could not answer."],
    ]);
    expect(errors.map(({ detail }) => detail)).toEqual([
      `${node.id}: too slow (model-7)`,
      `${node.id}: full`,
      `${node.id}: secret  things`,
      `${node.id}: Error: a bug`,
    ]);
    expect(node.faults.map(String)).toEqual(["Error: a bug"]);
  });

  test("delivers the earlier bytes before a failure in the middle of the answer", async () => {
    await using gateway = startGateway();
    const body = new ScriptedBody();
    using node = startNode(gateway, { handle: async () => answering(body) });
    const end = await endOf(gateway, node);
    const response = await end.send(requestOf("x"), new Cancellation());
    body.sink?.data(ByteSpan.of("half"));
    body.sink?.fail(new GatewayError("upstream_error", "broke"));
    await until(() => end.openStreams === 0, "the end of the stream");
    const sink = new RecordingSink();
    response.body.flow(sink);
    expect(sink.bytes).toBe(4);
    expect((sink.error as GatewayError).message).toBe("The node broke off its answer.");
  });

  test("refuses a request that is too large for the node or exceeds its buffers", async () => {
    await using gateway = startGateway();
    const wait = Promise.withResolvers<void>();
    using node = startNode(gateway, {
      limits: { bodyBytes: 10_000, allBodyBytes: 15_000 },
      handle: async () => {
        await wait.promise;
        return { status: 200, headers: plain, body: bodyOf(Buffer.from("ok")) };
      },
    });
    const end = await endOf(gateway, node);
    const large = await errorOf(end.send(requestOf(Buffer.alloc(10_001)), new Cancellation()));
    expect([large.code, large.message, large.detail]).toEqual([
      "request_too_large",
      "The request is too large for this model.",
      `${node.id}: The node takes requests of at most 10000 bytes.`,
    ]);
    const first = end.send(requestOf(Buffer.alloc(9_000)), new Cancellation());
    const second = await errorOf(end.send(requestOf(Buffer.alloc(9_000)), new Cancellation()));
    expect(second.code).toBe("service_unavailable");
    wait.resolve();
    expect(await textOf(await first)).toBe("ok");
    expect(await textOf(await end.send(requestOf(Buffer.alloc(9_000)), new Cancellation()))).toBe("ok");
  });

  test("refuses requests beyond a node's number without sending them", async () => {
    await using gateway = startGateway();
    using node = startNode(gateway, { limits: { streams: 2 }, handle: () => new Promise(() => {}) });
    const end = await endOf(gateway, node);
    const open = [1, 2].map(() => end.send(requestOf("x"), new Cancellation()));
    const third = await errorOf(end.send(requestOf("x"), new Cancellation()));
    expect([third.code, third.detail]).toEqual(["service_unavailable", `${node.id}: 2 requests are open`]);
    end.close(1000, "");
    for (const response of open) expect((await errorOf(response)).code).toBe("upstream_error");
  });
});

describe("time limits of a tunnel", () => {
  test("times out an answer that does not begin or falls silent, and tells the node", async () => {
    await using gateway = startGateway({
      firstByteTimeoutMs: 80,
      idleTimeoutMs: 80,
      limits: { heartbeatMs: 50, silenceMs: 2_000 },
    });
    const silent = new ScriptedBody();
    const cancellations: Cancellation[] = [];
    using node = startNode(gateway, {
      handle: async (request, cancellation) => {
        cancellations.push(cancellation);
        if ((request.body as ByteSpan).length === 1) return new Promise(() => {});
        return answering(silent);
      },
    });
    const end = await endOf(gateway, node);
    const late = await errorOf(end.send(requestOf("x"), new Cancellation()));
    expect([late.code, late.message]).toEqual(["upstream_timeout", "The node did not answer within 0 s."]);
    await until(() => cancellations[0]?.cancelled, "the cancellation at the node");
    const response = await end.send(requestOf("xx"), new Cancellation());
    const sink = new RecordingSink();
    response.body.flow(sink);
    // Silence while the reader pauses does not count against the node.
    response.body.pause();
    await Bun.sleep(200);
    expect([sink.error, end.openStreams]).toEqual([undefined, 1]);
    response.body.resume();
    await until(() => sink.error, "the end");
    expect((sink.error as GatewayError).code).toBe("upstream_timeout");
    await until(() => silent.cancelled, "the cancellation at the node");
  });
});

describe("the end of a tunnel", () => {
  test("sends a draining node nothing new, lets it finish, and lets it leave", async () => {
    await using gateway = startGateway();
    const body = new ScriptedBody();
    using node = startNode(gateway, { handle: async () => answering(body) });
    const end = await endOf(gateway, node);
    const response = await end.send(requestOf("x"), new Cancellation());
    const drained = node.link.drain();
    await until(() => gateway.ends[0]?.draining, "the word of the node");
    expect(end.draining).toBe(true);
    expect((await errorOf(end.send(requestOf("x"), new Cancellation()))).code).toBe("service_unavailable");
    const text = textOf(response);
    body.sink?.data(ByteSpan.of("all of it"));
    body.sink?.end();
    expect(await text).toBe("all of it");
    await drained;
    await until(() => gateway.ends[0]?.closed, "the end");
    expect(gateway.ends[0]?.closed?.code).toBe(tunnelCloseCodes.normal);
    expect(node.link.state.status).toBe("closed");
    expect(gateway.ends.length).toBe(1);
  });

  test("sends a draining node what its open requests still need", async () => {
    await using gateway = startGateway();
    const body = new ScriptedBody();
    using node = startNode(gateway, {
      handle: async (request) =>
        "server" in request && request.method === "GET"
          ? answering(body)
          : { status: 202, headers: plain, body: bodyOf(Buffer.from("taken")) },
    });
    const end = await endOf(gateway, node);
    const send = (method: "GET" | "POST" | "DELETE", message: object = {}) =>
      end.send(
        {
          requestId: "req_1",
          server: "own",
          method,
          headers: {},
          body: JSON.stringify(message),
          memoryAccount: bufferedBytes.bounded,
        },
        new Cancellation(),
      );
    const open = await send("GET");
    const drained = node.link.drain();
    await until(() => gateway.ends[0]?.draining, "the word of the node");
    for (const message of [{ id: 1, result: {} }, { method: "notifications/cancelled" }]) {
      expect(await textOf(await send("POST", message))).toBe("taken");
    }
    const round = { id: 2, method: "tools/call", params: { name: "one", inputResponses: { a: {} } } };
    expect(await textOf(await send("POST", round))).toBe("taken");
    expect(await textOf(await send("DELETE"))).toBe("taken");
    for (const refused of [send("GET"), send("POST", { ...round, params: { name: "one" } }), send("POST", [])]) {
      expect((await errorOf(refused)).code).toBe("service_unavailable");
    }
    open.body.cancel();
    await drained;
    expect((await errorOf(send("POST", { id: 1, result: {} }))).code).toMatch(/service_unavailable|upstream_error/);
  });

  test("answers a request that crosses the node's drain message", async () => {
    await using gateway = startGateway();
    using node = startNode(gateway);
    const end = await endOf(gateway, node);
    const answer = end.send(requestOf("crossing"), new Cancellation());
    const drained = node.link.drain();
    expect(await textOf(await answer)).toBe("crossing");
    await drained;
  });

  // long-lived: nodeTunnel.server
  test("finishes open requests of a draining gateway while the node reconnects", async () => {
    await using gateway = startGateway();
    const body = new ScriptedBody();
    using node = startNode(gateway, {
      handle: async (request) =>
        (request.body as ByteSpan).length > 1
          ? { status: 200, headers: plain, body: bodyOf(Buffer.from("ok")) }
          : answering(body),
    });
    const end = await endOf(gateway, node);
    const response = await end.send(requestOf("x"), new Cancellation());
    const drained = end.drain();
    const next = await endOf(gateway, node, 2);
    expect(await textOf(await next.send(requestOf("new"), new Cancellation()))).toBe("ok");
    const text = textOf(response);
    body.sink?.data(ByteSpan.of("old"));
    body.sink?.end();
    expect(await text).toBe("old");
    await drained;
    expect(gateway.ends[0]?.closed).toEqual({ code: tunnelCloseCodes.goingAway, reason: "the gateway is going away" });
    // The end of the old connection must not cause a third one.
    await Bun.sleep(80);
    expect([next.closed, gateway.ends.length]).toEqual([false, 2]);
    expect(node.link.state.status).toBe("connected");
  });

  test("drains an idle tunnel at once, repeatedly, and from both ends", async () => {
    await using gateway = startGateway();
    using node = startNode(gateway);
    const end = await endOf(gateway, node);
    expect(end.drain()).toBe(end.drain());
    await Promise.all([end.drain(), node.link.drain()]);
    await end.drain();
    expect(end.closed).toBe(true);
  });

  test("fails open requests at once when the gateway closes the tunnel, and stops them at the node", async () => {
    await using gateway = startGateway();
    const body = new ScriptedBody();
    const cancellations: Cancellation[] = [];
    using node = startNode(gateway, {
      handle: async (request, cancellation) => {
        cancellations.push(cancellation);
        return (request.body as ByteSpan).length === 1 ? new Promise(() => {}) : answering(body);
      },
    });
    const end = await endOf(gateway, node);
    const waiting = end.send(requestOf("x"), new Cancellation());
    const response = await end.send(requestOf("xx"), new Cancellation());
    const sink = new RecordingSink();
    response.body.flow(sink);
    end.close(tunnelCloseCodes.replaced, "it has connected again");
    expect((await errorOf(waiting)).message).toBe("The connection to the node broke.");
    expect((sink.error as GatewayError).code).toBe("upstream_error");
    expect((await errorOf(end.send(requestOf("x"), new Cancellation()))).code).toBe("upstream_error");
    await until(() => body.cancelled && cancellations.every(({ cancelled }) => cancelled), "the end of the work");
    expect(gateway.ends[0]?.closed).toEqual({ code: tunnelCloseCodes.replaced, reason: "it has connected again" });
  });
});

test("announces changes at most once a second, and always the last one", async () => {
  await using gateway = startGateway({ limits: { heartbeatMs: 100 } });
  let count = 0;
  using node = startNode(gateway, {
    announcement: () => ({
      version: "1.0.0",
      models: [{ id: `m${count}`, context: 10, concurrency: { chat: 4 }, capabilities: { chat: true } }],
      load: { active: count, waiting: 0 },
    }),
  });
  const end = await endOf(gateway, node);
  while (count < 50) {
    count++;
    node.link.announce();
  }
  await until(() => end.announcement?.load?.active === 50, "the last one");
  expect(end.announcement?.models).toEqual([
    { id: "m50", context: 10, concurrency: { chat: 4 }, capabilities: { chat: true } },
  ]);
  expect(gateway.ends[0]?.announcements.length).toBeLessThanOrEqual(3);
});

test("tells a node its name and approved models", async () => {
  await using gateway = startGateway();
  const heard: unknown[] = [];
  using node = startNode(gateway, { onStatus: (status) => void heard.push(status) });
  const end = await endOf(gateway, node);
  end.sendStatus({ name: "attic", approvedModels: ["a", "b"] });
  await until(() => heard.length === 1, "the standing");
  expect(heard).toEqual([{ name: "attic", approvedModels: ["a", "b"] }]);
});
