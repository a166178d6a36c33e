// Connects to servers of tools; loaded with the first of them, as the protocol's client comes along.
import { GatewayError } from "../../base/errors.ts";

import type { CallBounds } from "./call.ts";
import type { Connecting, ConnectingDeps } from "./connecting.ts";
import { Connection, connectTimeoutMs } from "./connection.ts";
import { HttpLine } from "./http-line.ts";
import type { Line } from "./line.ts";
import { ProcessLine } from "./process-line.ts";

export { SessionLost } from "./line.ts";

/** A program may load its parts before it starts. */
const processStartMs = 60_000;
const processProbeMs = 5_000;

/** Rejects with a GatewayError. */
export async function connect(connecting: Connecting, deps: ConnectingDeps): Promise<Connection> {
  const { server, isLegacy, onNews, signal } = connecting;
  const { name, timeoutMs, maxResultBytes } = server;
  const bounds: CallBounds = { server: name, timeoutMs, maxResultBytes };
  const isProcess = server.place.kind === "command";
  const connectMs = deps.connectMs ?? (isProcess ? processStartMs : connectTimeoutMs);
  // Some processes say nothing to a question that they do not know.
  const probeMs = isProcess ? Math.min(processProbeMs, connectMs) : connectMs;
  const options = { bounds, version: deps.version, isLegacy, onNews, connectMs, probeMs, signal };
  const line = lineTo(connecting, deps);
  try {
    return await Connection.open(line, options);
  } catch (error) {
    // Some end at a question that they do not know, and such a question is what tells the revisions apart.
    if (isLegacy || !(line instanceof ProcessLine && line.endedItself)) throw error;
    return await Connection.open(lineTo(connecting, deps), { ...options, isLegacy: true });
  }
}

function lineTo({ server, credentials, output, onProcess }: Connecting, deps: ConnectingDeps): Line {
  const { name, place, maxResultBytes, maxConcurrency } = server;
  if (place.kind === "http") {
    return new HttpLine({ server: name, url: place.url, credentials, maxResultBytes, maxConcurrency });
  }
  if (place.kind === "node")
    throw new GatewayError("service_unavailable", `The node of the server of tools "${name}" is not connected.`);
  const { command, env, directory } = place;
  onProcess(1);
  const process = { dataDir: deps.dataDir, environment: deps.environment, stopMs: deps.stopMs };
  const bounded = { maxLineBytes: maxResultBytes, output, onGone: () => onProcess(-1) };
  return new ProcessLine({ server: name, command, env, directory, ...process, ...bounded });
}
