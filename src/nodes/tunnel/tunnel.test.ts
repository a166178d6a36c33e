// Requests over a tunnel, from end to end over real sockets: answers, back-pressure, cancelling, many at once.
import { expect, test } from "bun:test";
import { Cancellation } from "../../domain/cancellation.ts";
import { endOf, requestOf, startGateway, startNode, textOf } from "../testing/tunnel-fixture.ts";

test("a request reaches the node as it was sent, and its answer comes back", async () => {
  await using gateway = startGateway();
  const seen: unknown[] = [];
  using node = startNode(gateway, {
    handle: async (request) => {
      seen.push({ ...request, body: Buffer.from(request.body as Uint8Array).toString() });
      return {
        status: 201,
        headers: new Headers({ "content-type": "text/event-stream", "retry-after": "3", "set-cookie": "a=b" }),
        body: {
          flow: (sink) => {
            sink.data(Buffer.from("data: ä\n\n"));
            sink.end();
          },
          pause() {},
          resume() {},
          cancel() {},
        },
      };
    },
  });
  const end = await endOf(gateway, node);
  expect(end.announcement).toEqual({ version: "1.2.3", models: [{ id: "m" }] });
  const request = requestOf('{"ü":1}', {
    requestId: "req_x",
    operation: "embedding",
    model: "a/b",
    stream: false,
    width: 3,
  });
  const response = await end.send(request, new Cancellation());
  expect(response.status).toBe(201);
  expect([
    response.headers.get("content-type"),
    response.headers.get("retry-after"),
    response.headers.get("set-cookie"),
  ]).toEqual(["text/event-stream", "3", null]);
  expect(await textOf(response)).toBe("data: ä\n\n");
  expect(seen).toEqual([request]);
  expect(end.openStreams).toBe(0);
  expect(node.link.openStreams).toBe(0);
});

test("bodies of every size arrive whole, both ways", async () => {
  await using gateway = startGateway();
  using node = startNode(gateway);
  const end = await endOf(gateway, node);
  for (const size of [0, 1, 65_535, 65_536, 65_537, 262_144, 300_000, 3_000_000]) {
    const body = Buffer.alloc(size, "0123456789");
    expect(await textOf(await end.send(requestOf(body), new Cancellation()))).toBe(body.toString());
  }
});
