// Decides whether a request comes from this machine, which allows some things without a key and makes development keys
// valid.
import { isIP } from "node:net";
import type { IncomingRequest } from "../../http1/message.ts";
import { addressOf } from "./client-address.ts";

type Origin = Pick<IncomingRequest, "headers" | "peer" | "target">;

/** Headers that proxies and tunnels add, besides `X-Forwarded-*`. */
const proxyHeaders = new Set(["forwarded", "via", "x-real-ip", "cf-connecting-ip", "true-client-ip"]);

export class Locality {
  readonly #allowedHosts: ReadonlySet<string>;

  /** Takes host names, without port, that count as this machine's own. */
  constructor(allowedHosts: readonly string[]) {
    this.#allowedHosts = new Set(allowedHosts.map((host) => normal(host.includes(":") ? `[${host}]` : host)));
  }

  /**
   * Reports whether a request may do what this machine may without a key: peer and Host are both this machine, and no
   * proxy has forwarded the request. A tunnel or proxy on the same host must not make the internet local, nor may a web
   * page that rebinds its name to 127.0.0.1.
   */
  isLocal(req: Origin): boolean {
    return passedOn(req) === undefined && hostsOf(req).every((host) => this.#isOwn(host));
  }

  /**
   * Returns why a genuine development key is not accepted from the request's origin; undefined if it is. A page that
   * rebinds its name has no key, so programs may use other names of this machine, such as those within containers.
   * Public names are refused, because a tunnel may have one, and so are pages of other sites.
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

/** Returns the sign that a request comes from another machine, or undefined. */
function passedOn({ peer, headers }: Origin): string | undefined {
  if (!isLoopback(addressOf(peer) ?? peer)) return "the request comes from another one";
  for (const name of headers.keys()) {
    if (proxyHeaders.has(name) || name.startsWith("x-forwarded-")) {
      return `a proxy or tunnel passed the request on, as its header ${name} shows`;
    }
  }
  return undefined;
}

/** Returns the Host and, for a target in absolute form (RFC 9112, 3.2.2), the target's host as well; "" for none. */
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

/**
 * Reports whether a name is not in the public DNS, as single labels and special-use domains, or an address that public
 * networks do not route.
 */
function isOfPrivateNetwork(name: string): boolean {
  const bare = name.replace(/\.$/, "");
  // A purely numeric name is excluded, because some programs would read it as an address.
  if (/^(?:[a-z][a-z0-9_-]*)?$/.test(bare)) return true;
  if (/^[a-z0-9_.-]+\.(?:internal|local|localhost|lan|test|home\.arpa)$/.test(bare)) return true;
  if (isIP(bare) === 4) return /^(?:10|127|192\.168|169\.254|172\.(?:1[6-9]|2\d|3[01]))\.|^0\.0\.0\.0$/.test(bare);
  return /^\[(?:f[cd]|fe[89ab]|::1?\])[\da-f:.]*\]?$/.test(bare);
}
