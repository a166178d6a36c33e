// Requests over a tunnel, from end to end over real sockets: answers, back-pressure, cancelling, many at once, drains.
import { describe, expect, test } from "bun:test";
import { bodyOf } from "../../domain/body-source.ts";
import { Cancellation } from "../../domain/cancellation.ts";
import { GatewayError } from "../../domain/errors.ts";
import {
  endOf,
  RecordingSink,
  requestOf,
  ScriptedBody,
  startGateway,
  startNode,
  textOf,
  until,
} from "../testing/tunnel-fixture.ts";
import { defaultTunnelLimits, tunnelCloseCodes } from "./contract.ts";

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

test("a request reaches the node as it was sent, and its answer comes back with the headers that matter", async () => {
  await using gateway = startGateway();
  const seen: unknown[] = [];
  using node = startNode(gateway, {
    handle: async (request) => {
      seen.push({ ...request, body: Buffer.from(request.body as Uint8Array).toString() });
      return {
        status: 201,
        headers: new Headers({ "content-type": "text/event-stream", "retry-after": "3", "set-cookie": "a=b" }),
        body: bodyOf(Buffer.from("data: ä\n\n")),
      };
    },
  });
  const end = await endOf(gateway, node);
  expect(end.announcement).toEqual({ version: "1.2.3", models: [{ id: "m" }] });
  const request = requestOf('{"ü":1}', {
    ...{ requestId: "req_x", operation: "embedding", model: "a/b", stream: false, width: 3 },
  });
  const response = await end.send(request, new Cancellation());
  expect(response.status).toBe(201);
  const names = ["content-type", "retry-after", "set-cookie"];
  expect(names.map((name) => response.headers.get(name))).toEqual(["text/event-stream", "3", null]);
  expect(await textOf(response)).toBe("data: ä\n\n");
  expect(seen).toEqual([request]);
  expect([end.openStreams, node.link.openStreams]).toEqual([0, 0]);
});

test("bodies of every size arrive whole, both ways", async () => {
  await using gateway = startGateway();
  using node = startNode(gateway);
  const end = await endOf(gateway, node);
  for (const size of [0, 1, 65_535, 65_536, 65_537, 262_144, 262_145, 300_000, 3_000_000]) {
    const body = Buffer.alloc(size, "0123456789");
    expect(await textOf(await end.send(requestOf(body), new Cancellation()))).toBe(body.toString());
  }
});

test("a thousand requests at once are answered, each with its own answer", async () => {
  await using gateway = startGateway();
  const bodies: { text: string; body: ScriptedBody }[] = [];
  using node = startNode(gateway, {
    handle: async (request) => {
      const body = new ScriptedBody();
      bodies.push({ text: Buffer.from(request.body as Uint8Array).toString(), body });
      return answering(body);
    },
  });
  const end = await endOf(gateway, node);
  const texts = Array.from({ length: 1_000 }, (_, index) => `request ${index};`);
  const responses = await Promise.all(texts.map((text) => end.send(requestOf(text), new Cancellation())));
  expect(end.openStreams).toBe(1_000);
  const answers = responses.map((response) => textOf(response));
  for (let round = 0; round < 5; round++) {
    for (const { text, body } of bodies) body.sink?.data(Buffer.from(text));
    await Bun.sleep(0);
  }
  for (const { body } of bodies.toReversed()) body.sink?.end();
  expect(await Promise.all(answers)).toEqual(texts.map((text) => text.repeat(5)));
  expect([end.openStreams, node.link.openStreams]).toEqual([0, 0]);
});

describe("back-pressure", () => {
  test("who takes nothing is sent no more than the window, and holds up nobody else", async () => {
    await using gateway = startGateway();
    const slow = new ScriptedBody();
    using node = startNode(gateway, {
      handle: async (request) => {
        const text = Buffer.from(request.body as Uint8Array).toString();
        return text === "slow"
          ? answering(slow)
          : { status: 200, headers: plain, body: bodyOf(Buffer.alloc(2_000_000)) };
      },
    });
    const end = await endOf(gateway, node);
    const response = await end.send(requestOf("slow"), new Cancellation());
    const sink = new RecordingSink();
    response.body.flow(sink);
    response.body.pause();
    const piece = Buffer.alloc(10_000, "x");
    let given = 0;
    const give = () => {
      while (!slow.paused && given < 3_000_000) {
        given += piece.length;
        slow.sink?.data(piece);
      }
      if (given >= 3_000_000) slow.sink?.end();
    };
    slow.onResume = give;
    give();
    expect(given).toBeLessThanOrEqual(defaultTunnelLimits.windowBytes + 2 * piece.length);
    for (let turn = 0; turn < 5; turn++) {
      expect((await textOf(await end.send(requestOf("quick"), new Cancellation()))).length).toBe(2_000_000);
    }
    expect(sink.bytes).toBe(0);
    expect(given).toBeLessThanOrEqual(defaultTunnelLimits.windowBytes + 2 * piece.length);
    response.body.resume();
    await until(() => sink.ended, "the rest");
    expect(sink.bytes).toBe(given);
  });

  test("a taker that pauses at each piece gets every byte in its order, and the end last", async () => {
    await using gateway = startGateway();
    const sent = Buffer.from(Array.from({ length: 700_000 }, (_, index) => (index * 7 + (index >> 8)) & 255));
    using node = startNode(gateway, {
      handle: async () => ({ status: 200, headers: plain, body: bodyOf(sent) }),
      limits: { windowBytes: 20_000 },
    });
    const end = await endOf(gateway, node);
    const response = await end.send(requestOf("x"), new Cancellation());
    const pieces: Buffer[] = [];
    const sink = new RecordingSink();
    sink.onData = (bytes) => {
      expect(sink.ended).toBe(false);
      pieces.push(Buffer.from(bytes));
      response.body.pause();
      setTimeout(() => response.body.resume(), 0);
    };
    response.body.flow(sink);
    await until(() => sink.ended, "the end");
    expect(Buffer.concat(pieces).equals(sent)).toBe(true);
  });

  test("a large request waits for what the node grants", async () => {
    await using gateway = startGateway();
    using node = startNode(gateway, { limits: { windowBytes: 2_048, bodyBytes: 1_000_000 } });
    const end = await endOf(gateway, node);
    const body = Buffer.alloc(900_000, "abc");
    expect(await textOf(await end.send(requestOf(body), new Cancellation()))).toBe(body.toString());
  });
});

describe("cancelling", () => {
  test("before the answer began, it stops the node at once", async () => {
    await using gateway = startGateway();
    let seen: Cancellation | undefined;
    using node = startNode(gateway, {
      handle: (_request, cancellation) => {
        seen = cancellation;
        return new Promise((_resolve, reject) => cancellation.onCancel(() => reject(cancellation.reason)));
      },
    });
    const end = await endOf(gateway, node);
    const cancellation = new Cancellation();
    const response = end.send(requestOf("x"), cancellation);
    await until(() => seen, "the request");
    const reason = new Error("enough");
    const startMs = performance.now();
    cancellation.cancel(reason);
    expect(response).rejects.toBe(reason);
    await until(() => seen?.cancelled, "the cancellation at the node");
    expect(performance.now() - startMs).toBeLessThan(100);
    expect([end.openStreams, node.link.openStreams, node.faults.length]).toEqual([0, 0, 0]);
  });

  test("in the middle of the answer, its source is cancelled; what comes late harms nothing", async () => {
    await using gateway = startGateway();
    const body = new ScriptedBody();
    using node = startNode(gateway, {
      handle: async (request) =>
        (request.body as Uint8Array).length > 1
          ? { status: 200, headers: plain, body: bodyOf(Buffer.from("ok")) }
          : answering(body),
    });
    const end = await endOf(gateway, node);
    const response = await end.send(requestOf("x"), new Cancellation());
    const sink = new RecordingSink();
    response.body.flow(sink);
    body.sink?.data(Buffer.from("one"));
    await until(() => sink.bytes === 3, "the first piece");
    response.body.cancel();
    body.sink?.data(Buffer.from("late"));
    await until(() => body.cancelled, "the cancellation at the node");
    body.sink?.data(Buffer.from("later"));
    body.sink?.end();
    expect(await textOf(await end.send(requestOf("more"), new Cancellation()))).toBe("ok");
    expect([sink.bytes, sink.ended, sink.error]).toEqual([3, false, undefined]);
    expect([end.openStreams, node.link.openStreams]).toEqual([0, 0]);
  });

  test("while a large request is on its way, nothing more of it is sent", async () => {
    await using gateway = startGateway();
    let handled = 0;
    using node = startNode(gateway, {
      limits: { windowBytes: 1_024 },
      handle: async () => {
        handled++;
        return { status: 200, headers: plain, body: bodyOf(Buffer.alloc(0)) };
      },
    });
    const end = await endOf(gateway, node);
    const cancellation = new Cancellation();
    const response = end.send(requestOf(Buffer.alloc(1_000_000)), cancellation);
    await until(() => node.link.openStreams === 1, "the request");
    cancellation.cancel("enough");
    expect(response).rejects.toBe("enough");
    await until(() => node.link.openStreams === 0, "its end at the node");
    expect(await textOf(await end.send(requestOf("x"), new Cancellation()))).toBe("");
    expect(handled).toBe(1);
  });

  test("an answer that comes when nobody waits any more is cancelled", async () => {
    await using gateway = startGateway();
    const body = new ScriptedBody();
    const wait = Promise.withResolvers<void>();
    let asked = false;
    using node = startNode(gateway, {
      handle: async () => {
        asked = true;
        await wait.promise;
        return answering(body);
      },
    });
    const end = await endOf(gateway, node);
    const cancellation = new Cancellation();
    const response = end.send(requestOf("x"), cancellation);
    await until(() => asked, "the request");
    cancellation.cancel("enough");
    expect(response).rejects.toBe("enough");
    await until(() => node.link.openStreams === 0, "the cancellation at the node");
    wait.resolve();
    await until(() => body.cancelled, "the cancellation of the answer");
    expect(body.sink).toBeUndefined();
  });
});

describe("what fails at the node", () => {
  test("before the answer: its code, our words for the client, the node's for the log", async () => {
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

  test("in the middle of the answer: what came before is given first", async () => {
    await using gateway = startGateway();
    const body = new ScriptedBody();
    using node = startNode(gateway, { handle: async () => answering(body) });
    const end = await endOf(gateway, node);
    const response = await end.send(requestOf("x"), new Cancellation());
    body.sink?.data(Buffer.from("half"));
    body.sink?.fail(new GatewayError("upstream_error", "broke"));
    await until(() => end.openStreams === 0, "the end of the stream");
    const sink = new RecordingSink();
    response.body.flow(sink);
    expect(sink.bytes).toBe(4);
    expect((sink.error as GatewayError).message).toBe("The node broke off its answer.");
  });

  test("a request that is larger than the node takes, or more than it may hold", async () => {
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
    expect([large.code, large.detail]).toEqual([
      "upstream_error",
      `${node.id}: The node takes requests of at most 10000 bytes.`,
    ]);
    const first = end.send(requestOf(Buffer.alloc(9_000)), new Cancellation());
    const second = await errorOf(end.send(requestOf(Buffer.alloc(9_000)), new Cancellation()));
    expect(second.code).toBe("service_unavailable");
    wait.resolve();
    expect(await textOf(await first)).toBe("ok");
    expect(await textOf(await end.send(requestOf(Buffer.alloc(9_000)), new Cancellation()))).toBe("ok");
  });

  test("more requests than it takes at once are refused without being sent", async () => {
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

describe("time limits", () => {
  test("an answer that does not begin, and one that falls silent, end with upstream_timeout; the node is told", async () => {
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
        if ((request.body as Uint8Array).length === 1) return new Promise(() => {});
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
    // Silence that the taker asked for is not the node's.
    response.body.pause();
    await Bun.sleep(200);
    expect(sink.error).toBeUndefined();
    response.body.resume();
    await until(() => sink.error, "the end");
    expect((sink.error as GatewayError).code).toBe("upstream_timeout");
    await until(() => silent.cancelled, "the cancellation at the node");
  });
});

describe("the end of a tunnel", () => {
  test("a node that drains gets nothing new, finishes what it has, and leaves", async () => {
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
    body.sink?.data(Buffer.from("all of it"));
    body.sink?.end();
    expect(await text).toBe("all of it");
    await drained;
    await until(() => gateway.ends[0]?.closed, "the end");
    expect(gateway.ends[0]?.closed?.code).toBe(tunnelCloseCodes.normal);
    expect(node.link.state.status).toBe("closed");
    expect(gateway.ends.length).toBe(1);
  });

  test("a request that crosses the word of the node is still answered", async () => {
    await using gateway = startGateway();
    using node = startNode(gateway);
    const end = await endOf(gateway, node);
    const answer = end.send(requestOf("crossing"), new Cancellation());
    const drained = node.link.drain();
    expect(await textOf(await answer)).toBe("crossing");
    await drained;
  });

  test("a gateway that drains finishes what is open, while the node connects anew", async () => {
    await using gateway = startGateway();
    const body = new ScriptedBody();
    using node = startNode(gateway, {
      handle: async (request) =>
        (request.body as Uint8Array).length > 1
          ? { status: 200, headers: plain, body: bodyOf(Buffer.from("ok")) }
          : answering(body),
    });
    const end = await endOf(gateway, node);
    const response = await end.send(requestOf("x"), new Cancellation());
    const drained = end.drain();
    const next = await endOf(gateway, node, 2);
    expect(await textOf(await next.send(requestOf("new"), new Cancellation()))).toBe("ok");
    const text = textOf(response);
    body.sink?.data(Buffer.from("old"));
    body.sink?.end();
    expect(await text).toBe("old");
    await drained;
    expect(gateway.ends[0]?.closed).toEqual({ code: tunnelCloseCodes.goingAway, reason: "the gateway is going away" });
    expect(next.closed).toBe(false);
    expect(node.link.state.status).toBe("connected");
  });

  test("an idle tunnel drains at once; the second call is the same; drains of both ends at once end as well", async () => {
    await using gateway = startGateway();
    using node = startNode(gateway);
    const end = await endOf(gateway, node);
    expect(end.drain()).toBe(end.drain());
    await Promise.all([end.drain(), node.link.drain()]);
    await end.drain();
    expect(end.closed).toBe(true);
  });

  test("what is open fails at once when the gateway closes it, and stops at the node", async () => {
    await using gateway = startGateway();
    const body = new ScriptedBody();
    const cancellations: Cancellation[] = [];
    using node = startNode(gateway, {
      handle: async (request, cancellation) => {
        cancellations.push(cancellation);
        return (request.body as Uint8Array).length === 1 ? new Promise(() => {}) : answering(body);
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

test("announcements come anew when they change, at most one a second, the last one always", async () => {
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

test("a node hears how it stands with its gateway", async () => {
  await using gateway = startGateway();
  const heard: unknown[] = [];
  using node = startNode(gateway, { onStanding: (standing) => void heard.push(standing) });
  const end = await endOf(gateway, node);
  end.tell({ name: "attic", approvedModels: ["a", "b"] });
  await until(() => heard.length === 1, "the standing");
  expect(heard).toEqual([{ name: "attic", approvedModels: ["a", "b"] }]);
});
