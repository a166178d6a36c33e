// Finds the network of a client address. All addresses of a network count together.
import { formatRange, parseRange } from "../base/text/ip-range.ts";

/**
 * Returns the network of an address. For IPv6 this is the first 64 bits, because a client with one address of a
 * subnet has all of them (RFC 4291, 2.5.4).
 */
export function clientNetwork(address: string): string {
  const range = address.includes(":") ? parseRange(`${address}/64`) : undefined;
  return range ? formatRange(range) : address;
}
