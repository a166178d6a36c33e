// The gateway's part of the handshake that verifies a node. No other messages are accepted before it is complete.

import { randomBytes } from "node:crypto";
import { exactMs } from "../../base/clock.ts";
import { verifyProof } from "../identity.ts";
import {
  type GatewayEnd,
  type GatewayEndListener,
  type TunnelLimits,
  tunnelCloseCodes,
  tunnelProtocol,
} from "./contract.ts";
import type { StreamTimes } from "./gateway-stream.ts";
import { GatewayTunnel } from "./gateway-tunnel.ts";
import { messageTypes, ProtocolError, protocolMajor, protocolMinor } from "./messages.ts";
import { type Hello, type Proof, parseProof } from "./payloads.ts";
import type { TunnelConnection, TunnelUser } from "./tunnel-connection.ts";

/** The public key of a node, or why it may not connect. */
export type NodeKey = { publicKey: string } | { refused: "unknown" | "revoked" };

export interface GatewayHandshakeOptions {
  /** This gateway's own URL. */
  gateway: string;
  clientAddress: string;
  findKey(nodeId: string): Promise<NodeKey>;
  /** Called when the node's identity is verified. */
  connected(end: GatewayEnd): GatewayEndListener;
  /** Called once, when the handshake has succeeded or failed. */
  settled(authenticated: boolean, reason: string): void;
  limits: TunnelLimits;
  times: StreamTimes;
}

const nonceBytes = 32;

export class GatewayHandshake implements TunnelUser {
  readonly #connection: TunnelConnection;
  readonly #options: GatewayHandshakeOptions;
  readonly #nonce = randomBytes(nonceBytes).toString("base64url");
  readonly #deadlineMs: number;
  #proven = false;
  /** An error at this end, for the log. */
  #fault: unknown;

  constructor(connection: TunnelConnection, options: GatewayHandshakeOptions) {
    this.#connection = connection;
    this.#options = options;
    this.#deadlineMs = exactMs() + options.limits.authenticationMs;
    const hello: Hello = {
      major: protocolMajor,
      minor: protocolMinor,
      features: [],
      window: options.limits.windowBytes,
      nonce: this.#nonce,
      gateway: options.gateway,
    };
    connection.sendText(messageTypes.hello, 0, JSON.stringify(hello));
  }

  received(type: number, stream: number, payload: Buffer): void {
    if (type !== messageTypes.proof || stream !== 0 || this.#proven) {
      throw new ProtocolError("the first message, and the only one until it is answered, must be the proof");
    }
    this.#proven = true;
    const proof = parseProof(payload);
    if (proof.major !== protocolMajor) {
      const reason = `this gateway speaks version ${protocolMajor} of the protocol, not ${proof.major}`;
      this.#connection.close(tunnelCloseCodes.version, reason);
      return;
    }
    void this.#check(proof);
  }

  drained(): void {}

  tick(nowMs: number): void {
    if (nowMs < this.#deadlineMs) return;
    this.#connection.close(tunnelCloseCodes.authenticationTimeout, "the node did not say in time who it is");
  }

  ended(_code: number, reason: string): void {
    this.#options.settled(false, this.#fault === undefined ? reason : `${reason}: ${String(this.#fault)}`);
  }

  async #check(proof: Proof): Promise<void> {
    try {
      const key = await this.#options.findKey(proof.node);
      if (!this.#connection.isOver) this.#decide(proof, key);
    } catch (error) {
      this.#fault = error;
      this.#connection.close(tunnelCloseCodes.internal, "the gateway cannot look up its nodes now");
    }
  }

  #decide(proof: Proof, key: NodeKey): void {
    const connection = this.#connection;
    if ("refused" in key) {
      if (key.refused === "revoked") connection.close(tunnelCloseCodes.revoked, "this node may not connect any more");
      else connection.close(tunnelCloseCodes.unknownNode, "this gateway does not know this node");
      return;
    }
    const text = {
      protocol: tunnelProtocol,
      gateway: this.#options.gateway,
      nodeId: proof.node,
      nonce: this.#nonce,
    };
    if (!verifyProof(key.publicKey, text, proof.signature)) {
      connection.close(tunnelCloseCodes.unauthenticated, "the signature is not by the key of this node");
      return;
    }
    this.#welcome(proof);
  }

  #welcome(proof: Proof): void {
    const { clientAddress, limits, times } = this.#options;
    const tunnel = new GatewayTunnel(this.#connection, {
      connectionId: `conn_${Bun.randomUUIDv7()}`,
      clientAddress,
      proof,
      limits,
      times,
    });
    this.#connection.established(tunnel);
    this.#connection.sendText(messageTypes.welcome, 0, "{}");
    this.#options.settled(true, "");
    tunnel.listener = this.#options.connected(tunnel);
  }
}
