// The node's end of a tunnel: proves the node's identity, then answers the gateway's requests.

import type { MessageLink, MessageLinkListener } from "../../base/bytes/message-link.ts";
import { exactMs } from "../../base/clock.ts";
import { GatewayError } from "../../base/errors.ts";
import { taskOperations } from "../../domain/models/operation.ts";
import { signProof } from "../identity.ts";
import {
  type NodeAnnouncement,
  type NodeHandler,
  type NodeStatus,
  type TunnelLimits,
  toolsFeature,
  tunnelCloseCodes,
  tunnelProtocol,
} from "./contract.ts";
import { BodyBudget, IncomingBody } from "./incoming-body.ts";
import {
  creditPayload,
  maxAnnouncementBytes,
  maxPayloadBytes,
  messageTypes,
  ProtocolError,
  pieceBytes,
  protocolMajor,
  protocolMinor,
  readCredit,
} from "./messages.ts";
import { NodeStream, type NodeStreamOwner } from "./node-stream.ts";
import { Orphans } from "./orphans.ts";
import { type Hello, type Proof, parseHello, parseRequestHead, parseStatus, type RequestHead } from "./payloads.ts";
import { StreamTable } from "./stream-table.ts";
import { TunnelConnection, type TunnelUser } from "./tunnel-connection.ts";

export interface NodeTunnelOptions {
  nodeId: string;
  /** The node's private key (PKCS #8 in base64url). */
  privateKey: string;
  /** The gateway's own URL, which the node got when it joined. The node proves its identity to no other gateway. */
  gateway: string;
  handle: NodeHandler;
  limits: TunnelLimits;
  listener: NodeTunnelListener;
}

export interface NodeTunnelListener {
  /** Called when the gateway has verified the node. */
  welcome(tunnel: NodeTunnel): void;
  /** Called when the gateway sends the node's name and approved models. */
  status(status: NodeStatus): void;
  /** Called when the gateway will send no more requests. Open requests continue. */
  draining(tunnel: NodeTunnel): void;
  /** Called once, after all running requests were cancelled. */
  closed(tunnel: NodeTunnel, code: number, reason: string): void;
  /** Called with an error of the handler that is no GatewayError. */
  fault(error: unknown): void;
}

const { hello, proof, welcome, announce, head, data, end, fail } = messageTypes;
const misplaced: ReadonlySet<number> = new Set([hello, proof, welcome, announce, head, data, end, fail]);

export class NodeTunnel implements TunnelUser, NodeStreamOwner {
  readonly #connection: TunnelConnection;
  readonly #options: NodeTunnelOptions;
  readonly #streams = new StreamTable<NodeStream>();
  readonly #paused = new Set<NodeStream>();
  readonly #orphans = new Orphans();
  readonly #budget: BodyBudget;
  readonly #deadlineMs: number;
  /** Maximum bytes of an answer that may be sent before the gateway grants more. */
  #windowBytes = 0;
  #stage: "hello" | "proof" | "welcome" = "hello";
  #drainSent = false;
  /** True when the gateway has said that it sends no more requests. */
  #drainReceived = false;
  #drained: PromiseWithResolvers<void> | undefined;

  private constructor(connection: TunnelConnection, options: NodeTunnelOptions) {
    this.#connection = connection;
    this.#options = options;
    this.#budget = new BodyBudget(options.limits.allBodyBytes);
    this.#deadlineMs = exactMs() + options.limits.authenticationMs;
  }

  /** Creates a tunnel, and the listener for its WebSocket link. */
  static begin(link: MessageLink, options: NodeTunnelOptions): { tunnel: NodeTunnel; listener: MessageLinkListener } {
    let tunnel: NodeTunnel | undefined;
    const listener = new TunnelConnection(link, options.limits, (connection) => {
      tunnel = new NodeTunnel(connection, options);
      return tunnel;
    });
    return { tunnel: tunnel as unknown as NodeTunnel, listener };
  }

  /** Number of running requests. */
  get openStreams(): number {
    return this.#streams.size;
  }

  /** Number of bytes of request bodies in memory. */
  get bufferedBodyBytes(): number {
    return this.#budget.bufferedBytes;
  }

  get roundTripMs(): number | undefined {
    return this.#connection.roundTripMs;
  }

  get closed(): boolean {
    return this.#connection.isOver;
  }

  get behind(): boolean {
    return this.#connection.behind;
  }

  get handle(): NodeHandler {
    return this.#options.handle;
  }

  /** Sends the node's current announcement; does nothing until the node is verified. Throws if it is too long. */
  announce(announcement: NodeAnnouncement): void {
    if (this.#stage !== "welcome") return;
    const payload = Buffer.from(JSON.stringify(announcement));
    if (payload.length > maxAnnouncementBytes) {
      throw new RangeError(
        `An announcement must be at most ${maxAnnouncementBytes} bytes (this is ${payload.length}).`,
      );
    }
    this.#connection.send(announce, 0, payload);
  }

  /** Accepts no new requests. Resolves when open requests have ended and the connection is closed. */
  drain(): Promise<void> {
    this.#drained ??= Promise.withResolvers<void>();
    if (this.closed) this.#drained.resolve();
    else if (this.#stage !== "welcome") this.close(tunnelCloseCodes.normal, "the node is going away");
    else {
      this.#sendDrain();
      this.#endIfDrained();
    }
    return this.#drained.promise;
  }

  /** Closes the tunnel. Open requests are cancelled. */
  close(code: number, reason: string): void {
    this.#connection.close(code, reason);
  }

  received(type: number, id: number, payload: Buffer): void {
    if (this.#stage === "hello") this.#greeted(type, payload);
    else if (this.#stage === "proof") this.#welcomed(type);
    else if (type === messageTypes.status) this.#options.listener.status(parseStatus(payload));
    else if (type === messageTypes.request) this.#requested(id, payload);
    else if (type === messageTypes.body || type === messageTypes.credit || type === messageTypes.cancel) {
      this.#receivedOf(type, id, payload);
    } else if (type === messageTypes.drain) this.#gatewayDrains();
    else if (misplaced.has(type)) throw new ProtocolError(`a gateway must not send a message of type ${type} here`);
    // Ignore unknown types, which a later minor version may have.
  }

  drained(): void {
    for (const stream of [...this.#paused]) {
      this.#paused.delete(stream);
      stream.proceed();
      if (this.behind) return;
    }
  }

  tick(nowMs: number): void {
    if (this.#stage === "welcome" || nowMs < this.#deadlineMs) return;
    this.close(tunnelCloseCodes.authenticationTimeout, "the gateway did not welcome the node in time");
  }

  ended(code: number, reason: string): void {
    for (const stream of this.#streams) stream.cancel(new Error(`the connection ended: ${reason}`));
    this.#paused.clear();
    this.#drained?.resolve();
    this.#options.listener.closed(this, code, reason);
  }

  awaitDrain(stream: NodeStream): void {
    this.#paused.add(stream);
  }

  send(type: number, id: number, payload?: Uint8Array): void {
    this.#connection.send(type, id, payload);
  }

  over(stream: NodeStream): void {
    this.#paused.delete(stream);
    if (!this.#streams.delete(stream)) return;
    this.#orphans.expect(stream.body.expectedBytes);
    stream.body.release();
    this.#endIfDrained();
  }

  fault(error: unknown): void {
    this.#options.listener.fault(error);
  }

  #greeted(type: number, payload: Buffer): void {
    if (type !== hello) throw new ProtocolError("the first message of a gateway must be its hello");
    const greeting = parseHello(payload);
    if (greeting.major !== protocolMajor) {
      const reason = `this node speaks version ${protocolMajor} of the protocol, not ${greeting.major}`;
      this.close(tunnelCloseCodes.version, reason);
      return;
    }
    const { gateway } = this.#options;
    if (greeting.gateway !== gateway) {
      // Sign nothing for another gateway, which could use the signature to pass as this node.
      this.close(tunnelCloseCodes.unauthenticated, "this is not the gateway that the node joined");
      return;
    }
    this.#windowBytes = greeting.window;
    this.#stage = "proof";
    this.#connection.sendText(proof, 0, JSON.stringify(this.#proof(greeting)));
  }

  #proof({ nonce }: Hello): Proof {
    const { nodeId, privateKey, gateway, limits } = this.#options;
    return {
      major: protocolMajor,
      minor: protocolMinor,
      features: [...taskOperations, toolsFeature],
      window: limits.windowBytes,
      streams: limits.streams,
      node: nodeId,
      signature: signProof(privateKey, { protocol: tunnelProtocol, gateway, nodeId, nonce }),
    };
  }

  #welcomed(type: number): void {
    if (type !== welcome) throw new ProtocolError("a gateway must welcome a node before anything else");
    this.#stage = "welcome";
    this.#connection.established(this);
    this.#options.listener.welcome(this);
  }

  #requested(id: number, payload: Buffer): void {
    if (id === 0 || this.#streams.get(id)) throw new ProtocolError("a request came on a stream that is taken");
    const headLength = payload.length < 2 ? -1 : payload.readUInt16BE(0);
    if (headLength < 0 || headLength > maxPayloadBytes || 2 + headLength > payload.length) {
      throw new ProtocolError("a request is malformed");
    }
    const { limits } = this.#options;
    const request = this.#requestOf(id, payload.subarray(2, 2 + headLength));
    if (!request) return;
    const body = new IncomingBody(request.length, limits.windowBytes, this.#budget);
    const stream = new NodeStream(id, this, request, body, this.#windowBytes);
    const full = this.#streams.size >= limits.streams || (this.#drainSent && this.#drainReceived);
    this.#streams.add(stream);
    if (full) stream.fail(new GatewayError("service_unavailable", "The node takes no more requests for now."));
    else if (request.length > limits.bodyBytes) {
      stream.fail(
        new GatewayError("request_too_large", `The node takes requests of at most ${limits.bodyBytes} bytes.`),
      );
    } else {
      guarded(stream, () => this.#receivedBody(stream, payload.subarray(2 + headLength)));
    }
  }

  /** Parses a request. If it is invalid, tells the gateway and returns undefined. */
  #requestOf(id: number, payload: Buffer): RequestHead | undefined {
    try {
      return parseRequestHead(payload);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.send(fail, id, Buffer.from(JSON.stringify({ code: "upstream_error", message: error.message })));
      this.#orphans.expect(this.#options.limits.windowBytes);
      return undefined;
    }
  }

  #receivedOf(type: number, id: number, payload: Buffer): void {
    const stream = this.#streams.get(id);
    if (!stream) {
      this.#orphans.came(payload.length);
      return;
    }
    guarded(stream, () => {
      if (type === messageTypes.cancel) stream.cancel();
      else if (type === messageTypes.credit) stream.grant(readCredit(payload));
      else this.#receivedBody(stream, payload);
    });
  }

  #receivedBody(stream: NodeStream, piece: Buffer): void {
    if (piece.length > pieceBytes) throw new ProtocolError(`a piece must be at most ${pieceBytes} bytes`);
    if (stream.started) throw new ProtocolError("more of a body came than was announced");
    if (!stream.body.push(piece)) {
      stream.fail(new GatewayError("service_unavailable", "The node holds too many bytes of requests for now."));
    } else if (stream.body.complete) {
      stream.start();
    } else {
      const grant = stream.body.grant();
      if (grant > 0) this.send(messageTypes.credit, stream.id, creditPayload(grant));
    }
  }

  #gatewayDrains(): void {
    if (this.#drainReceived) return;
    this.#drainReceived = true;
    const asked = this.#drainSent;
    this.#sendDrain();
    if (!asked) this.#options.listener.draining(this);
    this.#endIfDrained();
  }

  #sendDrain(): void {
    if (this.#drainSent) return;
    this.#drainSent = true;
    this.#connection.send(messageTypes.drain, 0);
  }

  /**
   * Closes the connection when both ends have sent `drain` and no request is open. Until the gateway's `drain`,
   * requests may still be on their way.
   */
  #endIfDrained(): void {
    if (!this.#drained || !this.#drainReceived || this.#streams.size > 0) return;
    this.close(tunnelCloseCodes.normal, "the node is going away");
  }
}

/** Runs `work`. A protocol error in it ends only this stream. */
function guarded(stream: NodeStream, work: () => void): void {
  try {
    work();
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    stream.stop(error.message);
  }
}
