// Connects to servers of tools; loaded with the first of them, as the protocol's client comes along.

import type { ToolServer } from "../../domain/tools/tool-server.ts";
import type { Output } from "../../processes/output.ts";
import type { CallBounds } from "./call.ts";
import { Connection } from "./connection.ts";
import { type Credentials, HttpLine } from "./http-line.ts";
import type { Line } from "./line.ts";
import { ProcessLine } from "./process-line.ts";

export { SessionLost } from "./line.ts";

/** Whatever a connection needs that all of them share. */
export interface ConnectingDeps {
  /** Version of the gateway, which servers are told. */
  readonly version: string;
  readonly dataDir: string;
  /** The gateway's own: what of it every program needs goes along to processes. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Certificates (PEM) to trust instead of the well-known ones; of tests. */
  readonly ca?: string | undefined;
  /** Between asking a process to end and ending it; a test has less patience. */
  readonly stopMs?: number | undefined;
}

export interface Connecting {
  readonly server: ToolServer;
  readonly credentials: Credentials;
  readonly isLegacy: boolean;
  readonly output: Output;
  readonly onNews: (method: string, params: Readonly<Record<string, unknown>>) => void;
  /** A process of it is there, and later no more. */
  readonly onProcess: (change: 1 | -1) => void;
}

/** Rejects with a GatewayError. */
export async function connect(connecting: Connecting, deps: ConnectingDeps): Promise<Connection> {
  const { server, isLegacy, onNews } = connecting;
  const { name, timeoutMs, maxResultBytes } = server;
  const bounds: CallBounds = { server: name, timeoutMs, maxResultBytes };
  const options = { bounds, version: deps.version, isLegacy, onNews };
  const line = lineTo(connecting, deps);
  try {
    return await Connection.open(line, options);
  } catch (error) {
    // Some end at a question that they do not know, and such a question is what tells the revisions apart.
    if (server.place.kind !== "command" || isLegacy) throw error;
    return await Connection.open(lineTo(connecting, deps), { ...options, isLegacy: true });
  }
}

function lineTo({ server, credentials, output, onProcess }: Connecting, deps: ConnectingDeps): Line {
  const { name, place, maxResultBytes, maxConcurrency } = server;
  if (place.kind === "http") {
    return new HttpLine({ server: name, url: place.url, credentials, maxResultBytes, maxConcurrency, ca: deps.ca });
  }
  if (place.kind === "node") throw new Error("Servers at nodes are reached over their node.");
  const { command, env, directory } = place;
  onProcess(1);
  const process = { dataDir: deps.dataDir, environment: deps.environment, stopMs: deps.stopMs };
  const bounded = { maxLineBytes: maxResultBytes, output, onGone: () => onProcess(-1) };
  return new ProcessLine({ server: name, command, env, directory, ...process, ...bounded });
}
