// Decides whether an IP address is public, because a URL that a user chose must not reach a private network.
import { parseRange, rangesContain } from "../base/text/ip-range.ts";

const rangesOf = (texts: readonly string[]) => texts.flatMap((text) => parseRange(text) ?? []);

/** IPv4 ranges that are not globally reachable unicast, or that serve for translation (IANA's registries). */
const notPublicIpv4 = rangesOf([
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4",
]);
/**
 * IPv6 range that is assigned as global unicast (RFC 4291, 2.4). NAT64 (64:ff9b::), unique local and IPv4-mapped
 * addresses are outside it.
 */
const unicastIpv6 = rangesOf(["2000::/3"]);
/**
 * Ranges inside 2000::/3 that are not public: protocol assignments with Teredo and benchmarking, documentation, 6to4.
 */
const notPublicIpv6 = rangesOf(["2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"]);
const loopback = rangesOf(["127.0.0.0/8", "::1/128"]);

/** Reports whether the text is a public IP address. False for other text, and for an address with a zone. */
export function isPublicAddress(address: string): boolean {
  const range = parseRange(address);
  if (!range || address.includes("/")) return false;
  if (!address.includes(":")) return !rangesContain(notPublicIpv4, address);
  // IPv4-mapped IPv6 addresses are refused, because some network stacks connect to the IPv4 address inside.
  if (range.words.length === 1) return false;
  return rangesContain(unicastIpv6, address) && !rangesContain(notPublicIpv6, address);
}

export function isLoopbackAddress(address: string): boolean {
  const range = parseRange(address);
  if (!range || (address.includes(":") && range.words.length === 1)) return false;
  return rangesContain(loopback, address);
}
