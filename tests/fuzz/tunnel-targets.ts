// The tunnel to a node, both ends of it: messages of any type, for any stream, with any payload.
import type { BodySink, BodySource } from "../../src/base/bytes/body-source.ts";
import { bufferedBytes } from "../../src/base/bytes/buffered-bytes.ts";
import { ByteSpan } from "../../src/base/bytes/byte-span.ts";
import type { MessageLink } from "../../src/base/bytes/message-link.ts";
import { Cancellation } from "../../src/base/cancellation.ts";
import { GatewayError } from "../../src/base/errors.ts";
import { newNodeKey } from "../../src/nodes/identity.ts";
import { defaultTunnelLimits } from "../../src/nodes/tunnel/contract.ts";
import { GatewayTunnel } from "../../src/nodes/tunnel/gateway-tunnel.ts";
import { creditPayload, messageTypes } from "../../src/nodes/tunnel/messages.ts";
import { NodeTunnel } from "../../src/nodes/tunnel/node-tunnel.ts";
import { TunnelConnection } from "../../src/nodes/tunnel/tunnel-connection.ts";
import { rawHello, requestMessage } from "../support/tunnel/raw-ends.ts";
import { gatewayUrl } from "../support/tunnel/tunnel-fixture.ts";
import type { Target } from "./targets.ts";

/** An input is messages one behind the other, each behind its length in two bytes. */
function* messagesIn(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at + 2 <= bytes.length; ) {
    const end = Math.min(bytes.length, at + 2 + bytes.readUInt16BE(at));
    yield bytes.subarray(at + 2, end);
    at = end;
  }
}

function message(type: number, stream: number, payload: string | Uint8Array = ""): string {
  const bytes = Buffer.from(payload as string);
  const head = Buffer.alloc(7);
  head.writeUInt16BE(5 + bytes.length);
  head[2] = type;
  head.writeUInt32BE(stream, 3);
  return Buffer.concat([head, bytes]).toString("latin1");
}

/** What was sent, and how it ended. */
class RecordedLink implements MessageLink {
  readonly peer = "127.0.0.1";
  readonly unsentBytes = 0;
  readonly sent: string[] = [];

  send(first: Uint8Array, rest?: Uint8Array): void {
    const bytes = Buffer.concat(rest ? [first, rest] : [first]);
    // A signature is another one each time.
    this.sent.push(bytes[0] === messageTypes.proof ? "proof" : bytes.toString("latin1"));
  }

  close(code: number, reason: string): void {
    this.sent.push(`close ${code} ${reason}`);
  }

  terminate(): void {
    this.sent.push("terminate");
  }
}

class RecordingSink implements BodySink {
  text = "";
  outcome = "open";

  data(bytes: ByteSpan): void {
    this.text += bytes.view.toString("latin1");
  }

  end(): void {
    this.outcome = "ended";
  }

  fail(error: unknown): void {
    if (!(error instanceof GatewayError)) throw error;
    this.outcome = "failed";
  }
}

/** Turns of the microtasks, in which answers that began are taken. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await Promise.resolve();
}

/** A gateway with two requests under way. */
async function readAtGateway(pieces: readonly Buffer[]): Promise<unknown> {
  const link = new RecordedLink();
  const proof = { major: 1, minor: 0, features: [], window: 4, streams: 4, node: "node_1", signature: "s" };
  const times = { firstByteTimeoutMs: 60_000, idleTimeoutMs: 60_000 };
  const options = { connectionId: "c", clientAddress: "127.0.0.1", proof, limits: defaultTunnelLimits, times };
  let tunnel: GatewayTunnel | undefined;
  const connection = new TunnelConnection(link, defaultTunnelLimits, (own) => {
    tunnel = new GatewayTunnel(own, options);
    return tunnel;
  });
  const end = tunnel as unknown as GatewayTunnel;
  connection.established(end);
  const announced: unknown[] = [];
  end.listener = {
    announced: (announcement) => void announced.push(announcement),
    draining() {},
    closed() {},
  };
  const sinks: RecordingSink[] = [];
  const refused: string[] = [];
  try {
    for (const body of ["hello", ""]) {
      const { visitors: memoryAccount } = bufferedBytes;
      const request = {
        requestId: "r",
        operation: "chat",
        model: "m",
        stream: true,
        width: 1,
        body,
        memoryAccount,
      } as const;
      end.send(request, new Cancellation()).then(
        (response) => {
          const sink = new RecordingSink();
          sinks.push(sink);
          response.body.flow(sink);
        },
        (error: unknown) => {
          if (!(error instanceof GatewayError)) throw error;
          refused.push(error.code);
        },
      );
    }
    for (const bytes of messagesIn(Buffer.concat(pieces))) {
      connection.message(bytes);
      await settled();
    }
  } finally {
    connection.close(1000, "");
  }
  await settled();
  // What is under way ends with the connection.
  const open = sinks.filter(({ outcome }) => outcome === "open").length;
  if (open > 0 || end.openStreams > 0) throw new Error(`${open} bodies and ${end.openStreams} streams stayed open`);
  return { sent: link.sent, sinks, refused, announced };
}

const { privateKey } = newNodeKey();

function bodyOf(size: number): BodySource {
  return {
    flow(sink) {
      sink.data(ByteSpan.of(Buffer.alloc(size, "a")));
      sink.end();
    },
    pause() {},
    resume() {},
    cancel() {},
  };
}

/** A node, with whatever a gateway says to it. */
async function readAtNode(pieces: readonly Buffer[]): Promise<unknown> {
  const link = new RecordedLink();
  const asked: string[] = [];
  const faults: unknown[] = [];
  const { tunnel, listener } = NodeTunnel.begin(link, {
    nodeId: "node_1",
    privateKey,
    gateway: gatewayUrl,
    limits: { ...defaultTunnelLimits, bodyBytes: 4_000, allBodyBytes: 8_000, streams: 4 },
    async handle(request) {
      const { body } = request;
      const model = "model" in request ? request.model : request.server;
      asked.push(`${model} ${typeof body === "string" ? body : body.solid.text}`);
      return { status: 200, headers: new Headers(), body: bodyOf(100) };
    },
    listener: {
      welcome() {},
      status() {},
      draining() {},
      closed() {},
      fault: (error) => void faults.push(error),
    },
  });
  try {
    for (const bytes of messagesIn(Buffer.concat(pieces))) {
      listener.message(bytes);
      await settled();
    }
  } finally {
    tunnel.close(1000, "");
  }
  await settled();
  if (tunnel.openStreams > 0 || tunnel.bufferedBodyBytes > 0) throw new Error("streams or bodies stayed");
  if (faults.length > 0) throw faults[0];
  return { sent: link.sent, asked };
}

const { hello, welcome, status, request, body, cancel, credit } = messageTypes;
const { head, data, end, fail, announce, ping, pong, drain } = messageTypes;
const headText = '{"status":200,"headers":{"content-type":"text/event-stream","retry-after":"1"}}';
const tunnel = (name: string) => `src/nodes/tunnel/${name}.ts`;
const greeted = message(hello, 0, rawHello()) + message(welcome, 0, "{}");

export const tunnelTargets: readonly Target[] = [
  {
    name: "messages-of-nodes",
    files: ["gateway-tunnel", "gateway-stream", "incoming-answer", "payloads", "messages", "tunnel-connection"].map(
      tunnel,
    ),
    seeds: [
      message(credit, 1, creditPayload(10)) + message(head, 1, headText) + message(data, 1, "abc") + message(end, 1),
      message(head, 2, headText) + message(data, 2, "x") + message(fail, 2, '{"code":"upstream_error","message":"m"}'),
      message(
        announce,
        0,
        '{"version":"1","models":[{"id":"m","created":1,"capabilities":{"chat":true}}],"load":{"active":1,"waiting":0}}',
      ),
      message(ping, 0, "1234") + message(pong, 0, "1234") + message(drain, 0) + message(data, 9, "stray"),
    ],
    read: readAtGateway,
    whole: true,
  },
  {
    name: "messages-of-gateways",
    files: ["node-tunnel", "node-stream", "incoming-body", "payloads", "messages", "tunnel-connection"].map(tunnel),
    seeds: [
      greeted + message(request, 1, requestMessage({}, "abc")) + message(credit, 1, creditPayload(50)),
      greeted +
        message(request, 2, requestMessage({ length: 6 }, "abc")) +
        message(body, 2, "def") +
        message(cancel, 2),
      greeted + message(status, 0, '{"name":"n","approvedModels":["m"]}') + message(drain, 0),
      message(hello, 0, rawHello({ major: 2 })),
    ],
    read: readAtNode,
    whole: true,
  },
];
