// What of a client's address counts together.
import { formatRange, parseRange } from "../base/text/ip-range.ts";

/** The network of an address; of IPv6 the first 64 bits: whoever has one address of a subnet has all of them (RFC 4291, 2.5.4). */
export function clientNetwork(address: string): string {
  const range = address.includes(":") ? parseRange(`${address}/64`) : undefined;
  return range ? formatRange(range) : address;
}
