// Where a name of the internet leads at one attempt, checked: requests to addresses that others chose must not reach the inside of a network.
import { parseRange } from "../base/text/ip-range.ts";
import { isLoopbackAddress, isPublicAddress } from "./public-address.ts";

/** Gives all addresses of a name. */
export type Resolve = (name: string) => Promise<readonly string[]>;

export interface EgressRules {
  /** In development, and where the configuration says so: this machine may be asked, without TLS as well. */
  allowLoopback: boolean;
  /** Origins that an operator named: asked wherever they are, as servers are that operators add. Left out: none. */
  named?: readonly string[];
}

/** `message` is one of a few words: what a name leads to is told to nobody. */
export class EgressRefused extends Error {
  override readonly name = "OutwardRefused";
}

const resolvePatienceMs = 5_000;

/**
 * The addresses to connect to at this attempt, each of them checked: the name is not asked again. Throws EgressRefused
 * where any of them is not public: who controls the name would decide which one is taken.
 */
export async function addressesOf(url: URL, rules: EgressRules, resolve: Resolve): Promise<string[]> {
  const { allowLoopback, named = [] } = rules;
  const host = hostOf(url);
  const found = parseRange(host) ? [host] : await resolve(host);
  if (found.length === 0) throw new EgressRefused("name_not_found");
  const isNamed = named.includes(url.origin);
  const isFine = (address: string) =>
    isNamed || isPublicAddress(address) || (allowLoopback && isLoopbackAddress(address));
  if (!found.every(isFine)) throw new EgressRefused("address_not_public");
  if (url.protocol !== "https:" && !isNamed && !(allowLoopback && found.every(isLoopbackAddress))) {
    throw new EgressRefused("not_https");
  }
  // Machines without IPv6 are told of such addresses as well.
  return [...found].sort((a, b) => Number(a.includes(":")) - Number(b.includes(":")));
}

/**
 * Asks as the system is configured, over sockets: the system's own look-up takes one of the few threads that files, and the
 * names of model servers, need as well, for as long as the servers of a name say nothing.
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

/** IPv6 addresses without their brackets. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, "");
}

/** Whether the URL itself says that it is on this machine. */
export function isLoopbackHost(url: URL): boolean {
  return url.hostname === "localhost" || isLoopbackAddress(hostOf(url));
}
