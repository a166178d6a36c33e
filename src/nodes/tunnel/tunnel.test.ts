// Tests requests over a tunnel with real sockets: answers, back-pressure, cancellation, and many at once.

import { describe, expect, test } from "bun:test";
import { withinMs } from "../../../tests/support/long.ts";
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
import { ByteSpan } from "../../base/bytes/byte-span.ts";
import { Cancellation } from "../../base/cancellation.ts";
import { taskOperations } from "../../domain/models/operation.ts";
import { defaultTunnelLimits } from "./contract.ts";
import { parseRequestHead, requestPayload } from "./payloads.ts";

const plain = new Headers({ "content-type": "text/plain" });
const answering = (body: ScriptedBody) => ({ status: 200, headers: plain, body });

test("delivers a request to the node unchanged, and its answer with the relevant headers", async () => {
  await using gateway = startGateway();
  const seen: unknown[] = [];
  using node = startNode(gateway, {
    handle: async (request) => {
      seen.push({ ...request, body: (request.body as ByteSpan).text });
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
    ...{ requestId: "req_x", operation: "embedding", model: "a/b", stream: false, width: 3, priority: "high" },
  });
  const response = await end.send(request, new Cancellation());
  expect(response.status).toBe(201);
  const names = ["content-type", "retry-after", "set-cookie"];
  expect(names.map((name) => response.headers.get(name))).toEqual(["text/event-stream", "3", null]);
  expect(await textOf(response)).toBe("data: ä\n\n");
  // The memory account is local to the gateway and is not sent.
  const { memoryAccount: _, ...sent } = request;
  expect(seen).toEqual([sent]);
  expect([end.openStreams, node.link.openStreams]).toEqual([0, 0]);
});

test("treats an unknown priority as none", () => {
  const head = { requestId: "req_1", operation: "chat", model: "m", stream: true, width: 1, length: 2 } as const;
  for (const [said, understood] of [
    ["low", "low"],
    ["urgent", undefined],
    [7, undefined],
    [undefined, undefined],
  ]) {
    const payload = { ...(JSON.parse(requestPayload(head)) as object), priority: said };
    const read = parseRequestHead(Buffer.from(JSON.stringify(payload)));
    expect("priority" in read && read.priority).toBe(understood as "low" | undefined);
  }
});

test("sends an MCP exchange to the node with its protocol fields only, and returns its session", async () => {
  await using gateway = startGateway();
  const seen: unknown[] = [];
  const session = "s".repeat(1_000);
  using node = startNode(gateway, {
    handle: async (request) => {
      seen.push({ ...request, body: (request.body as ByteSpan).text });
      return { status: 202, headers: new Headers({ "mcp-session-id": session }), body: bodyOf(Buffer.from("")) };
    },
  });
  const end = await endOf(gateway, node);
  const { memoryAccount } = requestOf("");
  const asked = { requestId: "req_x", server: "files", method: "POST", body: '{"ü":1}' } as const;
  const fields = { "mcp-method": "tools/call", "mcp-param-region": "eu" };
  const secret = { authorization: "Bearer secret", cookie: "a=b", "x-api-key": "k" };
  const response = await end.send({ ...asked, headers: { ...fields, ...secret }, memoryAccount }, new Cancellation());
  expect([response.status, response.headers.get("mcp-session-id")]).toEqual([202, session]);
  expect(seen).toEqual([{ ...asked, headers: fields }]);
  // A request whose head is too long is refused here, and the connection is not at fault.
  const long = { "mcp-param-region": "x".repeat(20_000) };
  await expect(end.send({ ...asked, headers: long, memoryAccount }, new Cancellation())).rejects.toMatchObject({
    code: "request_too_large",
  });
  expect(end.closed).toBe(false);
});

test("sends every operation to a node of this version", async () => {
  await using gateway = startGateway();
  using node = startNode(gateway);
  const end = await endOf(gateway, node);
  for (const operation of taskOperations) {
    expect(await textOf(await end.send(requestOf(operation, { operation }), new Cancellation()))).toBe(operation);
  }
});

test("delivers bodies of every size completely in both directions", async () => {
  await using gateway = startGateway();
  using node = startNode(gateway);
  const end = await endOf(gateway, node);
  for (const size of [0, 1, 65_535, 65_536, 65_537, 262_144, 262_145, 300_000, 3_000_000]) {
    const body = Buffer.alloc(size, "0123456789");
    expect(await textOf(await end.send(requestOf(body), new Cancellation()))).toBe(body.toString());
  }
});

test("answers a thousand concurrent requests, each with its own answer", async () => {
  await using gateway = startGateway();
  const bodies: { text: string; body: ScriptedBody }[] = [];
  using node = startNode(gateway, {
    handle: async (request) => {
      const body = new ScriptedBody();
      bodies.push({ text: (request.body as ByteSpan).text, body });
      return answering(body);
    },
  });
  const end = await endOf(gateway, node);
  const texts = Array.from({ length: 1_000 }, (_, index) => `request ${index};`);
  const responses = await Promise.all(texts.map((text) => end.send(requestOf(text), new Cancellation())));
  expect(end.openStreams).toBe(1_000);
  const answers = responses.map((response) => textOf(response));
  for (let round = 0; round < 5; round++) {
    for (const { text, body } of bodies) body.sink?.data(ByteSpan.of(text));
    await Bun.sleep(0);
  }
  for (const { body } of bodies.toReversed()) body.sink?.end();
  expect(await Promise.all(answers)).toEqual(texts.map((text) => text.repeat(5)));
  expect([end.openStreams, node.link.openStreams]).toEqual([0, 0]);
});

describe("back-pressure in a tunnel", () => {
  test("sends no more than the window to a receiver that reads nothing, without delaying others", async () => {
    await using gateway = startGateway();
    const slow = new ScriptedBody();
    using node = startNode(gateway, {
      handle: async (request) => {
        const text = (request.body as ByteSpan).text;
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
        slow.sink?.data(ByteSpan.of(piece));
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

  test("delivers every byte in order to a receiver that pauses at each piece, and the end last", async () => {
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

  test("shares the connection between many large requests and answers", async () => {
    await using gateway = startGateway();
    using node = startNode(gateway);
    const end = await endOf(gateway, node);
    const bodies = Array.from({ length: 64 }, (_, index) => Buffer.alloc(1_000_000 + index, `${index};`));
    const texts = await Promise.all(
      bodies.map(async (body) => textOf(await end.send(requestOf(body), new Cancellation()))),
    );
    expect(texts.every((text, index) => text === bodies[index]?.toString())).toBe(true);
    expect([end.openStreams, node.link.openStreams]).toEqual([0, 0]);
  });

  test("sends a large request only as the node grants", async () => {
    await using gateway = startGateway();
    using node = startNode(gateway, { limits: { windowBytes: 2_048, bodyBytes: 1_000_000 } });
    const end = await endOf(gateway, node);
    const body = Buffer.alloc(900_000, "abc");
    expect(await textOf(await end.send(requestOf(body), new Cancellation()))).toBe(body.toString());
  });
});

describe("cancellation in a tunnel", () => {
  test("stops the node at once if a request is cancelled before its answer", async () => {
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
    expect(performance.now() - startMs).toBeLessThan(withinMs(100));
    expect([end.openStreams, node.link.openStreams, node.faults.length]).toEqual([0, 0, 0]);
  });

  test("cancels the answer's source in the middle of the answer, and ignores late messages", async () => {
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
    const sink = new RecordingSink();
    response.body.flow(sink);
    body.sink?.data(ByteSpan.of("one"));
    await until(() => sink.bytes === 3, "the first piece");
    response.body.cancel();
    body.sink?.data(ByteSpan.of("late"));
    await until(() => body.cancelled, "the cancellation at the node");
    body.sink?.data(ByteSpan.of("later"));
    body.sink?.end();
    expect(await textOf(await end.send(requestOf("more"), new Cancellation()))).toBe("ok");
    expect([sink.bytes, sink.ended, sink.error]).toEqual([3, false, undefined]);
    expect([end.openStreams, node.link.openStreams]).toEqual([0, 0]);
  });

  test("sends no more of a large request that is cancelled", async () => {
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

  test("cancels an answer that arrives after its request was cancelled", async () => {
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
