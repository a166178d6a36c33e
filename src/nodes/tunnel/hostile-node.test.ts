// Tests a node that violates the protocol: a fault of a stream ends that stream, any other fault ends the connection.
import { describe, expect, test } from "bun:test";
import { json, type RawEnd, requestMessage, welcomedNode } from "../../../tests/support/tunnel/raw-ends.ts";
import {
  RecordingSink,
  requestOf,
  startGateway,
  type TestGateway,
  textOf,
  until,
} from "../../../tests/support/tunnel/tunnel-fixture.ts";
import { bufferedBytes } from "../../base/bytes/buffered-bytes.ts";
import { Cancellation } from "../../base/cancellation.ts";
import type { GatewayError } from "../../base/errors.ts";
import { tunnelCloseCodes } from "./contract.ts";
import { creditPayload, messageTypes, pieceBytes } from "./messages.ts";

const { head, data, end, fail, credit, request, cancel, announce } = messageTypes;
const ok = json({ status: 200, headers: { "content-type": "text/plain" } });

async function withNode(gateway: TestGateway) {
  const node = await welcomedNode(gateway);
  const heard = gateway.ends.at(-1);
  if (!heard) throw new Error("no end");
  const send = () => heard.end.send(requestOf("hi"), new Cancellation());
  /** Answers a request correctly, to show that the connection still works. */
  const works = async () => {
    const before = node.of(request).length;
    const response = send();
    await node.received(request, before + 1);
    const stream = node.messages.findLast(({ type }) => type === request)?.stream ?? 0;
    node.send(head, stream, ok);
    node.send(data, stream, "fine");
    node.send(end, stream);
    expect(await textOf(await response)).toBe("fine");
  };
  return { node, heard, send, works };
}

describe("hostile nodes", () => {
  const wrong: [what: string, act: (node: RawEnd, stream: number) => void][] = [
    ["sends a body before its head", (node, stream) => node.send(data, stream, "x")],
    ["ends an answer that did not begin", (node, stream) => node.send(end, stream)],
    ["begins an answer twice", (node, stream) => node.send(head, stream, ok)],
    [
      "answers with a status that is none",
      (node, stream) => node.send(head, stream, json({ status: 99, headers: {} })),
    ],
    ["answers with no JSON", (node, stream) => node.send(head, stream, "{")],
    ["fails without a code", (node, stream) => node.send(fail, stream, "{}")],
    ["grants nothing", (node, stream) => node.send(credit, stream, creditPayload(0))],
    ["grants in three bytes", (node, stream) => node.send(credit, stream, "abc")],
    [
      "sends more than was granted",
      (node, stream) => {
        node.send(head, stream, ok);
        for (let sent = 0; sent <= 4; sent++) node.send(data, stream, Buffer.alloc(pieceBytes));
      },
    ],
    [
      "sends a piece that is too large",
      (node, stream) => {
        node.send(head, stream, ok);
        node.send(data, stream, Buffer.alloc(pieceBytes + 1));
      },
    ],
  ];
  for (const [what, act] of wrong) {
    test(`fails only one stream of a node that ${what}`, async () => {
      await using gateway = startGateway();
      const { node, heard, send, works } = await withNode(gateway);
      const response = send();
      // The body is not read, so the gateway grants no more bytes.
      const failed = response.then(
        async ({ body: answer }) => {
          const sink = new RecordingSink();
          await until(() => heard.end.openStreams === 0, "the end of the stream");
          answer.flow(sink);
          return sink.error as GatewayError;
        },
        (error: GatewayError) => error,
      );
      await node.received(request);
      const stream = node.messages.find(({ type }) => type === request)?.stream ?? 0;
      if (what.includes("twice")) node.send(head, stream, ok);
      act(node, stream);
      expect((await failed).code).toBe("upstream_error");
      await node.received(cancel);
      await works();
      expect(heard.closed).toBeUndefined();
      expect(heard.end.openStreams).toBe(0);
      node.link.terminate();
    });
  }

  test("disconnects a node that keeps sending after a stream was cancelled", async () => {
    await using gateway = startGateway();
    const { node, heard, send } = await withNode(gateway);
    const response = send();
    await node.received(request);
    node.send(head, 1, ok);
    (await response).body.cancel();
    const piece = Buffer.alloc(pieceBytes);
    for (let sent = 0; sent < 4; sent++) node.send(data, 1, piece);
    await Bun.sleep(20);
    expect(heard.closed).toBeUndefined();
    for (let sent = 0; sent < 4; sent++) node.send(data, 1, piece);
    expect((await node.end()).code).toBe(tunnelCloseCodes.protocol);
    expect(heard.closed?.reason).toContain("streams that are over");
  });

  const fatal: [what: string, act: (node: RawEnd) => void, code: number][] = [
    ["a request", (node) => node.send(request, 1, requestMessage({})), tunnelCloseCodes.protocol],
    ["a cancellation", (node) => node.send(cancel, 1), tunnelCloseCodes.protocol],
    ["a second proof", (node) => node.send(messageTypes.proof, 0, "{}"), tunnelCloseCodes.protocol],
    ["a heartbeat of 17 bytes", (node) => node.send(messageTypes.ping, 0, Buffer.alloc(17)), tunnelCloseCodes.protocol],
    ["a heartbeat on a stream", (node) => node.send(messageTypes.ping, 1, "abcd"), tunnelCloseCodes.protocol],
    ["an announcement without models", (node) => node.send(announce, 0, "{}"), tunnelCloseCodes.protocol],
    ["an announcement that is no JSON", (node) => node.send(announce, 0, "x"), tunnelCloseCodes.protocol],
    ["a message beyond all bounds", (node) => node.send(announce, 0, Buffer.alloc(300_000)), 1009],
  ];
  for (const [what, act, code] of fatal) {
    test(`disconnects a node that sends ${what}`, async () => {
      await using gateway = startGateway();
      const { node, heard, send } = await withNode(gateway);
      const failed = send().catch((error: GatewayError) => error.message);
      act(node);
      expect((await node.end()).code).toBe(code);
      expect(await failed).toBe("The connection to the node broke.");
      await until(() => heard.closed, "its end");
    });
  }

  test("accepts unknown messages of a node with a later minor version", async () => {
    await using gateway = startGateway();
    const { node, works } = await withNode(gateway);
    node.send(0x60, 0, "news");
    node.send(0x61, 5, Buffer.alloc(1_000));
    await works();
    node.link.terminate();
  });

  test("reads one announcement a second of a node that announces endlessly, and the last one", async () => {
    await using gateway = startGateway({ limits: { heartbeatMs: 100 } });
    const { node, heard } = await withNode(gateway);
    for (let index = 1; index <= 300; index++) {
      const models = Array.from({ length: 300 }, (_, model) => ({ id: `model-${model}`, evil: index }));
      node.send(announce, 0, json({ version: `1.0.${index}`, models }));
    }
    await until(() => heard.end.announcement?.version === "1.0.300", "the last one");
    expect(heard.announcements.length).toBeLessThanOrEqual(3);
    expect(heard.end.announcement?.models.length).toBe(200);
    expect(heard.end.announcement?.models[7]).toEqual({ id: "model-7" });
    node.link.terminate();
  });

  test("accepts only valid MCP servers from a node, and asks an earlier version for none", async () => {
    await using gateway = startGateway();
    const { node, heard, works } = await withNode(gateway);
    const own = { name: "files", title: "Files\nof Ann", kind: "command" } as const;
    const strange = [{ ...own, name: "No" }, { ...own, kind: "plugin" }, { kind: "http" }, 7, null];
    node.send(announce, 0, json({ version: "1.1.0", models: [], toolServers: [...strange, own, own] }));
    await until(() => heard.end.announcement?.version === "1.1.0", "the announcement");
    expect(heard.end.announcement?.toolServers).toEqual([{ ...own, title: "Files of Ann" }]);
    // The node has not announced support for these requests.
    const request = { requestId: "req_1", server: "files", method: "GET", headers: {}, body: "" } as const;
    const asked = heard.end.send({ ...request, memoryAccount: bufferedBytes.visitors }, new Cancellation());
    await expect(asked).rejects.toThrow("does not know this endpoint; its operator has to update it");
    await works();
    node.link.terminate();
  });

  test("accepts only valid models from a node", async () => {
    await using gateway = startGateway();
    const { node, heard } = await withNode(gateway);
    const models = [
      {
        id: "good",
        ownedBy: "me\nyou",
        created: 5,
        context: 10,
        capabilities: { chat: true, evil: true },
        environments: ["live"],
      },
      {
        id: "odd",
        ownedBy: 7,
        created: -1,
        context: 1.5,
        capabilities: [],
        concurrency: { chat: 2, completion: 0, evil: 9 },
        continues: "evil",
      },
      { id: "able", continues: "last_message" },
      ...[{ id: "" }, { id: 7 }, { id: "a\u0000b" }, { id: "x".repeat(257) }, null, "model", []],
      { id: "good", context: 11 },
    ];
    node.send(announce, 0, json({ version: "1\u001b[2J", models, load: { active: 1, waiting: 2 }, evil: true }));
    await until(() => heard.end.announcement, "the announcement");
    expect(heard.end.announcement).toEqual({
      version: "1 [2J",
      models: [
        { id: "good", context: 11 },
        { id: "odd", concurrency: { chat: 2 } },
        { id: "able", continues: "last_message" },
      ],
      load: { active: 1, waiting: 2 },
    });
    node.link.terminate();
  });

  test("bounds the bytes of a node that ignores pauses and sends byte by byte", async () => {
    await using gateway = startGateway({ limits: { windowBytes: 100_000 } });
    const { node, heard, send } = await withNode(gateway);
    const responses = [];
    for (let index = 1; index <= 20; index++) {
      const response = send();
      await node.received(request, index);
      node.send(head, index, ok);
      responses.push(await response);
    }
    const before = process.memoryUsage().rss;
    const one = Buffer.from("x");
    for (let sent = 0; sent < 50_000; sent++) node.send(data, 1 + (sent % 20), one);
    // This announcement arrives after all of the data.
    node.send(announce, 0, json({ version: "1", models: [] }));
    await until(() => heard.end.announcement, "all of it");
    expect(process.memoryUsage().rss - before).toBeLessThan(80e6);
    const sink = new RecordingSink();
    responses[0]?.body.flow(sink);
    expect([sink.bytes, sink.pieces]).toEqual([2_500, 1]);
    for (const { body } of responses) body.cancel();
    node.link.terminate();
  });
});

test("does not send a node an operation that its version lacks", async () => {
  await using gateway = startGateway();
  const { node, heard, works } = await withNode(gateway);
  const asked = heard.end.send(requestOf("{}", { operation: "rerank" }), new Cancellation());
  await expect(asked).rejects.toMatchObject({ code: "upstream_error", message: expect.stringContaining("update") });
  expect(node.of(request)).toEqual([]);
  await works();
});
