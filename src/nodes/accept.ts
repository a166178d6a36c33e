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
  /** This gateway's own URL, which nodes got when they joined: their signature is only for it. */
  gatewayUrl(): string;
  /** Rejects if the key cannot be read now. The node tries again. */
  findKey(nodeId: string): Promise<NodeKey>;
  /** A node has proven its identity. The returned listener gets all later events. */
  connected(end: GatewayEnd): GatewayEndListener;
  /** The wait for an answer's head, and the longest silence within an answer. */
  firstByteTimeoutMs: number;
  idleTimeoutMs: number;
  /** Missing ones have defaults. */
  limits?: Partial<TunnelLimits>;
  log: Log;
}

/** The members of a request that are needed here. */
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

/** Connections without proof of identity so far. Each costs a few KB, and one look-up at most. */
const maxUnproven = 256;

export class NodeAcceptor {
  readonly #options: NodeAcceptorOptions;
  readonly #limits: TunnelLimits;
  /** Oldest first, with the network of each. */
  readonly #unproven = new Map<TunnelConnection, string>();
  #closed = false;

  constructor(options: NodeAcceptorOptions) {
    this.#options = options;
    this.#limits = { ...defaultTunnelLimits, ...options.limits };
  }

  /** Throws a GatewayError if the request is not a valid upgrade, or if there is no room. */
  upgrade({ req, clientAddress, answerHeaders }: ConnectExchange): ConnectAnswer {
    // Browsers always send it, nodes never, and no page may connect here.
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

  /** Accepts no more, and ends those without proof of identity. The owners of the others must end them. */
  close(): void {
    this.#closed = true;
    for (const connection of [...this.#unproven.keys()]) {
      connection.close(tunnelCloseCodes.goingAway, "the gateway is going away");
    }
  }

  /** Whether there is a place. If all are taken, the network with the most gives one to a network with fewer. */
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
