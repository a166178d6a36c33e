// Whether a request comes from this machine: what needs no key, and keys for development, are for no other.
import { isIP } from "node:net";
import type { IncomingRequest } from "../../http1/message.ts";
import { addressOf } from "./client-address.ts";

type Origin = Pick<IncomingRequest, "headers" | "peer" | "target">;

/** What proxies and tunnels add, `X-Forwarded-*` apart. */
const proxyHeaders = new Set(["forwarded", "via", "x-real-ip", "cf-connecting-ip", "true-client-ip"]);

export class Locality {
  readonly #allowedHosts: ReadonlySet<string>;

  /** Names, without port, that count as this machine's own. */
  constructor(allowedHosts: readonly string[]) {
    this.#allowedHosts = new Set(allowedHosts.map((host) => normal(host.includes(":") ? `[${host}]` : host)));
  }

  /**
   * For what is granted to a machine without a key: both the peer and the Host are this machine and no proxy passed the
   * request on. A tunnel or proxy on the same host must not make the internet local, nor may a web page that rebinds its
   * name to 127.0.0.1.
   */
  isLocal(req: Origin): boolean {
    return passedOn(req) === undefined && hostsOf(req).every((host) => this.#isOwn(host));
  }

  /**
   * Why a genuine development key does not count where the request comes from; undefined where it does. A page that rebinds
   * its name has no key. So programs may use other names of this machine, such as those that containers have for it, but
   * not public names, which a tunnel may have, and pages of elsewhere may not.
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

/** How a request shows that it comes from another machine; undefined where nothing does. */
function passedOn({ peer, headers }: Origin): string | undefined {
  if (!isLoopback(addressOf(peer) ?? peer)) return "the request comes from another one";
  for (const name of headers.keys()) {
    if (proxyHeaders.has(name) || name.startsWith("x-forwarded-")) {
      return `a proxy or tunnel passed the request on, as its header ${name} shows`;
    }
  }
  return undefined;
}

/** The Host and, of a target in absolute form (RFC 9112, 3.2.2), the host that it names as well; "" for none. */
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

/** Names that no public DNS has: single labels and domains for special use; addresses that no public network routes. */
function isOfPrivateNetwork(name: string): boolean {
  const bare = name.replace(/\.$/, "");
  // A number would be read as an address by some.
  if (/^(?:[a-z][a-z0-9_-]*)?$/.test(bare)) return true;
  if (/^[a-z0-9_.-]+\.(?:internal|local|localhost|lan|test|home\.arpa)$/.test(bare)) return true;
  if (isIP(bare) === 4) return /^(?:10|127|192\.168|169\.254|172\.(?:1[6-9]|2\d|3[01]))\.|^0\.0\.0\.0$/.test(bare);
  return /^\[(?:f[cd]|fe[89ab]|::1?\])[\da-f:.]*\]?$/.test(bare);
}
