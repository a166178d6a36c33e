// Checks how clients reach the server: the public address, its certificate, and the trusted proxies.
import { isIP } from "node:net";
import type { Config } from "../config/config.ts";
import { addressFault, type Certificate, probeAddress } from "./address-probe.ts";
import { askedServer, fetchJson, type ServerAnswer } from "./ask-server.ts";
import { type Check, type Finding, failure, ok, skipped, warning } from "./finding.ts";
import type { Subject } from "./subject.ts";

const soonMs = 14 * 86_400_000;
const dayMs = 86_400_000;

export function publicUrlChecks(subject: Subject): Check[] {
  const { config } = subject;
  const url = config?.publicUrl;
  if (!config || url === undefined) return [];
  return [
    { name: "public URL", run: (signal) => publicUrl(subject, url, signal) },
    { name: "trusted proxies", run: () => trustedProxies(config, url) },
  ];
}

async function publicUrl({ server, localUrl }: Subject, url: string, signal: AbortSignal): Promise<Finding[]> {
  const name = "public URL";
  const { host, protocol } = new URL(url);
  const probe = await probeAddress(url, signal);
  const fault = addressFault(probe, host);
  if (fault) return [failure(name, `${url}: ${fault.found}`, fault.remedy)];
  const certificate = probe.at === "there" ? certificateFindings("certificate", probe.certificate) : [];
  if (!server) return [skipped(name, `${url} can be connected to; no server runs to be reached by it`), ...certificate];
  const [answer, own] = await Promise.all([askedServer(url, signal), ownKeys(localUrl, signal)]);
  return [judge(url, answer, own, protocol), ...certificate];
}

function judge(url: string, answer: ServerAnswer, own: string | undefined, protocol: string): Finding {
  const name = "public URL";
  if (answer.kind === "silent") {
    return failure(
      name,
      `${url}/healthz failed: ${answer.reason}`,
      "See the log of the proxy in front, and that it passes requests on to this server.",
    );
  }
  if (answer.kind === "other") {
    const remedy =
      answer.status >= 500 && protocol === "https:"
        ? "The proxy in front does not reach the server: correct where it sends requests (proxy_pass and the like)."
        : "Something else answers there: correct public_url, or where the proxy in front sends requests.";
    return failure(name, `${url}/healthz answered ${answer.status}, and not as a Headrace`, remedy);
  }
  if (own !== undefined && answer.keys !== undefined && own !== answer.keys) {
    return failure(
      name,
      `${url} leads to another Headrace than this one`,
      "Correct public_url, or where the proxy in front sends requests.",
    );
  }
  return ok(name, `${url} leads to this server, Headrace ${answer.version ?? "of unknown version"}`);
}

/** Returns the server's published signing keys, which identify the installation. */
async function ownKeys(localUrl: string | undefined, signal: AbortSignal): Promise<string | undefined> {
  if (localUrl === undefined) return undefined;
  const jwks = await fetchJson(`${localUrl}/.well-known/jwks.json`, signal).catch(() => undefined);
  return jwks?.status === 200 ? JSON.stringify(jwks.json) : undefined;
}

export function certificateFindings(name: string, certificate: Certificate | undefined): Finding[] {
  if (certificate?.endsMs === undefined) return [];
  const leftMs = certificate.endsMs - Date.now();
  const days = Math.floor(leftMs / dayMs);
  if (leftMs < 0) return [failure(name, "its certificate has ended", "Renew it.")];
  if (leftMs < soonMs)
    return [warning(name, `its certificate ends in ${days} days`, "Renew it, or see why that is not done by itself.")];
  return name === "certificate" ? [ok(name, `valid for ${days} days`)] : [];
}

/**
 * Checks that proxies are trusted. Headrace has no TLS, so an https address means that a proxy is in front. Without
 * trust, all requests would seem to come from the proxy.
 */
function trustedProxies({ trustedProxies: ranges, host }: Config, url: string): Finding | undefined {
  const name = "trusted proxies";
  if (ranges.length > 0) return ok(name, ranges.join(", "));
  if (!url.startsWith("https:")) return undefined;
  const isLocal = host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
  const example = isLocal ? "127.0.0.1" : "the address of the proxy";
  return warning(
    name,
    "none, and https means that a proxy is in front: all clients seem to come from it",
    `Set trusted_proxies to ${example}: allowed addresses of keys and limits on sign-ins go by the client's own.`,
  );
}
