// The gateway's endpoint for nodes: upgrades the request to a WebSocket and verifies the node.
import { forbidden, GatewayError, invalidRequest } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { PausableChannel } from "../http1/byte-channel.ts";
import type { AnswerFields, HeaderFields, IncomingRequest } from "../http1/message.ts";
import { clientNetwork } from "../policy/client-network.ts";
import { checkUpgradeRequest } from "../websocket/handshake.ts";
import { WebSocketLink } from "../websocket/websocket-link.ts";
import {
  defaultTunnelLimits,
  type GatewayEnd,
  type GatewayEndListener,
  type TunnelLimits,
  tunnelCloseCodes,
  tunnelProtocol,
} from "./tunnel/contract.ts";
import { GatewayHandshake, type NodeKey } from "./tunnel/gateway-handshake.ts";
import { maxEarlyMessageBytes, maxMessageBytes } from "./tunnel/messages.ts";
import { TunnelConnection } from "./tunnel/tunnel-connection.ts";

export interface NodeAcceptorOptions {
  /** Returns the URL of this gateway. Nodes received it when they joined, and sign only for this URL. */
  gatewayUrl(): string;
  /** Returns the public key of a node. Rejects if the database is unavailable; the node then tries again. */
  findKey(nodeId: string): Promise<NodeKey>;
  /** Called when a node's identity is verified. The returned listener gets all later events. */
  connected(end: GatewayEnd): GatewayEndListener;
  /** Maximum milliseconds until an answer's headers arrive. `idleTimeoutMs` is the maximum silence within an answer. */
  firstByteTimeoutMs: number;
  idleTimeoutMs: number;
  /** Limits of a connection; missing members have defaults. */
  limits?: Partial<TunnelLimits>;
  log: Log;
}

/** The parts of an HTTP request that are needed for the upgrade. */
export interface ConnectExchange {
  readonly req: IncomingRequest;
  readonly clientAddress: string;
  readonly answerHeaders: Record<string, AnswerFields[string]>;
}

export interface ConnectAnswer {
  status: 101;
  headers: HeaderFields;
  upgrade(channel: PausableChannel): void;
}

/** Maximum connections whose node is not verified yet. */
const maxUnproven = 256;

export class NodeAcceptor {
  readonly #options: NodeAcceptorOptions;
  readonly #limits: TunnelLimits;
  /** Connections whose node is not verified yet, oldest first, with the network of their client. */
  readonly #unproven = new Map<TunnelConnection, string>();
  #closed = false;

  constructor(options: NodeAcceptorOptions) {
    this.#options = options;
    this.#limits = { ...defaultTunnelLimits, ...options.limits };
  }

  /** Accepts an upgrade request. Throws a GatewayError if it is invalid or there are too many connections. */
  upgrade({ req, clientAddress, answerHeaders }: ConnectExchange): ConnectAnswer {
    // Browsers always send an Origin header, and nodes never do. Web pages must not connect here.
    if (req.headers.has("origin")) {
      throw forbidden("Nodes connect here with `headrace node`, pages do not.");
    }
    const checked = checkUpgradeRequest(req, tunnelProtocol);
    if ("problem" in checked) {
      Object.assign(answerHeaders, checked.headers);
      throw invalidRequest(checked.problem);
    }
    const network = clientNetwork(clientAddress);
    if (this.#closed || !this.#hasRoom(network)) {
      throw new GatewayError("service_unavailable", "No more nodes can connect for now; try again shortly.", {
        retryAfterSeconds: 1,
      });
    }
    return {
      status: 101,
      headers: checked.headers,
      upgrade: (channel) => void this.#begin(channel, clientAddress, network),
    };
  }

  /** Accepts no more connections, and closes those that are not verified. The others are closed by their owners. */
  close(): void {
    this.#closed = true;
    for (const connection of [...this.#unproven.keys()]) {
      connection.close(tunnelCloseCodes.goingAway, "the gateway is going away");
    }
  }

  /**
   * Reports whether another connection may begin. If there are too many unverified connections, the network with the
   * most connections loses its oldest one to a network with fewer connections.
   */
  #hasRoom(network: string): boolean {
    if (this.#unproven.size < maxUnproven) return true;
    const counts = Map.groupBy(this.#unproven, ([, of]) => of);
    const own = counts.get(network)?.length ?? 0;
    const [oldest, ...others] = [...counts.values()].reduce((most, next) => (next.length > most.length ? next : most));
    if (!oldest || others.length <= own) return false;
    oldest[0].close(tunnelCloseCodes.busy, "too many connections of this address wait");
    return true;
  }

  #begin(channel: PausableChannel, clientAddress: string, network: string): WebSocketLink {
    return new WebSocketLink(channel, {
      role: "server",
      maxMessageBytes: maxEarlyMessageBytes,
      listen: (link) => {
        const connection: TunnelConnection = new TunnelConnection(link, this.#limits, (it) => {
          this.#unproven.set(it, network);
          return this.#handshake(it, link, clientAddress);
        });
        return connection;
      },
    });
  }

  #handshake(connection: TunnelConnection, link: WebSocketLink, clientAddress: string): GatewayHandshake {
    const { gatewayUrl, findKey, connected, firstByteTimeoutMs, idleTimeoutMs, log } = this.#options;
    return new GatewayHandshake(connection, {
      gateway: gatewayUrl(),
      clientAddress,
      findKey,
      connected,
      settled: (authenticated, reason) => {
        this.#unproven.delete(connection);
        if (authenticated) link.maxMessageBytes = maxMessageBytes;
        else log.warn("node_refused", { client: clientAddress, detail: reason });
      },
      limits: this.#limits,
      times: { firstByteTimeoutMs, idleTimeoutMs },
    });
  }
}
