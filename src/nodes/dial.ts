// Connects a node to the gateway's endpoint for nodes.
import { trimSlashes } from "../base/text/http-url.ts";
import { connectWebSocket } from "../websocket/connect.ts";
import { nodeConnectPath, tunnelProtocol } from "./tunnel/contract.ts";
import { maxMessageBytes } from "./tunnel/messages.ts";
import { NodeTunnel, type NodeTunnelOptions } from "./tunnel/node-tunnel.ts";

export interface DialOptions extends NodeTunnelOptions {
  /** Base URL of the gateway, as this machine reaches it. */
  url: string;
  /** Maximum milliseconds for the connection, TLS and the upgrade together. */
  connectMs: number;
  /** URL of the proxy, `http://[user:password@]host:port`; undefined for a direct connection. */
  proxy?: string | undefined;
  /** Certificates (PEM) to trust instead of the system's. */
  ca?: string | undefined;
}

/** Returns the URL of the gateway's endpoint for nodes. Throws a TypeError if `gateway` is not an http or https URL. */
export function connectUrl(gateway: string): URL {
  const url = new URL(gateway);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw new TypeError("The URL of the gateway must begin with https:// or http://.");
  }
  // The base URL may end in /v1, which the endpoint's path contains already.
  const base = trimSlashes(url.pathname).replace(/\/v1$/, "");
  url.pathname = base + nodeConnectPath;
  url.search = "";
  url.hash = "";
  return url;
}

/** Connects to a gateway. Rejects with a ConnectError. All later events go to the listener. */
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
