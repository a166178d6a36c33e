// The gateway's side of the endpoint that nodes connect to: upgrades the request, and hears who it is.
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
  /** This gateway's own URL, as nodes got it when they joined: what they sign is for this one alone. */
  gatewayUrl(): string;
  /** Rejects where it cannot be found out now: the node tries again. */
  findKey(nodeId: string): Promise<NodeKey>;
  /** A node has proven who it is. What it gives hears of everything that follows. */
  connected(end: GatewayEnd): GatewayEndListener;
  /** Wait for the head of an answer, and longest silence in the middle of one. */
  firstByteTimeoutMs: number;
  idleTimeoutMs: number;
  /** Those left out have their defaults. */
  limits?: Partial<TunnelLimits>;
  log: Log;
}

/** The members of a request on its way through the server that are needed here. */
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

/** Connections that have not said yet who they are; each costs a few KB, and a look-up at most. */
const maxUnproven = 256;

export class NodeAcceptor {
  readonly #options: NodeAcceptorOptions;
  readonly #limits: TunnelLimits;
  /** Oldest first, with the network that each comes from. */
  readonly #unproven = new Map<TunnelConnection, string>();
  #closed = false;

  constructor(options: NodeAcceptorOptions) {
    this.#options = options;
    this.#limits = { ...defaultTunnelLimits, ...options.limits };
  }

  /** Throws a GatewayError where the request is none for an upgrade, or no more can be taken. */
  upgrade({ req, clientAddress, answerHeaders }: ConnectExchange): ConnectAnswer {
    // Browsers always send it, nodes never: no page has any business here.
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

  /** Takes no more, and ends those that have not said who they are; the others are their owner's to end. */
  close(): void {
    this.#closed = true;
    for (const connection of [...this.#unproven.keys()]) {
      connection.close(tunnelCloseCodes.goingAway, "the gateway is going away");
    }
  }

  /** Whether there is a place. Where all are taken, whoever has the most of them gives one to whoever has fewer. */
  #hasRoom(network: string): boolean {
    if (this.#unproven.size < maxUnproven) return true;
    const places = Map.groupBy(this.#unproven, ([, of]) => of);
    const own = places.get(network)?.length ?? 0;
    const [oldest, ...others] = [...places.values()].reduce((most, next) => (next.length > most.length ? next : most));
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
