// Ends of a tunnel that say whatever a test wants: a hostile node, a hostile gateway, and a connection that can be cut.
import type { Socket } from "bun";
import { newNodeKey, signProof } from "../../../src/nodes/identity.ts";
import { nodeConnectPath, tunnelProtocol } from "../../../src/nodes/tunnel/contract.ts";
import { messageTypes } from "../../../src/nodes/tunnel/messages.ts";
import { connectWebSocket } from "../../../src/websocket/connect.ts";
import { checkUpgradeRequest } from "../../../src/websocket/handshake.ts";
import { WebSocketLink } from "../../../src/websocket/websocket-link.ts";
import { startTestServer } from "../http1/server-fixture.ts";
import { RecordingListener, until } from "../websocket/websocket-fixture.ts";
import { gatewayUrl, type TestGateway } from "./tunnel-fixture.ts";

export const json = (value: unknown) => Buffer.from(JSON.stringify(value));

export function messageOf(type: number, stream: number, payload: Uint8Array | string = ""): Buffer {
  const bytes = Buffer.alloc(5);
  bytes[0] = type;
  bytes.writeUInt32BE(stream, 1);
  return Buffer.concat([bytes, typeof payload === "string" ? Buffer.from(payload) : payload]);
}

/** One end of a tunnel that takes apart what came to it. */
export class RawEnd {
  readonly link: WebSocketLink;
  readonly listener: RecordingListener;

  constructor(link: WebSocketLink, listener: RecordingListener) {
    this.link = link;
    this.listener = listener;
  }

  get messages(): { type: number; stream: number; payload: Buffer }[] {
    return this.listener.messages.map((bytes) => ({
      type: bytes[0] as number,
      stream: bytes.readUInt32BE(1),
      payload: bytes.subarray(5),
    }));
  }

  of(type: number, stream?: number): Buffer[] {
    const wanted = this.messages.filter((it) => it.type === type && (stream === undefined || it.stream === stream));
    return wanted.map(({ payload }) => payload);
  }

  send(type: number, stream: number, payload?: Uint8Array | string): void {
    this.link.send(messageOf(type, stream, payload));
  }

  async received(type: number, count = 1): Promise<Buffer> {
    await until(() => this.of(type).length >= count, `message ${count} of type ${type}`);
    return this.of(type)[count - 1] as Buffer;
  }

  async end(): Promise<{ code: number; reason: string }> {
    return until(() => this.listener.end, "the end of the connection");
  }
}

/** Connected, and nothing said yet. */
export async function rawNode(gateway: Pick<TestGateway, "url">, from?: string): Promise<RawEnd> {
  const listener = new RecordingListener();
  const link = await connectWebSocket({
    url: new URL(nodeConnectPath, gateway.url),
    protocol: tunnelProtocol,
    ...(from === undefined ? {} : { headers: { "x-forwarded-for": from } }),
    connectMs: 2_000,
    maxMessageBytes: 1024 * 1024,
    listen: () => listener,
  });
  return new RawEnd(link, listener);
}

export interface ProofChanges {
  fields?: Record<string, unknown>;
  text?: Partial<Parameters<typeof signProof>[1]>;
  privateKey?: string;
}

let nodes = 0;

/** Its proof, right but for the changes. */
export async function proofOf(
  node: RawEnd,
  id: string,
  privateKey: string,
  changes: ProofChanges = {},
): Promise<Buffer> {
  const hello = JSON.parse((await node.received(messageTypes.hello)).toString()) as { nonce: string };
  const text = { protocol: tunnelProtocol, gateway: gatewayUrl, nodeId: id, nonce: hello.nonce, ...changes.text };
  const signature = signProof(changes.privateKey ?? privateKey, text);
  return json({
    major: 1,
    minor: 0,
    features: [],
    window: 65_536,
    streams: 4_096,
    node: id,
    signature,
    ...changes.fields,
  });
}

/** A node whose key the gateway knows, welcomed. */
export async function welcomedNode(gateway: TestGateway): Promise<RawEnd & { id: string }> {
  const id = `raw_${++nodes}`;
  const key = newNodeKey();
  gateway.keys.set(id, { publicKey: key.publicKey });
  const node = await rawNode(gateway);
  node.send(messageTypes.proof, 0, await proofOf(node, id, key.privateKey));
  await node.received(messageTypes.welcome);
  return Object.assign(node, { id });
}

export interface RawGateway extends AsyncDisposable {
  url: string;
  ends: RawEnd[];
}

/** `greet` is what it does with each node that connects. */
export function rawGateway(greet: (end: RawEnd) => void): RawGateway {
  const ends: RawEnd[] = [];
  const http = startTestServer((request, reply) => {
    const checked = checkUpgradeRequest(request, tunnelProtocol);
    if ("problem" in checked) throw new Error(checked.problem);
    new WebSocketLink(reply.upgrade(checked.headers), {
      role: "server",
      maxMessageBytes: 1024 * 1024,
      listen(link) {
        const listener = new RecordingListener();
        const end = new RawEnd(link, listener);
        ends.push(end);
        greet(end);
        return listener;
      },
    });
  });
  return { url: http.url, ends, [Symbol.asyncDispose]: async () => http.server.close() };
}

export const rawHello = (changes: Record<string, unknown> = {}) =>
  json({ major: 1, minor: 0, features: [], window: 65_536, nonce: "n".repeat(43), gateway: gatewayUrl, ...changes });

/** Greets as a gateway does, and welcomes whatever proof comes. */
export function welcoming(end: RawEnd): void {
  end.send(messageTypes.hello, 0, rawHello());
  end.listener.onMessage = (bytes) => {
    if (bytes[0] === messageTypes.proof) end.send(messageTypes.welcome, 0, "{}");
  };
}

export function requestMessage(head: Record<string, unknown>, body: Uint8Array | string = ""): Buffer {
  const text = json({ id: "r", operation: "chat", model: "m", stream: true, width: 1, length: body.length, ...head });
  const length = Buffer.alloc(2);
  length.writeUInt16BE(text.length);
  return Buffer.concat([length, text, typeof body === "string" ? Buffer.from(body) : body]);
}

export interface CuttableProxy extends Disposable {
  url: string;
  connections: number;
  /** Passes nothing on from here, and tells nobody: the ends see silence. */
  freeze(): void;
  /**
   * Lets what comes from here on pass again; what was dropped meanwhile is lost, so those that were open are of no use.
   */
  thaw(): void;
  /** Breaks all connections off. */
  cut(): void;
}

interface Pipe {
  other: Socket<Pipe> | undefined;
  waiting: Buffer[];
  frozen: boolean;
}

/** A proxy between a node and its gateway whose connections can be cut. */
export function cuttableProxy(port: number): CuttableProxy {
  const sockets = new Set<Socket<Pipe>>();
  let frozen = false;
  const forward = (pipe: Pipe, bytes: Buffer) => {
    const { other } = pipe;
    if (!other || pipe.waiting.length > 0) {
      pipe.waiting.push(bytes);
      return;
    }
    const taken = other.write(bytes);
    if (taken < bytes.length) pipe.waiting.push(bytes.subarray(Math.max(0, taken)));
  };
  const flush = (pipe: Pipe | undefined) => {
    if (!pipe) return;
    const waiting = pipe.waiting.splice(0);
    for (const bytes of waiting) forward(pipe, bytes);
  };
  const handlers = {
    data(socket: Socket<Pipe>, bytes: Buffer) {
      if (!socket.data.frozen) forward(socket.data, bytes);
    },
    // Bytes that the other side sent wait for room here.
    drain: (socket: Socket<Pipe>) => flush(socket.data.other?.data),
    close(socket: Socket<Pipe>) {
      sockets.delete(socket);
      if (!socket.data.frozen) socket.data.other?.end();
    },
    error() {},
  };
  const proxy: CuttableProxy = {
    url: "",
    connections: 0,
    freeze() {
      frozen = true;
      for (const socket of sockets) socket.data.frozen = true;
    },
    thaw() {
      frozen = false;
    },
    cut() {
      for (const socket of [...sockets]) socket.terminate();
    },
    [Symbol.dispose]() {
      listener.stop(true);
      proxy.cut();
    },
  };
  const listener = Bun.listen<Pipe>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      ...handlers,
      open(socket) {
        proxy.connections++;
        sockets.add(socket);
        socket.data = { other: undefined, waiting: [], frozen };
        void Bun.connect<Pipe>({
          hostname: "127.0.0.1",
          port,
          data: { other: socket, waiting: [], frozen },
          socket: {
            ...handlers,
            open(up) {
              sockets.add(up);
              socket.data.other = up;
              flush(socket.data);
            },
          },
        }).catch(() => socket.end());
      },
    },
  });
  proxy.url = `http://127.0.0.1:${listener.port}`;
  return proxy;
}
