// Connects to an address step by step, to find the step that fails: name, connection or TLS.
import { lookup } from "node:dns/promises";
import { connect as connectTcp, isIP, type Socket } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";

export type AddressProbe =
  | { at: "there"; connectMs: number; certificate: Certificate | undefined }
  | { at: "name" | "connection" | "tls"; reason: string };

export interface Certificate {
  /** The end of the certificate's validity in Unix milliseconds. Undefined if unreadable. */
  endsMs: number | undefined;
  /** The reason why clients will refuse the certificate. */
  fault: string | undefined;
}

/** Connects to the address and returns the step that failed, if any. Rejects only with the reason of `signal`. */
export async function probeAddress(address: string, signal: AbortSignal): Promise<AddressProbe> {
  const url = new URL(address);
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const secure = url.protocol === "https:";
  const port = url.port === "" ? (secure ? 443 : 80) : Number(url.port);
  if (isIP(host) === 0) {
    try {
      await lookup(host);
    } catch (error) {
      return { at: "name", reason: codeOf(error) };
    }
  }
  signal.throwIfAborted();
  const startedMs = performance.now();
  let socket: Socket;
  try {
    socket = await opened(connectTcp({ host, port }), "connect", signal);
  } catch (error) {
    signal.throwIfAborted();
    return { at: "connection", reason: codeOf(error) };
  }
  const connectMs = performance.now() - startedMs;
  if (!secure) {
    socket.destroy();
    return { at: "there", connectMs, certificate: undefined };
  }
  // Any certificate is accepted here, to examine it. Other code talks only to verified servers.
  const tls = connectTls({ socket, ...(isIP(host) === 0 ? { servername: host } : {}), rejectUnauthorized: false });
  try {
    await opened(tls, "secureConnect", signal);
    return { at: "there", connectMs, certificate: certificateOf(tls, host) };
  } catch (error) {
    signal.throwIfAborted();
    return { at: "tls", reason: codeOf(error) };
  } finally {
    tls.destroy();
    socket.destroy();
  }
}

function opened<Kind extends Socket>(socket: Kind, event: string, signal: AbortSignal): Promise<Kind> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      socket.destroy();
      reject(signal.reason);
    };
    if (signal.aborted) return stop();
    signal.addEventListener("abort", stop, { once: true });
    socket.once(event, () => {
      signal.removeEventListener("abort", stop);
      resolve(socket);
    });
    // The listener stays, because errors may also come later.
    socket.on("error", (error) => {
      signal.removeEventListener("abort", stop);
      reject(error);
    });
  });
}

function certificateOf(tls: TLSSocket, host: string): Certificate {
  const { valid_to: ends, subjectaltname: names } = tls.getPeerCertificate();
  const endsMs = Date.parse(ends);
  const { authorizationError: fault } = tls;
  return {
    endsMs: Number.isNaN(endsMs) ? undefined : endsMs,
    fault: fault
      ? `${codeOf(fault)}${names ? `, it is for ${names.replaceAll("DNS:", "")}` : ""} (asked for ${host})`
      : undefined,
  };
}

export function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return "code" in error && typeof error.code === "string" ? error.code : error.message;
}

/** Returns the finding for a step that failed. */
export function addressFault(probe: AddressProbe, host: string): { found: string; remedy: string } | undefined {
  if (probe.at === "there") {
    const fault = probe.certificate?.fault;
    if (fault === undefined) return undefined;
    return {
      found: `its certificate is refused: ${fault}`,
      remedy: `Renew it at ${host}, or let this machine trust who issued it (NODE_EXTRA_CA_CERTS).`,
    };
  }
  const { at, reason } = probe;
  if (at === "name")
    return {
      found: `the name ${host} cannot be resolved (${reason})`,
      remedy: "Correct the name, or the DNS of this machine: getent hosts.",
    };
  if (at === "connection")
    return {
      found: `no connection to ${host} (${reason})`,
      remedy: "See that it runs, listens there, and that no firewall is in between.",
    };
  return {
    found: `no TLS connection to ${host} (${reason})`,
    remedy: "Does it speak TLS there? Otherwise the address begins with http://.",
  };
}
