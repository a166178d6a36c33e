// Messages between a gateway and its nodes, and between replicas for a node: both ends may be of different versions.
import { expect, test } from "bun:test";
import { bodyOf } from "../../src/base/bytes/body-source.ts";
import { AccountMemory, BufferedBytes, bufferedBytes, NoRoomError } from "../../src/base/bytes/buffered-bytes.ts";
import type { ByteSpan } from "../../src/base/bytes/byte-span.ts";
import type { MessageLink, MessageLinkListener } from "../../src/base/bytes/message-link.ts";
import { Cancellation } from "../../src/base/cancellation.ts";
import { GatewayError } from "../../src/base/errors.ts";
import { byCapability } from "../../src/domain/models/capabilities.ts";
import { type Operation, operationPaths } from "../../src/domain/models/operation.ts";
import { bodyDigest, ForwardVerifier, type SignedRequest, signForward } from "../../src/nodes/forward-signature.ts";
import {
  aboutText,
  errorText,
  faultTrailer,
  forwardHeaders,
  forwardOutcomes,
  forwardPath,
  readAbout,
  readError,
  readFault,
} from "../../src/nodes/forward-wire.ts";
import { signProof, verifyProof } from "../../src/nodes/identity.ts";
import { joinTokenDigest } from "../../src/nodes/join-token.ts";
import {
  type AnnouncedModel,
  defaultTunnelLimits,
  type GatewayEnd,
  type NodeAnnouncement,
  type NodeStatus,
  nodeConnectPath,
  type TunnelRequest,
  tunnelCloseCodes,
  tunnelProtocol,
} from "../../src/nodes/tunnel/contract.ts";
import { GatewayHandshake } from "../../src/nodes/tunnel/gateway-handshake.ts";
import { NodeTunnel } from "../../src/nodes/tunnel/node-tunnel.ts";
import { TunnelConnection } from "../../src/nodes/tunnel/tunnel-connection.ts";
import { until } from "../support/headrace.ts";
import { manualClock } from "../support/manual-clock.ts";
import { textOf } from "../support/tunnel/tunnel-fixture.ts";
import { committed, expectCommitted } from "./committed.ts";

const key = Buffer.alloc(32, 7);
const node = {
  publicKey: "RgawgPSQQ7nOYFuGjNnPQ_1wErGLuLJI48l17rArj1g",
  privateKey: "MC4CAQAwBQYDK2VwBCIEIAQzRk9Um1fkSajDKKyv1ilBiB-i-HwNyC8Dx1TiMGrP",
};
const gatewayUrl = "https://gateway.example";
const memoryAccount = new BufferedBytes(1_000_000).memoryAccount(new AccountMemory(), {
  key: "key_1",
  account: "acct_1",
});

const modelRequest = {
  ...{ requestId: "req_1", operation: "chat", model: "a/b", stream: true, width: 3, priority: "high" },
  ...{ body: '{"model":"a/b"}', memoryAccount },
} as const satisfies TunnelRequest;
const toolRequest = {
  ...{ requestId: "req_2", server: "files", method: "POST", body: '{"method":"tools/call"}', memoryAccount },
  headers: { "mcp-method": "tools/call", "mcp-session-id": "s" },
} as const satisfies TunnelRequest;
const ids = { key: "key_1", account: "acct_1" };
const { body: _, memoryAccount: _held, ...modelHead } = modelRequest;
const { body: __, memoryAccount: __held, ...toolHead } = toolRequest;
const [aboutModel, aboutTool] = [modelHead, toolHead].map((head) => ({ ...head, holder: ids }));
const fault = new GatewayError("upstream_error", "It broke.", {
  ...{ detail: "north: reset", retryAfterSeconds: 5, engineLimited: true },
});
const noRoom = new NoRoomError("service_unavailable", "No room.");

test("forwards a request to another replica and reads its answer as committed", () => {
  expectCommitted("node-forwards", {
    path: forwardPath,
    headers: JSON.stringify(forwardHeaders),
    outcomes: JSON.stringify(forwardOutcomes),
    "about a model": Buffer.from(aboutText(modelRequest), "base64url"),
    "about a tool": Buffer.from(aboutText(toolRequest), "base64url"),
    error: errorText(fault),
    "error for want of room": errorText(noRoom),
    trailer: faultTrailer(fault),
  });
  const found = committed("node-forwards");
  const said = (name: string) => String(found[name]);
  const about = (name: string) => readAbout(Buffer.from(said(name)).toString("base64url"));
  expect([about("about a model"), about("about a tool")]).toEqual([aboutModel, aboutTool]);
  for (const read of [readError(said("error")), readFault(said("trailer").split(": ")[1] ?? "")]) {
    expect({ ...read, message: read?.message }).toMatchObject({ ...fault, message: fault.message });
  }
  expect(readError(said("error for want of room"))).toBeInstanceOf(NoRoomError);
});

test("accepts a forward signed by an earlier version", () => {
  const request: SignedRequest = {
    ...{ method: "POST", path: "/internal/nodes/node_1/requests", replicaId: "rep_1", about: "e30" },
    bodyDigest: bodyDigest("{}"),
  };
  const signed = "1790000000.AAAAAAAAAAAAAAAAAAAAAA.K8l3WdoFQX-nfBYi490LIIIv0WxkNwPewrQAmO4KOsw";
  const clock = manualClock(1_790_000_000);
  expect(new ForwardVerifier(key, clock).verify(request, signed)).toBe(true);
  expect(signForward(request, key, clock)).toMatch(/^1790000000\.[\w-]{22}\.[\w-]{43}$/);
});

test("makes a node's proof and a join token's digest as committed", () => {
  const text = { protocol: tunnelProtocol, gateway: gatewayUrl, nodeId: "node_1", nonce: "bm9uY2U" };
  expectCommitted("node-identity", {
    "connect path": nodeConnectPath,
    protocol: tunnelProtocol,
    "close codes": JSON.stringify(tunnelCloseCodes),
    proof: signProof(node.privateKey, text),
    "join token digest": joinTokenDigest(`hrn_${"0".repeat(32)}`, key) ?? "",
  });
  expect(verifyProof(node.publicKey, text, String(committed("node-identity")["proof"]))).toBe(true);
});

/** Two ends of a tunnel in one process; every message is put on record in the order in which it was sent. */
class Tape {
  readonly records: Record<string, string> = {};
  readonly #queue: (() => void)[] = [];

  end(name: string, other: () => MessageLinkListener): MessageLink {
    return {
      ...{ peer: "test", unsentBytes: 0, terminate() {} },
      send: (message, rest = Buffer.of()) => {
        const bytes = Buffer.concat([message, rest]);
        this.#record(name, bytes.toString("latin1"));
        this.#queue.push(() => other().message(bytes));
      },
      close: (code, reason) => {
        this.#record(name, `close ${code} ${reason}`);
        this.#queue.push(() => other().closed(code, reason));
      },
    };
  }

  /** Delivers until neither end has anything left to say. */
  async play(): Promise<void> {
    for (let idle = 0; idle < 20; idle++) {
      for (let next = this.#queue.shift(); next; next = this.#queue.shift(), idle = 0) next();
      await Bun.sleep(0);
    }
  }

  #record(name: string, text: string): void {
    const number = Object.keys(this.records).length + 1;
    this.records[`${number} ${name}`] = text
      .replace(/"(nonce|signature)":"[\w-]+"/, '"$1":"<random>"')
      .replace(/x{100,}/, ({ length }) => `<x ${length} times>`);
  }
}

const everyModel: Required<AnnouncedModel> = {
  ...{ id: "m", ownedBy: "acme", created: 1_790_000_000, context: 8_192, process: "loaded", continues: "flag" },
  shutdownAt: 1_797_033_600,
  capabilities: byCapability(() => true),
  concurrency: Object.fromEntries(Object.keys(operationPaths).map((name, i) => [name as Operation, i + 1])),
};
const announcement: Required<NodeAnnouncement> = {
  version: "1.2.3",
  models: [everyModel, { id: "bare" }],
  toolServers: [{ name: "files", title: "Files", kind: "command" }],
  load: { active: 1, waiting: 2 },
};
const status: NodeStatus = { name: "north", approvedModels: ["m"] };

test("runs a whole tunnel session as committed at both ends", async () => {
  const tape = new Tape();
  const limits = {
    ...defaultTunnelLimits,
    heartbeatMs: 1e9,
    silenceMs: 1e9,
    authenticationMs: 1e9,
    windowBytes: 1_024,
  };
  const seen: unknown[] = [];
  const heard: unknown[] = [];
  const listeners: { gateway?: MessageLinkListener; node?: MessageLinkListener } = {};
  let end: GatewayEnd | undefined;
  const { tunnel, listener } = NodeTunnel.begin(
    tape.end("node", () => listeners.gateway as MessageLinkListener),
    {
      ...{ nodeId: "node_1", privateKey: node.privateKey, gateway: gatewayUrl, limits },
      async handle(request) {
        seen.push({ ...request, body: (request.body as ByteSpan).text.slice(0, 40) });
        if (request.requestId === "req_fails")
          throw new GatewayError("upstream_timeout", "Too slow.", { detail: "up" });
        if (request.requestId === "req_waits") return new Promise(() => {});
        return {
          status: 200,
          headers: new Headers({
            ...{ "content-type": "text/plain", "retry-after": "1", "x-headrace-ignored": "a", "mcp-session-id": "s" },
          }),
          body: bodyOf(Buffer.from(request.requestId === "req_long" ? "x".repeat(1_500) : "answer")),
        };
      },
      listener: {
        welcome: () => heard.push("welcome"),
        status: (reported) => heard.push(reported),
        draining: () => heard.push("draining"),
        closed: (_tunnel, code) => heard.push(code),
        fault: (error) => heard.push(error),
      },
    },
  );
  listeners.node = listener;
  listeners.gateway = new TunnelConnection(
    tape.end("gateway", () => listener),
    limits,
    (connection) =>
      new GatewayHandshake(connection, {
        ...{ gateway: gatewayUrl, clientAddress: "192.0.2.1", limits },
        ...{ times: { firstByteTimeoutMs: 1e9, idleTimeoutMs: 1e9 }, settled() {} },
        findKey: async () => ({ publicKey: node.publicKey }),
        connected(made) {
          end = made;
          return { announced: (reported) => heard.push(reported), draining: () => heard.push("leaves"), closed() {} };
        },
      }),
  );
  await tape.play();
  tunnel.announce(announcement);
  await tape.play();
  const gateway = end as GatewayEnd;
  gateway.sendStatus(status);
  await tape.play();
  const exchange = async (request: TunnelRequest) => {
    const response = gateway.send(request, new Cancellation());
    void response.catch(() => {});
    await tape.play();
    const text = textOf(await response);
    await tape.play();
    return [(await response).status, await text];
  };
  expect(await exchange(modelRequest)).toEqual([200, "answer"]);
  expect(await exchange(toolRequest)).toEqual([200, "answer"]);
  const long = {
    ...modelRequest,
    requestId: "req_long",
    body: "x".repeat(3_000),
    memoryAccount: bufferedBytes.visitors,
  };
  expect(await exchange(long)).toEqual([200, "x".repeat(1_500)]);
  await expect(exchange({ ...modelRequest, requestId: "req_fails" })).rejects.toThrow();
  const cancellation = new Cancellation();
  const left = gateway.send({ ...modelRequest, requestId: "req_waits" }, cancellation);
  void left.catch(() => {});
  await tape.play();
  cancellation.cancel(new GatewayError("upstream_error", "left"));
  await tape.play();
  listener.message(Buffer.from([0x05, 0, 0, 0, 0, 1, 2, 3, 4]));
  await tape.play();
  void tunnel.drain();
  await tape.play();
  await until(() => gateway.closed, "the tunnel is closed");
  expectCommitted("node-tunnel", tape.records);
  const request = ({ memoryAccount: _holder, ...rest }: TunnelRequest) => rest;
  expect(seen).toEqual([
    request(modelRequest),
    request(toolRequest),
    { ...request(modelRequest), requestId: "req_long", body: "x".repeat(40) },
    { ...request(modelRequest), requestId: "req_fails" },
    { ...request(modelRequest), requestId: "req_waits" },
  ]);
  expect(heard).toEqual(["welcome", announcement, status, "leaves", tunnelCloseCodes.normal]);
});
