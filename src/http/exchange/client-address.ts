// The address of the client behind trusted proxies.
import { BlockList, isIP } from "node:net";
import { formatRange, parseRange } from "../../base/text/ip-range.ts";
import type { IncomingRequest } from "../../http1/message.ts";

/**
 * Stands for the address of a client that a trusted proxy forwarded without naming it. It matches no list of allowed
 * addresses, and all such clients share one throttle: they must not count as the proxy, which may be allowed
 * everything.
 */
export const unknownAddress = "unknown";

/** Returns the addresses whose `X-Forwarded-For` is trusted. */
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
 * Returns the peer, or behind a trusted proxy the first address in `X-Forwarded-For` from the right that is not a
 * trusted proxy; `unknownAddress` if that is not an address. A trusted proxy without this header counts as the client
 * itself.
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
    // A negative start of a search counts as zero.
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

/** Caches the last result, because most requests come from the same address as the one before. */
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
 * Returns the address in one spelling, so that no other spelling escapes a list or a throttle: without the port and
 * brackets that some proxies write, and IPv4 within IPv6 as IPv4. Undefined if it is not an address.
 */
export function addressOf(text: string): string | undefined {
  if (isIP(text) === 4) return text;
  const address = /^\[([\da-f:.]+)\](?::\d{1,5})?$/i.exec(text)?.[1] ?? /^([\d.]+):\d{1,5}$/.exec(text)?.[1] ?? text;
  const range = address.includes("/") ? undefined : parseRange(address);
  return range && formatRange(range);
}
