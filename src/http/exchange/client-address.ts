// Determines the client's address behind trusted proxies.
import { BlockList, isIP } from "node:net";
import { formatRange, parseRange } from "../../base/text/ip-range.ts";
import type { IncomingRequest } from "../../http1/message.ts";

/**
 * The address of clients whose trusted proxy sent no valid address. It is on no allow list, and all such clients share
 * one throttle. The proxy's own address must not stand for them, because it may have more rights.
 */
export const unknownAddress = "unknown";

/** Returns the proxies whose `X-Forwarded-For` header is trusted. */
export function trustedProxies(entries: readonly string[]): BlockList {
  const list = new BlockList();
  for (const entry of entries) {
    const [address = "", bits] = entry.split("/");
    const family = isIP(address) === 6 ? "ipv6" : "ipv4";
    if (bits === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(bits), family);
  }
  return list;
}

/**
 * Returns the client's address. Without a trusted proxy, this is the address of the peer. Behind a trusted proxy, it is
 * the rightmost untrusted address in `X-Forwarded-For`, or `unknownAddress` if that is invalid. If a trusted proxy
 * sends no such header, the proxy itself is the client.
 */
export function clientAddress(
  { peer, headers }: Pick<IncomingRequest, "headers" | "peer">,
  trusted: BlockList,
): string {
  const direct = last.peer === peer && last.trusted === trusted ? last : judged(peer, trusted);
  if (!direct.isTrusted) return direct.address;
  const forwarded = headers.get("x-forwarded-for");
  if (forwarded === null) return direct.address;
  let end = forwarded.length;
  for (;;) {
    // `lastIndexOf` would treat a negative start as zero.
    const comma = end === 0 ? -1 : forwarded.lastIndexOf(",", end - 1);
    const address = addressOf(forwarded.slice(comma + 1, end).trim());
    if (address === undefined) return unknownAddress;
    if (comma < 0 || !isTrusted(address, trusted)) return address;
    end = comma;
  }
}

interface Peer {
  peer: string;
  trusted: BlockList | undefined;
  address: string;
  isTrusted: boolean;
}

/** The last result, because most requests come from the same address as the previous one. */
let last: Peer = { peer: "", trusted: undefined, address: "", isTrusted: false };

function judged(peer: string, trusted: BlockList): Peer {
  const address = addressOf(peer) ?? peer;
  last = { peer, trusted, address, isTrusted: isTrusted(address, trusted) };
  return last;
}

function isTrusted(address: string, trusted: BlockList): boolean {
  const family = isIP(address);
  return family !== 0 && trusted.check(address, family === 6 ? "ipv6" : "ipv4");
}

/**
 * Returns an address in its canonical form: without port and brackets, and an IPv4-mapped IPv6 address as IPv4.
 * Otherwise a different spelling could evade a throttle. Returns undefined if the address is invalid.
 */
export function addressOf(text: string): string | undefined {
  if (isIP(text) === 4) return text;
  const address = /^\[([\da-f:.]+)\](?::\d{1,5})?$/i.exec(text)?.[1] ?? /^([\d.]+):\d{1,5}$/.exec(text)?.[1] ?? text;
  const range = address.includes("/") ? undefined : parseRange(address);
  return range && formatRange(range);
}
