// A gateway's endpoint for nodes on a real server, and nodes that connect to it: for the tests of this folder.

import { type BodySink, type BodySource, bodyOf, readAll } from "../../../src/base/bytes/body-source.ts";
import { bufferedBytes } from "../../../src/base/bytes/buffered-bytes.ts";
import { ByteSpan } from "../../../src/base/bytes/byte-span.ts";
import { Cancellation } from "../../../src/base/cancellation.ts";
import type { LogFields } from "../../../src/base/log.ts";
import type { EngineRequest, EngineResponse } from "../../../src/domain/models/engine.ts";
import { NodeAcceptor, type NodeAcceptorOptions } from "../../../src/nodes/accept.ts";
import { newNodeKey } from "../../../src/nodes/identity.ts";
import { NodeLink, type NodeLinkOptions, type NodeLinkState } from "../../../src/nodes/node-link.ts";
import { type GatewayEnd, type NodeAnnouncement, nodeConnectPath } from "../../../src/nodes/tunnel/contract.ts";
import type { NodeKey } from "../../../src/nodes/tunnel/gateway-handshake.ts";
import { startTestServer, type TestHttp1Server, until } from "../http1/server-fixture.ts";

export { until };

export const gatewayUrl = "https://gateway.example";

export interface HeardEnd {
  end: GatewayEnd;
  announcements: NodeAnnouncement[];
  draining: boolean;
  closed: { code: number; reason: string } | undefined;
}

export interface TestGateway extends AsyncDisposable {
  http: TestHttp1Server;
  url: string;
  acceptor: NodeAcceptor;
  keys: Map<string, NodeKey>;
  ends: HeardEnd[];
  warnings: LogFields[];
}

export function startGateway(options: Partial<NodeAcceptorOptions> = {}): TestGateway {
  const keys = new Map<string, NodeKey>();
  const ends: HeardEnd[] = [];
  const warnings: LogFields[] = [];
  const acceptor = new NodeAcceptor({
    gatewayUrl: () => gatewayUrl,
    findKey: async (nodeId) => keys.get(nodeId) ?? { refused: "unknown" },
    connected(end) {
      const heard: HeardEnd = { end, announcements: [], draining: false, closed: undefined };
      ends.push(heard);
      return {
        announced: (announcement) => void heard.announcements.push(announcement),
        draining() {
          heard.draining = true;
        },
        closed(code, reason) {
          heard.closed = { code, reason };
        },
      };
    },
    firstByteTimeoutMs: 5_000,
    idleTimeoutMs: 5_000,
    log: { info() {}, warn: (_event, fields) => void warnings.push(fields ?? {}), error() {} },
    ...options,
  });
  const http = startTestServer((req, reply) => {
    const answerHeaders: Record<string, string> = {};
    if (req.target !== nodeConnectPath) {
      reply.send(404, {}, "not here");
      return;
    }
    try {
      const clientAddress = req.headers.get("x-forwarded-for") ?? req.peer;
      const answer = acceptor.upgrade({ req, clientAddress, answerHeaders });
      answer.upgrade(reply.upgrade(answer.headers));
    } catch (error) {
      reply.send(400, answerHeaders, (error as Error).message);
    }
  });
  return {
    http,
    url: http.url,
    acceptor,
    keys,
    ends,
    warnings,
    async [Symbol.asyncDispose]() {
      acceptor.close();
      http.server.close();
    },
  };
}

export interface TestNode extends Disposable {
  id: string;
  link: NodeLink;
  states: NodeLinkState[];
  faults: unknown[];
}

let nodes = 0;

/** Known to the gateway unless its key is; started. */
export function startNode(
  gateway: Pick<TestGateway, "url" | "keys">,
  options: Partial<NodeLinkOptions> = {},
): TestNode {
  const key = newNodeKey();
  const id = options.node?.id ?? `node_${++nodes}`;
  if (!options.node) gateway.keys.set(id, { publicKey: key.publicKey });
  const states: NodeLinkState[] = [];
  const faults: unknown[] = [];
  const link = new NodeLink({
    url: gateway.url,
    gateway: gatewayUrl,
    node: { id, privateKey: key.privateKey },
    handle: async (request) => ({
      status: 200,
      headers: new Headers({ "content-type": "text/plain" }),
      body: bodyOf((request.body as ByteSpan).view),
    }),
    announcement: () => ({ version: "1.2.3", models: [{ id: "m" }] }),
    onState: (state) => void states.push(state),
    onFault: (error) => void faults.push(error),
    timings: { firstBackoffMs: 10, backoffMs: 50, connectMs: 1_000, versionBackoffMs: 100 },
    ...options,
  });
  link.start();
  return { id, link, states, faults, [Symbol.dispose]: () => link.close() };
}

/** The gateway's end of a node that has connected and announced. */
export async function endOf(gateway: TestGateway, node: TestNode, nth = 1): Promise<GatewayEnd> {
  const ends = () => gateway.ends.filter((heard) => heard.end.nodeId === node.id && heard.end.announcement);
  await until(() => ends().length >= nth, "the node's connection");
  return (ends()[nth - 1] as HeardEnd).end;
}

export function requestOf(body: string | Uint8Array, more: Partial<EngineRequest> = {}): EngineRequest {
  return {
    requestId: "req_1",
    operation: "chat",
    model: "m",
    body: typeof body === "string" ? body : ByteSpan.of(body),
    stream: true,
    width: 1,
    memoryAccount: bufferedBytes.visitors,
    ...more,
  };
}

export async function textOf(response: EngineResponse, maxBytes = 1e9): Promise<string> {
  return (await readAll(response.body, maxBytes, new Cancellation(), () => {})).text;
}

/** A body whose pieces the test gives, and that knows what is asked of it. */
export class ScriptedBody implements BodySource {
  sink: BodySink | undefined;
  paused = false;
  cancelled = false;
  pauses = 0;
  onResume: (() => void) | undefined;
  onFlow: (() => void) | undefined;

  flow(sink: BodySink): void {
    this.sink = sink;
    this.onFlow?.();
  }

  pause(): void {
    this.paused = true;
    this.pauses++;
  }

  resume(): void {
    this.paused = false;
    this.onResume?.();
  }

  cancel(): void {
    this.cancelled = true;
  }
}

/** Takes a body as a test wants it. */
export class RecordingSink implements BodySink {
  bytes = 0;
  pieces = 0;
  ended = false;
  error: unknown;
  onData: ((bytes: Uint8Array) => void) | undefined;

  data(piece: ByteSpan): void {
    this.bytes += piece.length;
    this.pieces++;
    this.onData?.(piece.view);
  }

  end(): void {
    this.ended = true;
  }

  fail(error: unknown): void {
    this.error = error;
  }
}
