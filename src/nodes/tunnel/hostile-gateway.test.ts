// Tests a gateway that violates the protocol: the node does no work for a gateway that it cannot trust, and holds no
// more than its limits.

import { describe, expect, test } from "bun:test";
import {
  type RawEnd,
  rawGateway,
  rawHello,
  requestMessage,
  welcoming,
} from "../../../tests/support/tunnel/raw-ends.ts";
import { ScriptedBody, startNode, until } from "../../../tests/support/tunnel/tunnel-fixture.ts";
import { bodyOf } from "../../base/bytes/body-source.ts";
import { ByteSpan } from "../../base/bytes/byte-span.ts";
import { tunnelCloseCodes } from "./contract.ts";
import { creditPayload, messageTypes } from "./messages.ts";

const { data, end, fail, credit, request } = messageTypes;

describe("hostile gateways", () => {
  const answer = async () => ({ status: 200, headers: new Headers(), body: bodyOf(Buffer.from("ok")) });

  function connectedTo(gateway: { url: string }, options: Parameters<typeof startNode>[1] = {}) {
    return startNode({ url: gateway.url, keys: new Map() }, { handle: answer, ...options });
  }

  const refused: [what: string, greet: (it: RawEnd) => void, status: string][] = [
    [
      "that greets with another major version",
      (it) => it.send(messageTypes.hello, 0, rawHello({ major: 2 })),
      "protocol in common",
    ],
    [
      "that is another one",
      (it) => it.send(messageTypes.hello, 0, rawHello({ gateway: "https://x.example" })),
      "not the one that it joined",
    ],
    ["that does not greet", (it) => it.send(messageTypes.welcome, 0, "{}"), "connection to the gateway ended"],
    [
      "that sends requests before it welcomes",
      (it) => {
        it.send(messageTypes.hello, 0, rawHello());
        it.send(request, 1, requestMessage({}));
      },
      "connection to the gateway ended",
    ],
  ];
  for (const [what, greet, message] of refused) {
    test(`leaves a gateway ${what}, without doing its work`, async () => {
      await using gateway = rawGateway(greet);
      let handled = 0;
      using node = connectedTo(gateway, {
        handle: () => {
          handled++;
          return answer();
        },
      });
      await until(() => node.states.some((state) => state.message.includes(message)), "the state");
      expect(handled).toBe(0);
      expect(node.states.some(({ status }) => status === "connected")).toBe(false);
    });
  }

  test("leaves a silent gateway after a while", async () => {
    await using gateway = rawGateway(() => {});
    using node = connectedTo(gateway, { limits: { authenticationMs: 60, heartbeatMs: 50 } });
    await until(() => node.states.some(({ message }) => message.includes("did not welcome")), "the state");
    await until(() => gateway.ends.length > 1, "another attempt");
  });

  const wrong: [what: string, act: (it: RawEnd) => void][] = [
    [
      "sends a head that is no JSON",
      (it) => it.send(request, 7, Buffer.concat([Buffer.from([0, 1]), Buffer.from("{")])),
    ],
    ["asks for an operation that is none", (it) => it.send(request, 7, requestMessage({ operation: "toString" }))],
    [
      "asks an MCP server by a method that is none",
      (it) => it.send(request, 7, requestMessage({ tool: { server: "files", method: "PUT", headers: {} } })),
    ],
    ["announces a negative length", (it) => it.send(request, 7, requestMessage({ length: -1 }))],
    ["sends more of a body than it announced", (it) => it.send(request, 7, requestMessage({ length: 2 }, "abc"))],
    [
      "grants nothing",
      (it) => {
        it.send(request, 7, requestMessage({ length: 10 }));
        it.send(credit, 7, creditPayload(0));
      },
    ],
  ];
  for (const [what, act] of wrong) {
    test(`fails only one stream of a gateway that ${what}`, async () => {
      await using gateway = rawGateway(welcoming);
      using node = connectedTo(gateway);
      await until(() => node.link.state.status === "connected", "the connection");
      const [it] = gateway.ends;
      if (!it) throw new Error("no end");
      act(it);
      await until(() => it.of(fail, 7).length === 1, "the failure");
      it.send(request, 8, requestMessage({}, "fine"));
      await until(() => it.of(end, 8).length === 1, "the other answer");
      expect(node.link.state.status).toBe("connected");
      expect(node.link.openStreams).toBe(0);
    });
  }

  test("disconnects from a gateway that opens a stream twice or sends a node's messages", async () => {
    for (const act of [
      (it: RawEnd) => {
        it.send(request, 7, requestMessage({ length: 10 }));
        it.send(request, 7, requestMessage({ length: 10 }));
      },
      (it: RawEnd) => it.send(data, 7, "x"),
      (it: RawEnd) => it.send(request, 0, requestMessage({})),
      (it: RawEnd) => it.send(request, 1, "x"),
      (it: RawEnd) => it.send(messageTypes.welcome, 0, "{}"),
    ]) {
      await using gateway = rawGateway(welcoming);
      using node = connectedTo(gateway);
      await until(() => node.link.state.status === "connected", "the connection");
      const [it] = gateway.ends;
      if (!it) throw new Error("no end");
      act(it);
      expect((await it.end()).code).toBe(tunnelCloseCodes.protocol);
      expect(node.link.openStreams).toBe(0);
    }
  });

  test("fails streams beyond the limits if a gateway opens them endlessly without bodies", async () => {
    await using gateway = rawGateway(welcoming);
    using node = connectedTo(gateway, { limits: { streams: 50, allBodyBytes: 1_000_000 } });
    await until(() => node.link.state.status === "connected", "the connection");
    const [it] = gateway.ends;
    if (!it) throw new Error("no end");
    for (let stream = 1; stream <= 400; stream++) {
      it.send(request, stream, requestMessage({ length: 60_000 }, Buffer.alloc(50_000)));
    }
    await until(() => it.of(fail).length === 380, "the failures");
    expect(node.link.openStreams).toBe(20);
    it.link.terminate();
    await until(() => node.link.openStreams === 0, "the end of the rest");
  });

  test("sends no more than granted to a gateway that reads nothing, and pauses the engine", async () => {
    await using gateway = rawGateway(welcoming);
    const source = new ScriptedBody();
    using node = connectedTo(gateway, { handle: async () => ({ status: 200, headers: new Headers(), body: source }) });
    await until(() => node.link.state.status === "connected", "the connection");
    const [it] = gateway.ends;
    if (!it) throw new Error("no end");
    it.send(request, 1, requestMessage({}));
    await until(() => source.sink, "the request");
    for (let given = 0; given < 20 && !source.paused; given++) source.sink?.data(ByteSpan.of(Buffer.alloc(10_000)));
    await until(() => source.paused, "the pause");
    await Bun.sleep(20);
    const sent = () => it.of(data).reduce((sum, payload) => sum + payload.length, 0);
    expect(sent()).toBe(65_536);
    it.send(credit, 1, creditPayload(1_000));
    await until(() => sent() === 66_536, "what was granted");
    it.send(credit, 1, creditPayload(100_000));
    await until(() => !source.paused, "the source");
    source.sink?.end();
    await until(() => it.of(end).length === 1, "the end");
  });
});
