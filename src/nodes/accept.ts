// The gateway's side of the endpoint for nodes: upgrades the request, and verifies the node.
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
  /** Returns this gateway's own URL, which nodes got when they joined: they sign for this URL only. */
  gatewayUrl(): string;
  /** Returns the key of a node. Rejects if the key cannot be read now; the node then tries again. */
  findKey(nodeId: string): Promise<NodeKey>;
  /** Called once a node has proven its identity. The returned listener gets all later events. */
  connected(end: GatewayEnd): GatewayEndListener;
  /** The longest wait for an answer's head; `idleTimeoutMs` is the longest silence within an answer. */
  firstByteTimeoutMs: number;
  idleTimeoutMs: number;
  /** The limits of tunnels. Missing members have defaults. */
  limits?: Partial<TunnelLimits>;
  log: Log;
}

/** The members of an HTTP request that the acceptor needs. */
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

/** The most connections that have not proven their identity yet. Each costs a few KB, and one look-up at most. */
const maxUnproven = 256;

export class NodeAcceptor {
  readonly #options: NodeAcceptorOptions;
  readonly #limits: TunnelLimits;
  /** Connections that have not proven their identity yet, oldest first, with the network of each. */
  readonly #unproven = new Map<TunnelConnection, string>();
  #closed = false;

  constructor(options: NodeAcceptorOptions) {
    this.#options = options;
    this.#limits = { ...defaultTunnelLimits, ...options.limits };
  }

  /**
   * Accepts an upgrade request. Throws a GatewayError if the request is not a valid upgrade, or if there is no room.
   */
  upgrade({ req, clientAddress, answerHeaders }: ConnectExchange): ConnectAnswer {
    // Browsers always send an Origin header and nodes never do. No page may connect here.
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

  /**
   * Accepts no more connections, and ends those that have not proven their identity. The others are ended by their
   * owners.
   */
  close(): void {
    this.#closed = true;
    for (const connection of [...this.#unproven.keys()]) {
      connection.close(tunnelCloseCodes.goingAway, "the gateway is going away");
    }
  }

  /**
   * Reports whether there is room for a connection. If all places are taken, the network with the most connections
   * loses its oldest one to a network with fewer.
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
