// Checks the port and the server behind it: whether this is our server, whether it is ready, and what it lacks.
import { existsSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };
import { StartError } from "../base/errors.ts";
import type { NodeIdentity } from "../domain/models/node-identity.ts";
import { readNodeIdentity, readNodeReport } from "../storage/files/node-files.ts";
import { codeOf } from "./address-probe.ts";
import { askedServer, fetchJson, fieldOf } from "./ask-server.ts";
import { withoutStop } from "./examine.ts";
import { type Check, type Finding, type Findings, failure, ok, skipped, warning } from "./finding.ts";
import type { Subject } from "./subject.ts";

export function serverChecks(subject: Subject): Check[] {
  const { config, dataDir, namedUrl } = subject;
  return [
    ...(namedUrl === undefined
      ? []
      : [{ name: "named server", run: (signal: AbortSignal) => named(subject, namedUrl, signal) }]),
    { name: "port", run: (signal) => port(subject, signal) },
    ...(config && dataDir !== undefined
      ? [{ name: "node", run: (signal: AbortSignal) => node(subject, dataDir, signal) }]
      : []),
  ];
}

/**
 * Checks the server that HEADRACE_BASE_URL names. If it is not the examined server, only its answers can be checked.
 */
async function named({ localUrl, config }: Subject, url: string, signal: AbortSignal): Promise<Findings> {
  const name = "named server";
  const isThisOne = [localUrl, config?.publicUrl].some((own) => own !== undefined && isSameServer(own, url));
  if (isThisOne) return ok(name, `${url}, which HEADRACE_BASE_URL or --base-url names, is the one that is looked at`);
  const answer = await askedServer(url, signal);
  if (answer.kind === "silent") {
    const remedy = "Correct HEADRACE_BASE_URL or --base-url, or start that server.";
    return failure(name, `${url} does not answer (${answer.reason})`, remedy);
  }
  if (answer.kind === "other") {
    const remedy = "Correct HEADRACE_BASE_URL or --base-url: it is the server's address with /v1 at its end.";
    return failure(name, `${url} answers ${answer.status}, and not as a Headrace`, remedy);
  }
  const where = `${url}, Headrace ${answer.version ?? "of unknown version"}: of that one only this is seen from here`;
  return [ok(name, where), { ...(await readiness(url, signal)), name: "readiness there" }];
}

function isSameServer(one: string, other: string): boolean {
  const [a, b] = [new URL(one), new URL(other)];
  const isLoopback = ({ hostname }: URL) => /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname);
  return a.origin === b.origin || (isLoopback(a) && isLoopback(b) && a.port === b.port && a.protocol === b.protocol);
}

async function port(
  { config, server, localUrl, namedUrl, ...subject }: Subject,
  signal: AbortSignal,
): Promise<Findings> {
  const running = server ? runningAs(server.pid) : undefined;
  if (localUrl === undefined) {
    if (running === undefined) return skipped("port", "any free one, as port is 0; no server runs");
    return warning("server", `${running}, at a port that is not known here`, "See the line `listening` of its log.");
  }
  const address = new URL(localUrl).host;
  const fault = config && running === undefined ? await listenFault(config.host, config.port) : "EADDRINUSE";
  // If no server listens on the port, there is no server to ask.
  if (fault !== "EADDRINUSE") return notListened(fault, address, namedUrl === undefined && wasStarted(subject.dataDir));
  const answer = await askedServer(localUrl, signal);
  if (answer.kind === "silent") return silent(answer.reason, running, config !== undefined, address);
  if (answer.kind === "other") return failure("port", `another program answers at ${address}`, otherPort);
  if (running === undefined && namedUrl !== undefined) {
    return skipped(
      "port",
      `a Headrace answers at ${address}; it does not use this data directory, and ${namedUrl} is named`,
    );
  }
  if (running === undefined) {
    return failure(
      "port",
      `a Headrace answers at ${address}, and it does not use this data directory`,
      "Name the data directory that it uses (--data-dir), or give one of the two another port.",
    );
  }
  return [version(answer.version, `${running} at ${address}`), await readiness(localUrl, signal)];
}

const otherPort = "Stop that program (ss -ltnp shows which it is), or choose another port: --port or HEADRACE_PORT.";

function silent(reason: string, running: string | undefined, isTaken: boolean, address: string): Finding {
  if (running === undefined) {
    if (!isTaken) return skipped("server", "none runs on this data directory");
    return failure("port", `another program holds ${address}, and does not speak HTTP`, otherPort);
  }
  return failure(
    "server",
    `${running}, but does not answer at ${address} (${reason})`,
    "Is it still starting, or started with another --host or --port? Otherwise see its log, and restart it.",
  );
}

function runningAs(pid: number | undefined): string {
  return pid === undefined ? "it runs" : `it runs as process ${pid}`;
}

function version(theirs: string | undefined, where: string): Finding {
  const { version: own } = packageJson;
  if (theirs === own) return ok("server", `${where}, Headrace ${theirs}`);
  return warning(
    "server",
    `${where}, Headrace ${theirs ?? "of unknown version"}; this command is ${own}`,
    "Restart the server, where it was meant to be updated.",
  );
}

async function readiness(localUrl: string, signal: AbortSignal): Promise<Finding> {
  const { json } = await fetchJson(`${localUrl}/readyz`, signal);
  const status = fieldOf(json, "status");
  const checks = Object.entries((fieldOf(json, "checks") as Record<string, unknown> | undefined) ?? {});
  const wrong = checks.filter(([, state]) => state !== "ok").map(([name, state]) => `${name} ${String(state)}`);
  if (status === "ready" && wrong.length === 0) return ok("readiness", "ready: all of its checks are ok");
  const found = `${status === "not_ready" ? "not ready" : String(status)}: ${wrong.join(", ")}`;
  const remedy = "docs/operating.md explains each check. The findings below say why it fails.";
  return status === "not_ready" ? failure("readiness", found, remedy) : warning("readiness", found, remedy);
}

/** Reports whether a server has run on the data directory before. */
function wasStarted(dataDir: string | undefined): boolean {
  return dataDir !== undefined && existsSync(join(dataDir, "credentials.json"));
}

function notListened(fault: string | undefined, address: string, isMissed: boolean): Finding {
  if (fault === undefined) {
    const remedy = "Start it: headrace serve, or systemctl start headrace; its log says why it ended.";
    const found = `none runs; ${address} is free`;
    return isMissed ? failure("server", found, remedy) : warning("server", found, remedy);
  }
  const remedies: Record<string, string> = {
    EACCES: "Ports below 1024 are for root: take another, and let the proxy in front have that one.",
    EADDRNOTAVAIL: "This machine has no such address: correct --host or HEADRACE_HOST (ip addr shows them).",
  };
  return failure("port", `nothing can listen at ${address} (${fault})`, remedies[fault] ?? "Correct --host or --port.");
}

/** Returns why a server could not listen on this host and port; undefined if it could. */
function listenFault(host: string, number: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", (error) => resolve(codeOf(error)));
    probe.listen({ host, port: number }, () => probe.close(() => resolve(undefined)));
  });
}

async function node({ server }: Subject, dataDir: string, signal: AbortSignal): Promise<Findings> {
  let identity: NodeIdentity | undefined;
  try {
    identity = readNodeIdentity(dataDir);
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    return failure(
      "node",
      withoutStop(error.message),
      "Delete the file and join again: headrace node join … --token …",
    );
  }
  if (!identity) return undefined;
  return [await gateway(identity, signal), link(identity, dataDir, server !== undefined)];
}

async function gateway({ gateway_url: url, proxy }: NodeIdentity, signal: AbortSignal): Promise<Finding> {
  try {
    const { status, json } = await fetchJson(`${url}/healthz`, signal, proxy);
    if (status === 200 && fieldOf(json, "status") === "ok") return ok("gateway", `${url} answers`);
    return failure(
      "gateway",
      `${url}/healthz answered ${status}, and not as a Headrace`,
      "See with its operator whether the address has changed.",
    );
  } catch (error) {
    signal.throwIfAborted();
    const way = proxy === undefined ? "" : ", by way of the proxy that it was joined with";
    return failure(
      "gateway",
      `${url} does not answer${way} (${codeOf(error)})`,
      "See that it runs, and that this machine may connect to it.",
    );
  }
}

function link(identity: NodeIdentity, dataDir: string, isRunning: boolean): Finding {
  const name = `node ${identity.name}`;
  if (!isRunning) return skipped(name, "no server runs that could connect");
  const report = readNodeReport(dataDir);
  if (report?.node_id !== identity.node_id)
    return warning(name, "the server has not said yet how its connection does", "Look again: headrace node status");
  if (report.status === "connected") return ok(name, "connected");
  const found = `${report.status}: ${withoutStop(report.message)}`;
  if (report.status === "refused")
    return failure(name, found, "Ask the operator of the gateway; to join anew: headrace node leave, then join.");
  return warning(name, found, "It goes on trying. See the gateway above, and headrace node status.");
}
