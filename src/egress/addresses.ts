// Resolves the host of an egress URL and checks each address, because a URL that a user chose must not reach a private
// network.
import { type IpRange, parseRange, rangesContain } from "../base/text/ip-range.ts";
import { isLoopbackAddress, isPublicAddress } from "./public-address.ts";

/** Returns all addresses of a host name. */
export type Resolve = (name: string) => Promise<readonly string[]>;

export interface EgressRules {
  /** True if loopback addresses are permitted, also without TLS. True in development, or by configuration. */
  allowLoopback: boolean;
  /** Origins that an operator configured, which may have private addresses. Default: none. */
  named?: readonly string[];
  /** Hosts and ranges of private networks that an operator permitted, also without TLS. Default: none. */
  networks?: PermittedNetworks;
}

/** Part of the egress rules: host names in lower case, and ranges. */
export interface PermittedNetworks {
  hosts: readonly string[];
  ranges: readonly IpRange[];
}

/** Separates the entries of a setting into host names and ranges. */
export function permittedNetworks(entries: readonly string[]): PermittedNetworks {
  const ranges = entries.flatMap((entry) => parseRange(entry) ?? []);
  return { hosts: entries.filter((entry) => !parseRange(entry)).map((host) => host.toLowerCase()), ranges };
}

/** Error for a refused URL. The message is a fixed code, so that the resolved address is not disclosed. */
export class EgressRefused extends Error {
  override readonly name = "OutwardRefused";
}

const resolvePatienceMs = 5_000;

/**
 * Returns the checked addresses of the URL's host. Connect to one of them and do not resolve the name again. Throws
 * EgressRefused if any address is not public, because the DNS name's owner could choose which one is used.
 */
export async function addressesOf(url: URL, rules: EgressRules, resolve: Resolve): Promise<string[]> {
  const { allowLoopback, named = [], networks } = rules;
  const host = hostOf(url);
  const found = parseRange(host) ? [host] : await resolve(host);
  if (found.length === 0) throw new EgressRefused("name_not_found");
  const isOurs = (address: string) => networks !== undefined && rangesContain(networks.ranges, address);
  const isNamed = named.includes(url.origin) || networks?.hosts.includes(host) === true || found.every(isOurs);
  const isFine = (address: string) =>
    isNamed || isPublicAddress(address) || (allowLoopback && isLoopbackAddress(address));
  if (!found.every(isFine)) throw new EgressRefused("address_not_public");
  if (url.protocol !== "https:" && !isNamed && !(allowLoopback && found.every(isLoopbackAddress))) {
    throw new EgressRefused("not_https");
  }
  // IPv4 comes first, because a machine without IPv6 connectivity also gets IPv6 addresses from DNS.
  return [...found].sort((a, b) => Number(a.includes(":")) - Number(b.includes(":")));
}

/**
 * Resolves names with c-ares. The system resolver would block a thread of the pool that also serves file access,
 * for as long as a DNS server does not answer.
 */
export const resolveBySystem: Resolve = async (name) => {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new EgressRefused("name_not_found")), resolvePatienceMs);
  try {
    const found = await Promise.race([Bun.dns.lookup(name, { backend: "c-ares" }), late]);
    return found.map(({ address }) => address);
  } catch {
    throw new EgressRefused("name_not_found");
  } finally {
    clearTimeout(timer);
  }
};

/** Returns the host of a URL, without the brackets of an IPv6 address. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, "");
}

/** Reports whether the host of the URL is a loopback address or `localhost`. */
export function isLoopbackHost(url: URL): boolean {
  return url.hostname === "localhost" || isLoopbackAddress(hostOf(url));
}
