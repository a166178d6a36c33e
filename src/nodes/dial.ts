// The node's side of the connection: dials the gateway's endpoint for nodes.
import { trimSlashes } from "../base/text/http-url.ts";
import { connectWebSocket } from "../websocket/connect.ts";
import { nodeConnectPath, tunnelProtocol } from "./tunnel/contract.ts";
import { maxMessageBytes } from "./tunnel/messages.ts";
import { NodeTunnel, type NodeTunnelOptions } from "./tunnel/node-tunnel.ts";

export interface DialOptions extends NodeTunnelOptions {
  /** The base URL at which this machine reaches the gateway. */
  url: string;
  /** The time limit for the connection, TLS and the upgrade together, in milliseconds. */
  connectMs: number;
  /** `http://[user:password@]host:port` if connections use a proxy. */
  proxy?: string | undefined;
  /** Certificates (PEM) to trust instead of the well-known ones and the system's. */
  ca?: string | undefined;
}

/**
 * Returns the URL of the gateway's endpoint for nodes. Throws a TypeError if the gateway's URL is not an http or https
 * URL.
 */
export function connectUrl(gateway: string): URL {
  const url = new URL(gateway);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw new TypeError("The URL of the gateway must begin with https:// or http://.");
  }
  // Clients use a base URL that ends in /v1, and the path of this endpoint begins with /v1 as well.
  const base = trimSlashes(url.pathname).replace(/\/v1$/, "");
  url.pathname = base + nodeConnectPath;
  url.search = "";
  url.hash = "";
  return url;
}

/** Connects to a gateway. Rejects with a ConnectError. The listener gets all later events. */
export async function dialGateway(options: DialOptions): Promise<NodeTunnel> {
  let tunnel: NodeTunnel | undefined;
  await connectWebSocket({
    url: connectUrl(options.url),
    protocol: tunnelProtocol,
    headers: { "user-agent": "headrace-node" },
    connectMs: options.connectMs,
    maxMessageBytes,
    proxy: options.proxy === undefined ? undefined : new URL(options.proxy),
    ca: options.ca,
    listen(link) {
      const begun = NodeTunnel.begin(link, options);
      tunnel = begun.tunnel;
      return begun.listener;
    },
  });
  return tunnel as unknown as NodeTunnel;
}
