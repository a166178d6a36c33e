// Decides whether a request comes from this machine. Development keys work only on this machine, and some endpoints
// need no key there.
import { isIP } from "node:net";
import type { IncomingRequest } from "../../http1/message.ts";
import { addressOf } from "./client-address.ts";

type Origin = Pick<IncomingRequest, "headers" | "peer" | "target">;

/** Headers of proxies and tunnels, besides `X-Forwarded-*`. */
const proxyHeaders = new Set(["forwarded", "via", "x-real-ip", "cf-connecting-ip", "true-client-ip"]);

export class Locality {
  readonly #allowedHosts: ReadonlySet<string>;

  /** `allowedHosts` are additional host names of this machine, without ports. */
  constructor(allowedHosts: readonly string[]) {
    this.#allowedHosts = new Set(allowedHosts.map((host) => normal(host.includes(":") ? `[${host}]` : host)));
  }

  /**
   * Reports whether the request comes from this machine: from a loopback address, for a host name of this machine, and
   * without a proxy. So neither a tunnel nor a web page with DNS rebinding can make a request local.
   */
  isLocal(req: Origin): boolean {
    return passedOn(req) === undefined && hostsOf(req).every((host) => this.#isOwn(host));
  }

  /**
   * Returns why a development key is refused for this request, or undefined if it is allowed. Private host names, such
   * as those of containers, are allowed too. Public host names, which a tunnel may have, and pages of other sites are
   * refused.
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

/** Returns why the request does not come directly from this machine, or undefined if it does. */
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
 * Returns the host of the Host header, and the host of a target in absolute form (RFC 9112, 3.2.2). A missing host is
 * "".
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
  // The first character must be a letter, because some programs read a number as an address.
  if (/^(?:[a-z][a-z0-9_-]*)?$/.test(bare)) return true;
  if (/^[a-z0-9_.-]+\.(?:internal|local|localhost|lan|test|home\.arpa)$/.test(bare)) return true;
  if (isIP(bare) === 4) return /^(?:10|127|192\.168|169\.254|172\.(?:1[6-9]|2\d|3[01]))\.|^0\.0\.0\.0$/.test(bare);
  return /^\[(?:f[cd]|fe[89ab]|::1?\])[\da-f:.]*\]?$/.test(bare);
}
