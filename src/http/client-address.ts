// Where a request comes from: the client's address behind trusted proxies, and whether it is from this machine.
import { BlockList, isIP } from "node:net";
import type { IncomingRequest } from "../http1/message.ts";

type Origin = Pick<IncomingRequest, "headers" | "peer" | "target">;

/** Addresses whose `X-Forwarded-For` is believed. */
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

/** The peer, or, walking `X-Forwarded-For` from the right, the first address that is no trusted proxy. */
export function clientAddress({ peer, headers }: Origin, trusted: BlockList): string {
  const direct = last.peer === peer && last.trusted === trusted ? last : judged(peer, trusted);
  let { address } = direct;
  if (!direct.isTrusted) return address;
  const hops = (headers.get("x-forwarded-for") ?? "").split(",").map((hop) => plain(hop.trim()));
  for (const hop of hops.reverse()) {
    if (isIP(hop) === 0) break;
    address = hop;
    if (!isTrusted(hop, trusted)) break;
  }
  return address;
}

interface Peer {
  peer: string;
  trusted: BlockList | undefined;
  address: string;
  isTrusted: boolean;
}

/** Most requests come from where the one before came from. */
let last: Peer = { peer: "", trusted: undefined, address: "", isTrusted: false };

function judged(peer: string, trusted: BlockList): Peer {
  const address = plain(peer);
  last = { peer, trusted, address, isTrusted: isTrusted(address, trusted) };
  return last;
}

/**
 * A request is local only if both its peer and its Host are loopback and no proxy passed it on: a tunnel or proxy on
 * the same host must not make the internet local, nor may a web page that rebinds its name to 127.0.0.1.
 */
export function isLocalRequest({ peer, headers, target }: Origin): boolean {
  if (!isLoopback(plain(peer)) || !isLoopbackHost(headers.get("host") ?? "")) return false;
  // A target in absolute form (RFC 9112, 3.2.2) names a host as well.
  if (!target.startsWith("/") && !isLoopbackHost(/^https?:\/\/([^/?#]*)/i.exec(target)?.[1] ?? "")) return false;
  for (const name of headers.keys()) {
    if (proxyHeaders.has(name) || name.startsWith("x-forwarded-")) return false;
  }
  return true;
}

/** What proxies and tunnels add, `X-Forwarded-*` apart. */
const proxyHeaders = new Set(["forwarded", "via", "x-real-ip", "cf-connecting-ip", "true-client-ip"]);

function isLoopbackHost(host: string): boolean {
  const name = host.replace(/:\d+$/, "").toLowerCase();
  return name === "localhost" || name === "[::1]" || (isIP(name) === 4 && isLoopback(name));
}

function isLoopback(address: string): boolean {
  return address === "::1" || /^127\./.test(address);
}

function isTrusted(address: string, trusted: BlockList): boolean {
  const family = isIP(address);
  return family !== 0 && trusted.check(address, family === 6 ? "ipv6" : "ipv4");
}

/** An IPv4 address that arrives in IPv6 clothes is an IPv4 address; a port, which some proxies add, is none of it. */
function plain(text: string): string {
  const address = /^\[([\da-f:.]+)\](?::\d+)?$/i.exec(text)?.[1] ?? /^([\d.]+):\d+$/.exec(text)?.[1] ?? text;
  return address.startsWith("::ffff:") && isIP(address.slice(7)) === 4 ? address.slice(7) : address;
}
