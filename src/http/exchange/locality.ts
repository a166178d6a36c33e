// Decides whether a request comes from this machine. Development keys work only there, and some endpoints need no key.
import { isIP } from "node:net";
import type { IncomingRequest } from "../../http1/message.ts";
import { addressOf } from "./client-address.ts";

type Origin = Pick<IncomingRequest, "headers" | "peer" | "target">;

/** Headers of proxies and tunnels, besides `X-Forwarded-*`. */
const proxyHeaders = new Set(["forwarded", "via", "x-real-ip", "cf-connecting-ip", "true-client-ip"]);

export class Locality {
  readonly #allowedHosts: ReadonlySet<string>;

  /** `allowedHosts` are further host names of this machine, without port. */
  constructor(allowedHosts: readonly string[]) {
    this.#allowedHosts = new Set(allowedHosts.map((host) => normal(host.includes(":") ? `[${host}]` : host)));
  }

  /**
   * Reports whether the request comes from this machine: by its peer address and Host, and without a proxy. So
   * neither a tunnel nor DNS rebinding by a web page makes a request local.
   */
  isLocal(req: Origin): boolean {
    return passedOn(req) === undefined && hostsOf(req).every((host) => this.#isOwn(host));
  }

  /**
   * Returns why a development key is refused for this request, or undefined. Allows private host names too, such
   * as those of containers. Refuses public names, which a tunnel may have, and pages of other sites.
   */
  whyNotLocal(req: Origin): string | undefined {
    const outside = passedOn(req);
    if (outside !== undefined) return `it is a development key, which works on this machine alone, and ${outside}`;
    const host = hostsOf(req).find((name) => !this.#isOwn(name));
    if (host === undefined || (isOfPrivateNetwork(host) && !this.#isOfForeignPage(req))) return undefined;
    const shown = JSON.stringify(host.slice(0, 100));
    return `it is a development key, and the request is for the host ${shown}, which is not known to be this machine; use 127.0.0.1, or name the host in allowed_hosts`;
  }

  #isOwn(host: string): boolean {
    return isLoopbackHost(host) || this.#allowedHosts.has(host);
  }

  #isOfForeignPage({ headers }: Origin): boolean {
    const origin = headers.get("origin");
    if (origin === null) return (headers.get("sec-fetch-site") ?? "none") !== "none";
    const host = URL.parse(origin)?.hostname ?? "";
    return !this.#isOwn(host);
  }
}

/** Returns why the request is not directly from this machine, or undefined. */
function passedOn({ peer, headers }: Origin): string | undefined {
  if (!isLoopback(addressOf(peer) ?? peer)) return "the request comes from another one";
  for (const name of headers.keys()) {
    if (proxyHeaders.has(name) || name.startsWith("x-forwarded-")) {
      return `a proxy or tunnel passed the request on, as its header ${name} shows`;
    }
  }
  return undefined;
}

/**
 * Returns the host in the Host header, and that of a target in absolute form (RFC 9112, 3.2.2). Missing hosts
 * are "".
 */
function hostsOf({ headers, target }: Origin): string[] {
  const hosts = [normal(headers.get("host") ?? "")];
  if (!target.startsWith("/")) hosts.push(normal(/^https?:\/\/([^/?#]*)/i.exec(target)?.[1] ?? ""));
  return hosts;
}

function normal(host: string): string {
  return host.replace(/:\d+$/, "").toLowerCase();
}

function isLoopbackHost(name: string): boolean {
  return name === "localhost" || name === "[::1]" || (isIP(name) === 4 && isLoopback(name));
}

function isLoopback(address: string): boolean {
  return address === "::1" || /^127\./.test(address);
}

/** Reports whether a host is private: a single label, a special-use domain, or an address of a private network. */
function isOfPrivateNetwork(name: string): boolean {
  const bare = name.replace(/\.$/, "");
  // The label must begin with a letter, because some programs read a number as an address.
  if (/^(?:[a-z][a-z0-9_-]*)?$/.test(bare)) return true;
  if (/^[a-z0-9_.-]+\.(?:internal|local|localhost|lan|test|home\.arpa)$/.test(bare)) return true;
  if (isIP(bare) === 4) return /^(?:10|127|192\.168|169\.254|172\.(?:1[6-9]|2\d|3[01]))\.|^0\.0\.0\.0$/.test(bare);
  return /^\[(?:f[cd]|fe[89ab]|::1?\])[\da-f:.]*\]?$/.test(bare);
}
