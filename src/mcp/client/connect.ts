// Connects to MCP servers. This module is loaded only when the first server is used, because the SDK's client is large.
import { join } from "node:path";
import { GatewayError } from "../../base/errors.ts";
import type { McpServer, ServerLocation } from "../../domain/tools/mcp-server.ts";
import { Http1Client, originOf } from "../../http1/client/client.ts";
import type { CallBounds } from "./call.ts";
import { type Connecting, type ConnectingDeps, type Credentials, processRoom } from "./connecting.ts";
import { Connection, connectTimeoutMs } from "./connection.ts";
import { HttpTransport } from "./http-transport.ts";
import { NodeProcessTransport } from "./node-process-transport.ts";
import { NodeRoute } from "./node-route.ts";
import { ProcessTransport } from "./process-transport.ts";
import type { Line } from "./transport.ts";

/** Timeout for a process to become ready. A program may have to load its modules. */
const processStartMs = 60_000;
const processProbeMs = 5_000;
/**
 * HTTP connections in addition to those for calls: for notification streams, responses to server requests, and
 * cancellations.
 */
const besideCalls = 8;
/** Placeholder for the URL of a server at a node: only the node knows the real address. */
const urlAtNode = "http://node/";

/** Rejects with a GatewayError. */
export async function connect(connecting: Connecting, deps: ConnectingDeps): Promise<Connection> {
  const { server, isLegacy, onNotification, signal } = connecting;
  const { name, timeoutMs, maxResultBytes, protocolVersion } = server;
  const bounds: CallBounds = { server: name, timeoutMs, maxResultBytes };
  const line = lineTo(connecting, deps);
  const isProcess = !(line instanceof HttpTransport);
  const connectMs = deps.connectMs ?? (isProcess ? processStartMs : connectTimeoutMs);
  // A process may ignore the unknown probe request, so the probe has a shorter timeout.
  const probeMs = isProcess ? Math.min(processProbeMs, connectMs) : connectMs;
  const options = {
    bounds,
    version: deps.version,
    isLegacy,
    protocolVersion,
    onNotification,
    connectMs,
    probeMs,
    signal,
  };
  try {
    return await Connection.open(line, options);
  } catch (error) {
    // Some processes exit on the unknown probe request. Connect again, with an earlier protocol revision.
    if (isLegacy || protocolVersion || !line.endedItself) throw error;
    return await Connection.open(lineTo(connecting, deps), { ...options, isLegacy: true });
  }
}

function lineTo({ server, credentials, output, onProcess }: Connecting, deps: ConnectingDeps): Line {
  const { name, place, maxResultBytes, maxConcurrency } = server;
  if (place.kind === "http") {
    const { url } = place;
    const most = maxConcurrency + besideCalls;
    const way = new Http1Client(originOf(new URL(url)), { maxConnections: most, maxWaiting: most });
    return new HttpTransport({ server: name, url, way, credentials, maxResultBytes });
  }
  if (place.kind === "node") return lineAtNode(server, place, credentials, deps);
  const { command, env, directory } = place;
  onProcess(1);
  const { dataDir } = deps;
  const process = { dataDir, room: join(dataDir, processRoom), environment: deps.environment, stopMs: deps.stopMs };
  const bounded = { maxLineBytes: maxResultBytes, output, onGone: () => onProcess(-1) };
  return new ProcessTransport({ server: name, command, env, directory, ...process, ...bounded });
}

function lineAtNode(
  { name, maxResultBytes }: McpServer,
  place: ServerLocation & { kind: "node" },
  credentials: Credentials,
  { nodes }: ConnectingDeps,
): Line {
  const node = nodes.find(place.nodeId);
  if (!node?.isThere) {
    const what = `The node ${node?.name ?? place.nodeId} of the MCP server "${name}" is not connected, or drained.`;
    throw new GatewayError("service_unavailable", `${what} headrace nodes shows which; retry once it is online.`, {
      retryAfterSeconds: 2,
    });
  }
  const offered = node.offers.find((one) => one.name === place.server);
  if (!offered) {
    const what = `The node ${node.name} offers no MCP server "${place.server}".`;
    throw new GatewayError("service_unavailable", `${what} Its headrace.yaml has to say share: true of it.`);
  }
  const at = { nodes, nodeId: node.id, server: place.server };
  if (offered.kind === "command") return new NodeProcessTransport({ name, at, maxLineBytes: maxResultBytes });
  return new HttpTransport({ server: name, url: urlAtNode, way: new NodeRoute(at), credentials, maxResultBytes });
}
